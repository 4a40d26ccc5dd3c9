"""The project's documents, as the tests read them."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("bench/*.md")])
_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=ticks)\s*$", re.M | re.S)


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def read(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    return [found["text"] for found in _FENCE.finditer(text) if found["language"] == language]


def prose(text: str) -> str:
    """Without fenced blocks, in which nothing is a link."""
    return _FENCE.sub("", text)


def section(text: str, heading: str) -> str:
    """What stands under `## heading`."""
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def first_cells(table: str) -> list[str]:
    """The first cell of every row of the tables in a text, without headers."""
    rows = [line for line in table.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [row.split("|")[1].strip() for row in rows]


def anchors(text: str) -> set[str]:
    """Headings as GitHub links to them."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}
