"""Ids on the command line: whole, or an unambiguous beginning or end of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from toolgate.core.errors import InvalidArgs
from toolgate.core.late_pattern import late_pattern
from toolgate.storage.port import Filter, Row

SHORTEST = 6
_WHOLE = 29
"""`c_` and 27 digits of time, process and count."""
_SHOWN = 8
_PART = late_pattern(r"[a-z0-9_]+")
Find = Callable[[Filter], Awaitable[list[Row]]]


async def whole(find: Find, ident: str, kinds: str = "cqg", among: Iterable[str] = ()) -> str:
    """The id that this stands for. Numbers are events, and what fits nothing is left for others to refuse.

    `kinds` are the first letters of the ids that are meant; `among` are those a person is likely to mean.
    """
    event = ident.isdigit() and not ident.startswith("0") and "c" in kinds
    if event or len(ident) >= _WHOLE or not _PART.fullmatch(ident):
        return ident
    fitting = {name for name in among if _fits(name, ident, kinds)}
    if len(ident) < SHORTEST:
        if fitting:
            raise InvalidArgs(f"{ident!r} is too short for an id", f"give at least {SHORTEST} characters")
        return ident
    if not fitting:
        rows = await find(Filter(about=ident, newest_first=True))
        fitting = {name for row in rows for name in (row.call, row.ref) if _fits(name, ident, kinds)}
    if len(fitting) > 1:
        listed = sorted(fitting, reverse=True)
        more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        raise InvalidArgs(
            f"{ident!r} could be any of {', '.join(listed[:_SHOWN])}{more}",
            "give more of it; the end of an id tells more than its beginning",
            data={"candidates": listed},
        )
    return fitting.pop() if fitting else ident


def _fits(name: str, part: str, kinds: str) -> bool:
    return name[:1] in kinds and name[1:2] == "_" and (name.startswith(part) or name.endswith(part))
