"""Whether a grant covers a call: exactly what it says, never more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolgate.ledger.state import Grant, State
from toolgate.policy.conditions import holds
from toolgate.policy.globs import path_matches

if TYPE_CHECKING:
    from toolgate.core.call import Call
    from toolgate.core.paths import MountPath


def grant_for(state: State, call: Call, paths: Iterable[MountPath], rights: str, now: int) -> Grant | None:
    """A live grant for this call. A changed tool or persona, or a used-up grant, covers nothing."""
    for grant in state.grants.values():
        if grant.row.persona != call.persona or grant.row.tool != call.tool or grant.expires <= now:
            continue
        body = grant.body
        if body["definition"] != call.definition or body["rights"] != rights:
            continue
        if body.get("max_uses") and grant.uses >= body["max_uses"]:
            continue
        if body.get("only_conversation", "") not in ("", call.trail.conversation):
            continue
        globs = body.get("paths") or ()
        listed = tuple(paths)
        if globs and not (listed and all(any(path_matches(g, p) for g in globs) for p in listed)):
            continue
        if holds(body.get("args") or {}, call.args):
            return grant
    return None
