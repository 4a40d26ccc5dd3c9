"""Stage 1: a name or alias becomes a tool; a miss suggests near names."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.context import NO_TRAIL, Trail
from toolgate.core.display import encodable
from toolgate.core.errors import InvalidArgs, UnknownTool
from toolgate.core.names import LONGEST, is_persona
from toolgate.gate.flow import MAX_NAME

if TYPE_CHECKING:
    from toolgate.gate.flow import Flow, Services

MAX_WORD = 256
MAX_REASON = 4000

_OWN_KEYS = ("j_", "sched-", "r_")
"""How the keys of jobs, schedules and runs begin."""
_KEY_NAMES = frozenset({"idempotency_key", "idempotencyKey"})


def resolve(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    """Gives back something to await only where the name may belong to a server that has not been asked yet."""
    if not isinstance(flow.name, str) or not isinstance(flow.persona, str):
        raise InvalidArgs("tool and persona must be strings", "pass their names")
    if len(flow.persona) > LONGEST or not is_persona(flow.persona):
        raise InvalidArgs(
            f"{flow.persona[:80]!r} is not a persona's name", "use letters, digits, `_`, `-`, `.`"
        )
    if flow.trail is not NO_TRAIL or flow.key is not None:
        _check_words(flow)
    try:
        flow.tool = services.registry.resolve(flow.name)
    except UnknownTool as miss:
        if services.registry.late is None:
            raise
        return _wait(services, flow, miss)
    return _forward(services, flow) if flow.tool.forwards is not None else None


async def _wait(services: Services, flow: Flow, miss: UnknownTool) -> None:
    assert services.registry.late is not None
    if not await services.registry.late(flow.name):
        raise miss
    flow.tool = services.registry.resolve(flow.name)


def _forward(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    """From here on it is the call that it stands for, as if that had been made: no stage and no event sees the other."""
    assert flow.tool is not None
    assert flow.tool.forwards is not None
    if not isinstance(flow.raw, Mapping):
        return None  # which `validate` refuses
    around = flow.tool.name
    name, flow.raw = flow.tool.forwards(flow.raw)
    flow.name, flow.tool = name[:MAX_NAME], None
    if services.registry.canonical(flow.name) == around:
        raise InvalidArgs(f"{around} cannot call {around}", "name the tool that you want")
    return resolve(services, flow)


def check_own(key: str) -> None:
    if key.startswith(_OWN_KEYS):
        raise InvalidArgs(f"the key {key[:80]!r} is one of a job's or a run's", "let keys begin otherwise")


def take_key(services: Services, flow: Flow) -> None:
    """A key that is written among the arguments, or in what is around them, as the garden's document has it."""
    assert flow.tool is not None
    around = flow.tool.around
    inner = flow.raw.get(around)
    for place in (flow.raw, inner if isinstance(inner, Mapping) else {}):
        for name in _KEY_NAMES & place.keys():
            key = place[name]
            check_lengths(None, key)
            left = {each: value for each, value in place.items() if each != name}
            flow.raw = left if place is flow.raw else {**flow.raw, around: left}
            if key and isinstance(key, str):
                check_own(key)
                flow.key = services.redactor.redact(key)
            _check_words(flow)
            return


def check_lengths(trail: Trail | None, key: str | None) -> None:
    """What is said about a call is short: found out before secrets are looked for in it."""
    if key is None and (trail is None or trail is NO_TRAIL):
        return
    trail = trail or NO_TRAIL
    for name, value in _ids(trail, key):
        if isinstance(value, str) and len(value) > MAX_WORD:
            raise _not_an_id(name, value)
    if isinstance(trail.reason, str) and len(trail.reason) > MAX_REASON:
        raise InvalidArgs(f"the reason has {len(trail.reason):,} characters", f"say it in {MAX_REASON:,}")


def _check_words(flow: Flow) -> None:
    """Ids and reasons go into the journal; line breaks and control characters would let one pose as another."""
    for name, value in _ids(flow.trail, flow.key):
        if value and not (isinstance(value, str) and value.isprintable()):
            raise _not_an_id(name, value)
    reason = flow.trail.reason
    if reason and (not isinstance(reason, str) or encodable(reason) != reason):
        raise InvalidArgs("the reason is not valid text", "say it in UTF-8")


def _ids(trail: Trail, key: str | None) -> tuple[tuple[str, str | None], ...]:
    return (
        ("conversation", trail.conversation), ("transaction", trail.transaction), ("action", trail.action),
        ("plan", trail.plan), ("step", trail.step), ("run", trail.run), ("key", key),
    )  # fmt: skip


def _not_an_id(name: str, value: object) -> InvalidArgs:
    # not a word of it: a part of a secret would not be known as one
    what = f"{len(value):,} characters" if isinstance(value, str) else type(value).__name__
    return InvalidArgs(f"{name} is not a plain id ({what})", f"use up to {MAX_WORD} printable characters")
