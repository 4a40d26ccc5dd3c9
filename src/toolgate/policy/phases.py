"""The phase table, as data: what each phase allows, asks or denies when nothing more specific speaks.

A call touches one or more rows, by its effects; its cell is the strictest of them. Phases are cumulative: no
cell is stricter than the one before it in its row.
"""

from __future__ import annotations

from typing import Any, get_args

from toolgate.core.decision import Verdict
from toolgate.core.effects import Effects
from toolgate.core.records import dataclass
from toolgate.core.tool import Phase, Tool

PHASES: tuple[Phase, ...] = get_args(Phase)
SPELLINGS: dict[str, Phase] = {
    "2a": "observe",
    "2b": "experiment",
    "3": "contribute",
    "4": "collaborate",
    **{phase: phase for phase in PHASES},
}


@dataclass(frozen=True, slots=True)
class PhaseRow:
    id: str
    what: str
    short: str
    """The same, as a reason says it."""
    cells: tuple[Verdict, Verdict, Verdict, Verdict]


def _row(id_: str, cells: str, what: str, short: str = "") -> PhaseRow:
    first, second, third, fourth = map(Verdict, cells.split())
    return PhaseRow(id_, what, short or what, (first, second, third, fourth))


TABLE: tuple[PhaseRow, ...] = (
    _row(
        "reading",
        "allow allow allow allow",
        "reading: code, fs, md, events, data, tools, system, recall; web search",
        "reading",
    ),
    _row(
        "garden",
        "allow allow allow allow",
        "garden edits and memory (with the garden mounted)",
        "garden edits and memory",
    ),
    _row(
        "exec",
        "deny allow allow allow",
        "exec without network, secrets or project view",
        "programs without network, secrets or project view",
    ),
    _row(
        "open",
        "deny ask ask ask",
        "exec with any of them; http, db, ai calls",
        "programs with network, secrets or project view, and http, db and ai calls",
    ),
    _row("scratch", "deny deny allow allow", "scratch saves"),
    _row("project", "deny deny ask ask", "project writes, branches, test files"),
    _row("history", "deny deny deny ask", "commit, push, pull request"),
    _row(
        "imported_reads",
        "ask ask ask ask",
        "imported and catalog tools: marked read-only",
        "imported tools that only read",
    ),
    _row("imported_others", "deny ask ask ask", "others", "imported tools and effects outside"),
)
ROWS = {row.id: row for row in TABLE}

READS_ROW = {
    **dict.fromkeys(
        ("project", "garden", "scratch", "ledger", "tools", "system", "memory", "search"), "reading"
    ),
    **dict.fromkeys(("internet", "database", "model", "secrets"), "open"),
    "outside": "imported_others",
}
WRITES_ROW = {
    "ledger": "reading",
    **dict.fromkeys(("garden", "memory"), "garden"),
    "process": "exec",
    **dict.fromkeys(("internet", "database", "model"), "open"),
    "scratch": "scratch",
    **dict.fromkeys(("project", "branch"), "project"),
    "history": "history",
    "outside": "imported_others",
}
OPENS_A_PROCESS = frozenset({"project", "secrets", "internet"})
"""What a program must not see to count as closed."""


def phase_name(value: Any) -> Phase:
    """Both spellings: `observe` and `2A`."""
    found = SPELLINGS.get(str(value).lower()) if isinstance(value, str | int) else None
    if found is None:
        from pydantic_core import PydanticCustomError

        fix = "use observe (2A), experiment (2B), contribute (3) or collaborate (4)"
        message = f"{str(value)[:80]!r} is not a phase"
        raise PydanticCustomError("flaw", "{message}", {"message": message, "fix": fix, "at": ()})
    return found


def rows_of(tool: Tool, effects: Effects) -> tuple[PhaseRow, ...]:
    """The rows a call touches, in the table's order. A call that touches nothing counts as reading."""
    if tool.origin == "imported":
        return (ROWS["imported_others" if effects.writes else "imported_reads"],)
    touched = {READS_ROW[word] for word in effects.reads} | {WRITES_ROW[word] for word in effects.writes}
    if "process" in effects.writes and not OPENS_A_PROCESS.isdisjoint(effects.reads):
        touched = (touched - {"exec"}) | {"open"}
    return tuple(row for row in TABLE if row.id in touched) or (ROWS["reading"],)


@dataclass(frozen=True, slots=True)
class Cell:
    verdict: Verdict
    row: str
    reason: str


def cell(phase: Phase, tool: Tool, effects: Effects) -> Cell:
    """What the table says of this call: the strictest of its rows, tightened by the tool's own phase."""
    column = PHASES.index(phase)
    # Of equally strict rows the last is the most telling: `commit` rather than `reading`.
    row = max(reversed(rows_of(tool, effects)), key=lambda row: row.cells[column].strictness)
    if column < PHASES.index(tool.phase):
        reason = f"{tool.name} is for the phase {tool.phase} and later, this is {phase}"
        return Cell(Verdict.DENY, row.id, reason)
    verdict = row.cells[column]
    verb = {"allow": "allows", "ask": "asks for", "deny": "does not allow"}[verdict]
    return Cell(verdict, row.id, f"the phase {phase} {verb} {row.short}")


def table_markdown() -> str:
    """The table as the documentation prints it; the two rows of imported tools share a line."""
    *plain, reads, others = TABLE
    lines = [f"| what | {' | '.join(PHASES)} |", "|---" * (len(PHASES) + 1) + "|"]
    lines += [f"| {row.what} | {' | '.join(row.cells)} |" for row in plain]
    cells = (f"{first} / {second}" for first, second in zip(reads.cells, others.cells, strict=True))
    lines.append(f"| {reads.what} / {others.what} | {' | '.join(cells)} |")
    return "\n".join(lines)
