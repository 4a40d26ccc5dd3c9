"""Stage 1: a name or alias becomes a tool; a miss suggests near names."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from toolgate.core.context import NO_TRAIL
from toolgate.core.display import encodable
from toolgate.core.errors import InvalidArgs, UnknownTool
from toolgate.core.names import LONGEST, is_persona
from toolgate.gate.flow import Flow, Services

MAX_WORD = 256


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
    return None


async def _wait(services: Services, flow: Flow, miss: UnknownTool) -> None:
    assert services.registry.late is not None
    if not await services.registry.late(flow.name):
        raise miss
    flow.tool = services.registry.resolve(flow.name)


def _check_words(flow: Flow) -> None:
    """Ids and reasons go into the journal; line breaks and control characters would let one pose as another."""
    trail = flow.trail
    ids = (
        ("conversation", trail.conversation), ("transaction", trail.transaction), ("action", trail.action),
        ("plan", trail.plan), ("step", trail.step), ("key", flow.key),
    )  # fmt: skip
    for name, value in ids:
        if value and not (isinstance(value, str) and len(value) <= MAX_WORD and value.isprintable()):
            raise InvalidArgs(
                f"{name} is not a plain id: {str(value)[:80]!r}", f"use up to {MAX_WORD} printable characters"
            )
    if not trail.reason:
        return
    if not isinstance(trail.reason, str) or encodable(trail.reason) != trail.reason:
        raise InvalidArgs("the reason is not valid text", "say it in UTF-8")
    if len(trail.reason) > 4000:
        raise InvalidArgs(f"the reason has {len(trail.reason):,} characters", "say it in 4,000")
