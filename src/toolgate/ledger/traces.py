"""Traces: every program that was run, with its code, what it printed and how it ended; and what fails most often.

They are for people and models who want to do better next time. They are not evidence: rows are trimmed by age and
number and are under no chain. What happened, and who let it happen, is in the ledger under the call's id. Whoever adds
a trace hands in texts that are redacted already.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.core.call import new_id
from toolgate.core.clock import Clock, iso
from toolgate.core.display import encodable
from toolgate.core.errors import InvalidArgs
from toolgate.ledger.categories import categorize, error_line
from toolgate.storage.executions import DAY, ExecutionRow, Executions, Keep

if TYPE_CHECKING:
    from toolgate.storage.port import Backend

WORD_BYTES = 1024
"""Of an id or a name."""
EXAMPLES = 3
EXAMPLE_CHARACTERS = 200
MAX_FAILURES_SHOWN = 1000
_PERIOD = re.compile(r"([1-9][0-9]{0,3})(hour|day|week|month)s?")
_DAYS = {"hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One program that was run, in redacted words."""

    call: str
    persona: str
    tool: str
    language: str
    code: str
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    """None where it was ended from outside."""
    duration_ms: float = 0.0
    limit: str = ""
    """The limit it ran into, by name."""
    session: str = ""
    """The conversation it belongs to."""
    trigger_message: str = ""
    """What the user asked, where the caller knows."""
    llm_reasoning: str = ""
    """Why the model wrote this code, in its own words."""

    @property
    def success(self) -> bool:
        return self.exit_code == 0 and not self.limit


class Traces:
    def __init__(
        self, backend: Backend, clock: Clock, keep: Keep | None = None, text_bytes: int = 65_536
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._keep = keep or Keep()
        self._text_bytes = text_bytes

    async def add(self, execution: Execution) -> str:
        """Store one; its id comes back. What is older or more than is kept goes."""
        row = self._row(execution)
        await self._backend.add_execution(row, self._keep)
        return row.id

    def _row(self, done: Execution) -> ExecutionRow:
        category = "" if done.success else categorize(done.language, done.stderr, done.exit_code, done.limit)
        words = (done.call, done.persona, done.tool, done.language, done.session, done.limit)
        texts = (done.code, done.stdout, done.stderr, done.trigger_message, done.llm_reasoning)
        call, persona, tool, language, session, limit = (fit(word, WORD_BYTES) for word in words)
        code, stdout, stderr, trigger, reasoning = (fit(text, self._text_bytes) for text in texts)
        return ExecutionRow(
            0, new_id("x"), self._clock.now(), call, persona, tool, language, session, code, stdout, stderr,
            done.exit_code, done.duration_ms, done.success, limit, category, trigger, reasoning,
        )  # fmt: skip

    async def find(self, wanted: Executions) -> list[ExecutionRow]:
        """Newest first."""
        return await self._backend.executions(wanted)

    async def failures(
        self, session: str | None = None, limit: int = 5, persona: str = ""
    ) -> list[ExecutionRow]:
        """The last programs that failed, newest first; of one conversation if it is given."""
        if not 1 <= limit <= MAX_FAILURES_SHOWN:
            raise InvalidArgs(
                f"{limit} is not a number of failures to show", f"ask for 1 to {MAX_FAILURES_SHOWN}"
            )
        return await self.find(
            Executions(session_id=session or "", persona=persona, success=False, limit=limit)
        )

    async def patterns(self, days: float = 7, persona: str = "") -> list[dict[str, Any]]:
        """What fails most often: each category with its count and the newest examples."""
        since = self._since(days)
        counts: Counter[str] = Counter()
        for kind in await self._backend.count_executions(
            Executions(since=since, persona=persona, success=False)
        ):
            counts[kind.error_category] += kind.number
        found = []
        for category, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            wanted = Executions(
                since=since, persona=persona, success=False, error_category=category, limit=EXAMPLES
            )
            rows = await self.find(wanted)
            found.append({"category": category, "count": count, "examples": [_example(row) for row in rows]})
        return found

    async def summary(self, days: float = 7, persona: str = "") -> dict[str, Any]:
        """Totals, success, average time, and the patterns."""
        since = self._since(days)
        kinds = await self._backend.count_executions(Executions(since=since, persona=persona))
        total = sum(kind.number for kind in kinds)
        good = sum(kind.number for kind in kinds if kind.success)
        took = sum(kind.duration_ms for kind in kinds)
        return {
            "days": days,
            "since": iso(since),
            "total": total,
            "successful": good,
            "failed": total - good,
            "success_rate": round(good / total, 4) if total else None,
            "avg_ms": round(took / total, 3) if total else None,
            "errors": await self.patterns(days, persona),
        }

    def _since(self, days: float) -> int:
        if not 0 < days <= 3650:
            raise InvalidArgs(f"{days:g} is not a number of days", "use more than 0 and up to 3650")
        return max(1, self._clock.now() - round(days * DAY))


def days_of(period: str) -> float:
    """`7days`, `12hours`, `1week`, `all`."""
    if period == "all":
        return 3650.0
    found = _PERIOD.fullmatch(period)
    if found is None:
        raise InvalidArgs(
            f"{period!r} is not a period",
            "use a number of hours, days, weeks or months, such as 7days, or all",
        )
    return min(3650.0, int(found[1]) * _DAYS[found[2]])


def fit(text: str, most: int) -> str:
    """A text that a database can hold, its middle left out where it is too long: errors are told at the end."""
    plain = encodable(text).replace("\0", "\ufffd")
    raw = plain.encode()
    if len(raw) <= most:
        return plain
    half = most // 2
    head, tail = raw[:half].decode(errors="ignore"), raw[len(raw) - half :].decode(errors="ignore")
    return f"{head}\n[… {len(raw) - 2 * half:,} bytes left out …]\n{tail}"


def as_execution(row: ExecutionRow) -> dict[str, Any]:
    """A row as readers see it, in `--json` and over HTTP."""
    return row._asdict() | {"created_at": iso(row.created_at)}


def _example(row: ExecutionRow) -> dict[str, str]:
    return {
        "id": row.id,
        "code": row.code[:EXAMPLE_CHARACTERS],
        "error": (error_line(row.stderr) or row.limit_hit)[:EXAMPLE_CHARACTERS],
    }
