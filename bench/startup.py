"""Start of a command against the start of Python itself: what a person waits for before anything happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Line, quantile
from bench.run import Run

PYTHON = (sys.executable, "-c", "pass")
TOOLGATE = (
    sys.executable,
    "-c",
    "import sys; from toolgate.faces.cli.main import main; sys.exit(main(sys.argv[1:]))",
)
OPEN = """\
import asyncio, sys, toolgate

async def main():
    async with toolgate.open(sys.argv[1]):
        pass

asyncio.run(main())
"""
WRITE = json.dumps({"path": "note.md", "content": "a line\n"})
CHANGE = "{a change}"
"""Stands for the arguments of a write whose content is another in every round, which is scanned and kept for undo."""
POLICY = """\
version: 1
default_persona: builder
personas: {builder: {phase: contribute}}
policy:
  rules:
    - {name: bench, persona: builder, tools: [fs.write], decision: allow, reason: it is measured}
"""
COMMANDS: tuple[tuple[tuple[str, ...], float], ...] = (
    (("--help",), 6),
    (("approvals",), 7),
    (("grants",), 7),
    (("ledger", "tail"), 7),
    (("call", "system.ping"), 12),
    (("call", "fs.write", WRITE), 12),
    (("call", "fs.write", CHANGE), 12),
    (("pause", "builder"), 7),  # the last: nothing of it is called any more
)
OPEN_BAR = 10.0
_TOLD = {WRITE: "…", CHANGE: "… (another content each time)"}


async def startup(run: Run) -> list[Line]:
    run.tell("start of commands against that of Python")
    root = run.folder("startup")
    (root / "toolgate.yaml").write_text(POLICY)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "TOOLGATE_STATE_DIR": str(run.folder("startup-state")),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for words in (("trust", "--yes"), *(words for words, _ in COMMANDS), ("resume", "builder")):
        _once((*TOOLGATE, *words), root, environment)  # also compiles what is imported, once
    measured = [(f"`toolgate {_shown(words)}`", (*TOOLGATE, *words), bar) for words, bar in COMMANDS]
    measured.append(("`toolgate.open` in a new process", (sys.executable, "-c", OPEN, str(root)), OPEN_BAR))
    return [_compare(run, what, words, bar, root, environment) for what, words, bar in measured]


def _shown(words: Sequence[str]) -> str:
    return " ".join(_TOLD.get(word, word) for word in words)


def _compare(
    run: Run, what: str, words: Sequence[str], bar: float, root: Path, environment: dict[str, str]
) -> Line:
    mine: list[float] = []
    theirs: list[float] = []
    rounds = run.count(30, 8)
    for _ in range(rounds):
        theirs.append(_once(PYTHON, root, environment))
        mine.append(_once(words, root, environment))
    ours, peer = quantile(mine, 0.25), quantile(theirs, 0.25)
    return Line(
        what=f"start of {what}",
        ours=f"p25 {ours * 1e3:.0f} ms",
        peer=f"p25 {peer * 1e3:.0f} ms",
        ratio=ours / peer,
        bar=f"≤ {bar:g} ×",
        holds=ours / peer <= bar,
        how=f"a new process from its start to its end, against `python -c pass`, {rounds} of each in turns",
    )


def _once(words: Sequence[str], root: Path, environment: dict[str, str]) -> float:
    content = {"path": "changed.md", "content": f"a line at {time.time_ns()}\n"}
    command = [json.dumps(content) if word == CHANGE else word for word in words]
    begun = time.perf_counter()
    subprocess.run(
        command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return time.perf_counter() - begun
