"""Evidence of claims: a file and a line count only if a member of the room has really read them, by the ledger.

The model names file and line; which event shows them is found here, so that nobody can cite what was not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import CallError
from toolgate.core.names import HUMAN
from toolgate.core.rendering import lines_of
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    from toolgate.facade import Gate

ROWS = 500


async def proven(
    gate: Gate, room: str, members: Collection[str], claims: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The claims, each with the event that shows its line, or with what is missing."""
    reads = [(row, await _result(gate, row)) for row in await _rows(gate, room, members)] if claims else []
    return [_proved(claim, reads) for claim in claims]


async def _rows(gate: Gate, room: str, members: Collection[str]) -> list[Row]:
    """Anybody can name a room as the conversation of a call: only what its members and the human did shows anything."""
    wanted = Filter(conversation=room, kinds=("committed",), newest_first=True, limit=ROWS)
    who = {*members, HUMAN}
    return [
        row for row in await gate.events(wanted) if row.persona in who and not row.tool.startswith("room.")
    ]


async def _result(gate: Gate, row: Row) -> Any:
    try:
        return (await gate.whole(row)).get("result")
    except CallError:
        return None  # no longer kept: it shows nothing any more


def _proved(claim: dict[str, Any], reads: list[tuple[Row, Any]]) -> dict[str, Any]:
    file, line, quote = _plain(str(claim["file"])), int(claim["line"]), str(claim.get("quote", "")).strip()
    for row, result in reads:
        for seen in lines_shown(result, file, line):
            if quote in seen:
                return {**claim, "event": row.seq, "seen": seen.strip()[:200]}
    missing = f"nobody here has read line {line} of {file}" + (" with these words" if quote else "")
    return {**claim, "event": None, "missing": missing}


def lines_shown(result: Any, file: str, line: int) -> Iterator[str]:
    """What a result shows of that line."""
    if not isinstance(result, Mapping):
        return
    if _plain(str(result.get("path", ""))) == file:
        for first, content in _parts(result):
            lines = lines_of(content)
            if 0 <= line - first < len(lines):
                yield lines[line - first]
    for match in result.get("matches") or ():
        if (
            isinstance(match, Mapping)
            and _plain(str(match.get("file", ""))) == file
            and match.get("line") == line
        ):
            yield str(match.get("line_text", ""))


def _parts(result: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The texts that a read of a file gave, each with the number of its first line: of `code.read`, of `fs.read` whole,
    of `fs.read` by ranges."""
    content, metadata = result.get("content"), result.get("metadata")
    if isinstance(content, str):
        told = metadata.get("start_line") if isinstance(metadata, Mapping) else None
        span = str(result.get("line_range", "1")).partition("-")[0]
        yield (told if isinstance(told, int) else int(span) if span.isdecimal() else 1), content
    for part in result.get("range_slices") or ():
        if isinstance(part, Mapping) and isinstance(part.get("start"), int):
            yield part["start"], str(part.get("content", ""))


def _plain(path: str) -> str:
    return path.removeprefix("project:").removeprefix("./").lstrip("/")
