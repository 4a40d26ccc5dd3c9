"""Traces: every program that was run, with its code, what it printed and how it ended; and what fails most often.

They are for people and models who want to do better next time. They are not evidence: rows are trimmed by age and
number and are under no chain. What happened, and who let it happen, is in the ledger under the call's id. Whoever adds
a trace hands in texts that are redacted already.

What ended a program is one word, by tables and not by guesses: a limit is known for sure; an interpreter names its error
in a fixed form, and the last one named is the one that ended it; a shell is known by its phrases and exit codes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolgate.core.call import new_id
from toolgate.core.clock import Clock, iso
from toolgate.core.display import encodable
from toolgate.core.errors import InvalidArgs
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
class TracedProgram:
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

    async def add(self, execution: TracedProgram) -> str:
        """Store one; its id comes back. What is older or more than is kept goes."""
        row = self._row(execution)
        await self._backend.add_execution(row, self._keep)
        return row.id

    def _row(self, done: TracedProgram) -> ExecutionRow:
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


Category = Literal[
    "syntax", "import", "type", "reference", "timeout", "network", "memory", "output", "limit", "permission",
    "runtime", "unknown",
]  # fmt: skip

_LIMITS: dict[str, Category] = {
    "time": "timeout", "cpu": "timeout", "memory": "memory", "output": "output", "processes": "limit",
    "files": "limit", "disk": "limit", "inodes": "limit", "requests": "limit",
}  # fmt: skip

Phrases = tuple[tuple[Category, tuple[str, ...]], ...]
_TAIL = 16_384
_NETWORK = (
    "Connection refused", "Connection reset", "Connection timed out", "Name or service not known",
    "Temporary failure in name resolution", "Network is unreachable", "No route to host", "urlopen error",
    "error sending request", "fetch failed", "ECONNREFUSED", "ENOTFOUND", "Could not resolve", "dns error",
    "this program has no network", "this program may not reach", "which programs may not reach",
)  # fmt: skip

# Phrases that say more than the name of the error, in this order, looked for in the message of the last error named.
_PHRASES: Phrases = (
    ("network", _NETWORK),
    ("memory", ("out of memory", "Cannot allocate memory", "Array buffer allocation failed", "ENOMEM")),
    ("limit", ("No space left on device", "Disk quota exceeded", "Too many open files", "Resource temporarily unavailable")),
    ("permission", ("Permission denied", "Operation not permitted", "Read-only file system", "Requires ")),
)  # fmt: skip

_NAMED: dict[str, Category] = {
    "SyntaxError": "syntax", "IndentationError": "syntax", "TabError": "syntax",
    "ImportError": "import", "ModuleNotFoundError": "import",
    "TypeError": "type", "AttributeError": "type",
    "NameError": "reference", "UnboundLocalError": "reference", "ReferenceError": "reference",
    "TimeoutError": "timeout", "TimedOut": "timeout",
    "URLError": "network", "HTTPError": "network", "gaierror": "network", "herror": "network", "SSLError": "network",
    "ConnectionError": "network", "ConnectionRefusedError": "network", "ConnectionResetError": "network",
    "ConnectionAbortedError": "network", "BrokenPipeError": "network", "ConnectionRefused": "network",
    "ConnectionReset": "network",
    "MemoryError": "memory",
    "PermissionError": "permission", "PermissionDenied": "permission", "NotCapable": "permission",
}  # fmt: skip

# `module.Error: message` at the start of a line ends a Python traceback; a traceback's frames are indented.
_PYTHON = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*|gaierror|herror)(?::[ \t](.*))?$", re.MULTILINE)
# Deno: `error: Uncaught (in promise) TypeError: message`, and `Caused by:` lines below it.
_DENO = re.compile(r"^error: (?:Uncaught )?(?:\(in promise\) )?(?:([A-Z]\w*): )?(.*)$", re.MULTILINE)
_MODULES = (
    "Module not found",
    "No such built-in module",
    "Cannot find module",
    "Unsupported scheme",
    "Relative import path",
    "Import ",
)
_PARSING = (
    "The module's source code could not be parsed",
    "SyntaxError",
    "Expression expected",
    "Unexpected token",
)

_SHELL: Phrases = (
    ("syntax", ("Syntax error", "syntax error", "unexpected EOF", "Unterminated quoted string", "bad substitution")),
    ("reference", (": not found", "command not found", "parameter not set", "unbound variable")),
)  # fmt: skip


def categorize(language: str, stderr: str, exit_code: int | None = None, limit: str = "") -> Category:
    """For a program that did not succeed."""
    if limit:
        return _LIMITS.get(limit, "limit")
    tail = stderr[-_TAIL:].strip()
    if language == "python":
        found = _python(tail)
    elif language == "javascript":
        found = _javascript(tail)
    else:
        found = _shell(tail, exit_code)
    if found is not None:
        return found
    return "runtime" if tail else "unknown"


def error_line(stderr: str) -> str:
    """The line that names the error: Deno's stands above its frames, every other one at the end."""
    text = stderr.strip()
    found = _DENO.search(text)
    return found.group() if found is not None else text.rsplit("\n", 1)[-1]


def _python(text: str) -> Category | None:
    named = _PYTHON.findall(text)
    if not named:
        return _phrase(text.rsplit("\n", 1)[-1])
    name, message = named[-1]
    return _NAMED.get(name) if name in ("SyntaxError", "TypeError") else _phrase(message) or _NAMED.get(name)


def _javascript(text: str) -> Category | None:
    if "Fatal JavaScript out of memory" in text:
        return "memory"
    found = _DENO.search(text)
    if found is None:
        return _phrase(text)
    name, message = found.group(1) or "", found.group(2)
    causes = "\n".join(line for line in text.splitlines() if line.startswith("Caused by:"))
    if any(phrase in message for phrase in _PARSING):
        return "syntax"
    if not name and message.startswith(_MODULES):
        return "import"
    # fetch reports what happened to the connection as a TypeError
    return _phrase(f"{message}\n{causes}") or _NAMED.get(name)


def _shell(text: str, exit_code: int | None) -> Category | None:
    last = text.rsplit("\n", 1)[-1]
    if (found := _phrase(last, _SHELL)) is not None:
        return found
    if exit_code == 127:
        return "reference"
    return _phrase(last) or ("permission" if exit_code == 126 else None)


def _phrase(text: str, known: Phrases = _PHRASES) -> Category | None:
    for category, phrases in known:
        if any(phrase in text for phrase in phrases):
            return category
    return None
