"""References in arguments: `{"$from": "call_1.matches[0].file"}` is what an earlier call of the same request gave.

They are filled before the gate sees the call, so policy judges, a human is shown and the ledger keeps what was filled in.
A reference that leads nowhere is an error that says what there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import InvalidArgs

if TYPE_CHECKING:
    from toolgate.agents.wires.base import WireCall

KEY = "$from"
LONGEST = 500
MOST = 64
"""References in one call's arguments."""
_PATH = re.compile(
    r"(?P<call>[A-Za-z0-9_-]{1,200})(?P<steps>(?:\.[A-Za-z0-9_$-]+|\[\d{1,9}\]|\[\"[^\"\\]*\"\])*)"
)
_STEP = re.compile(r"\.([A-Za-z0-9_$-]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")
_EXAMPLE = '{"$from": "call_1.matches[0].file"}'


def is_reference(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and isinstance(value.get(KEY), str)


def refers(args: Any) -> bool:
    """Whether a reference stands anywhere in it."""
    waiting = [args]
    while waiting:
        value = waiting.pop()
        if is_reference(value):
            return True
        if isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def any_refers(calls: Iterable[WireCall]) -> bool:
    """Whether the calls of a request must run in their order, and their results be kept."""
    return any(refers(call.args) for call in calls)


class EarlierResults:
    """What the calls of one request gave so far. A call is named by its id or by its place: `call_1` is the first."""

    def __init__(self, calls: Sequence[WireCall]) -> None:
        self._places = {f"call_{index + 1}": index for index in range(len(calls))}
        self._places |= {call.id: index for index, call in enumerate(calls) if call.id}
        self._given: dict[int, tuple[bool, Any]] = {}

    def add(self, index: int, ok: bool, data: Any) -> None:
        self._given[index] = (ok, data)

    def fill(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with every reference replaced; raises InvalidArgs where one leads nowhere."""
        left = [MOST]
        return {name: self._filled(value, left) for name, value in args.items()}

    def _filled(self, value: Any, left: list[int]) -> Any:
        if is_reference(value):
            left[0] -= 1
            if left[0] < 0:
                raise InvalidArgs(f"the arguments have more than {MOST} references", "use fewer")
            return self._value(value[KEY])
        if isinstance(value, Mapping):
            return {key: self._filled(item, left) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, left) for item in value]
        return value

    def _value(self, path: str) -> Any:
        match = _PATH.fullmatch(path) if len(path) <= LONGEST else None
        if match is None:
            raise InvalidArgs(f"{path[:80]!r} is not a reference", f"write it as {_EXAMPLE}")
        value, done = self._result(match["call"]), match["call"]
        for step in _STEP.finditer(match["steps"]):
            value = _stepped(value, step, done)
            done += step[0]
        return value

    def _result(self, name: str) -> Any:
        index = self._places.get(name)
        if index is None:
            known = ", ".join(f"call_{one + 1}" for one in sorted(self._given)) or "none"
            raise InvalidArgs(f"there is no call {name[:80]!r} in this request", f"earlier calls: {known}")
        if index not in self._given:
            raise InvalidArgs(f"{name} has no result yet", "refer only to calls that stand before this one")
        ok, data = self._given[index]
        if not ok:
            raise InvalidArgs(f"{name} gave no result: it was refused or failed", "look at its error first")
        return data


def _stepped(value: Any, step: re.Match[str], done: str) -> Any:
    if step[2] is not None:
        if not isinstance(value, list):
            raise InvalidArgs(f"{done} is not a list", f"it is {_shape(value)}")
        index = int(step[2])
        if index >= len(value):
            raise InvalidArgs(f"{done} has {len(value)} items, so none at [{index}]", "count from 0")
        return value[index]
    key = step[1] if step[1] is not None else step[3]
    if not isinstance(value, Mapping):
        raise InvalidArgs(f"{done} has no {key!r}", f"it is {_shape(value)}")
    if key not in value:
        raise InvalidArgs(
            f"{done} has no {key!r}", f"it has: {', '.join(list(map(str, value))[:20]) or 'nothing'}"
        )
    return value[key]


def _shape(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return f"a list of {len(value)}" if isinstance(value, list) else f"a {type(value).__name__}"
