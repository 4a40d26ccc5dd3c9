"""The kinds of jobs. A kind says which calls are made, one after the other; each has a number and therefore a key.

It may look at the results of its calls and at nothing else, because after a crash it is run again from its beginning,
with the results it had.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.core.errors import InvalidArgs

MOST_CALLS = 1000


class JobCalls(Protocol):
    async def call(self, tool: str, args: Mapping[str, Any]) -> Any:
        """The data of the call's result. What refuses or fails for good ends the job."""
        ...


@dataclass(frozen=True, slots=True)
class JobKind:
    run: Callable[[JobCalls, Mapping[str, Any]], Awaitable[Any]]
    known: Callable[[Mapping[str, Any]], Iterable[tuple[str, Mapping[str, Any]]]]
    """The calls that are known beforehand, to be checked when it is submitted; wrong arguments raise."""


def _one(args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    tool, given = args.get("tool"), args.get("args", {})
    if not isinstance(tool, str) or not isinstance(given, Mapping) or set(args) - {"tool", "args"}:
        raise InvalidArgs(
            "a call has a `tool` and its `args`", 'write {"tool": "code.search", "args": {...}}'
        )
    return tool, given


def _several(args: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    calls = args.get("calls")
    if not isinstance(calls, list) or not 1 <= len(calls) <= MOST_CALLS or set(args) - {"calls"}:
        raise InvalidArgs(
            f"`calls` is not a list of 1 to {MOST_CALLS} calls", 'write {"calls": [{"tool": ...}]}'
        )
    return [_one(call if isinstance(call, Mapping) else {}) for call in calls]


async def _run_one(calls: JobCalls, args: Mapping[str, Any]) -> Any:
    return await calls.call(*_one(args))


async def _run_several(calls: JobCalls, args: Mapping[str, Any]) -> Any:
    return [await calls.call(*call) for call in _several(args)]


BUILT_IN = {"call": JobKind(_run_one, lambda args: [_one(args)]), "calls": JobKind(_run_several, _several)}
