"""RESULTS.md: one table, and what it was measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.measure import Line

FILE = Path(__file__).parent / "RESULTS.md"
_HEAD = ("what", "ours", "peer", "ratio", "bar", "holds", "how it was measured")


def as_markdown(lines: Sequence[Line], command: str, postgres: str, seconds: float) -> str:
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_cells, lines)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    facts = "\n".join(f"- {fact}" for fact in _machine(command, postgres, seconds))
    return f"# Results\n\nRatios against peers measured in the same run; `make bench` writes this page anew.\n\n{facts}\n\n{table}\n"


def _machine(command: str, postgres: str, seconds: float) -> list[str]:
    return [
        f"date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {_load()} at the end "
        "(one core is the benchmark's own; more is noise)",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, PostgreSQL {postgres}",
        f"command: `{command}`, {seconds:,.0f} s",
    ]


def _load() -> str:
    return ", ".join(f"{load:.1f}" for load in os.getloadavg())


def _cells(line: Line) -> tuple[str, ...]:
    ratio = "–" if line.ratio is None else f"{line.ratio:.2f} ×"
    return line.what, line.ours, line.peer, ratio, line.bar, line.verdict, line.how
