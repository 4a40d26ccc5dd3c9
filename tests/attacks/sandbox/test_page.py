"""docs/sandbox-attacks.md is the table. `TOOLGATE_WRITE_PAGES=1 pytest tests/attacks/sandbox/test_page.py` writes it."""

from __future__ import annotations

import os
from pathlib import Path

from .ablations import ABLATIONS, REDUNDANT
from .attack import ALL, LAYERS, Attack
from .table import SECTIONS

PAGE = Path(__file__).parents[3] / "docs" / "sandbox-attacks.md"
_HEAD = """# Attacks on the sandbox

Each row is a program with full control of its code, run by `tests/attacks/sandbox/test_attacks.py` in each mode: `root`, `userns` (an
unprivileged user with a user namespace) and `landlock` (an unprivileged user without one). A row passes if the program
got nothing: what it wanted to read is in no output, what it wanted to change is as it was, nobody was reached, nothing
is left running, and the host answered all the time. This page is made from that table.

## Layers
"""


def test_the_page_is_the_table() -> None:
    if os.environ.get("TOOLGATE_WRITE_PAGES"):
        PAGE.write_text(page(), "utf-8")
    assert PAGE.read_text("utf-8") == page(), "write it again: see the first line of this file"


def page() -> str:
    lines = [_HEAD, "| layer | what it is |", "|---|---|"]
    lines += [f"| {name} | {what} |" for name, what in LAYERS.items()]
    lines += ["", "## One layer alone", ""]
    lines += [
        "With this one layer left out, and all others standing, the attack gets through (`tests/attacks/sandbox/test_ablation.py`).",
        "",
    ]
    lines += ["| layer | attack | mode |", "|---|---|---|"]
    lines += [f"| {each.layer} | {each.name} | {each.mode} |" for each in ABLATIONS]
    lines += ["", *(f"- **{layer}** {why}" for layer, why in REDUNDANT.items())]
    for section, attacks in SECTIONS.items():
        lines += ["", f"## {section}", "", "| attack | stopped by | modes |", "|---|---|---|"]
        lines += [_row(attack) for attack in attacks]
    return "\n".join(lines) + "\n"


def _row(attack: Attack) -> str:
    shown = "all" if attack.modes == ALL else ", ".join(attack.modes)
    return f"| {attack.name.replace('|', '/')} | {', '.join(attack.stopped_by)} | {shown} |"
