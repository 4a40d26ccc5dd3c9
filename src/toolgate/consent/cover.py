"""Whether a grant covers a call: exactly what it says, never more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import canonical
from toolgate.core.effects import Effects
from toolgate.core.errors import ConfigError, InvalidArgs
from toolgate.core.wire import loads
from toolgate.policy.globs import PathGlob, path_glob

if TYPE_CHECKING:
    from toolgate.core.call import Call
    from toolgate.core.paths import MountPath
    from toolgate.core.ports import Facts
    from toolgate.core.tool import Tool
    from toolgate.ledger.state import Grant, State
    from toolgate.policy.conditions import Condition


def grant_for(
    state: State,
    call: Call,
    facts: Facts,
    rights: str,
    now: int,
    channels: tuple[str, ...] = (),
) -> Grant | None:
    """A live grant for this call. A changed tool or persona, or a used-up grant, covers nothing."""
    for grant in state.grants_of(call.persona, call.tool):
        if grant.expires > now:
            body = grant.body
            if (
                body["definition"] == call.definition
                and (not channels or body["channel"] in channels)
                and body["rights"] == rights
                and not 0 < body.get("max_uses", 0) <= grant.uses
                and fits(body, call.trail.conversation, facts.paths, call.args)
                and _given_with(body, facts.tool).cover(facts.effects)
            ):
                return grant
    return None


def _given_with(body: Mapping[str, Any], tool: Tool) -> Effects:
    """What the call that was approved could do. No grant is for more: no network, secrets or view that nobody saw."""
    return Effects.recorded(body["effects"]) if body.get("effects") else tool.effects


def fits(
    body: Mapping[str, Any], conversation: str, paths: tuple[MountPath, ...], args: Mapping[str, Any]
) -> bool:
    """Whether a call is one of those that a grant's words are about; `body` has the fields of a `granted` event."""
    return (
        body.get("only_conversation", "") in ("", conversation)
        and _paths_fit(body.get("paths") or (), paths)
        and _args_fit(body.get("args") or {}, args)
    )


def _paths_fit(globs: Iterable[str], paths: tuple[MountPath, ...]) -> bool:
    compiled = [_glob(text) for text in globs]
    if not compiled:
        return True
    return bool(paths) and all(any(glob.matches(path) for glob in compiled) for path in paths)


def _args_fit(conditions: Mapping[str, Any], args: Mapping[str, Any]) -> bool:
    """One value that was kept is that value: a rule also finds it in a list of the same, a grant does not."""
    return not conditions or all(
        one.holds(args)
        and not ("equals" in conditions[one.name] and isinstance(args.get(one.name), list | tuple | Mapping))
        for one in compile_conditions(canonical(conditions))
    )


@lru_cache(maxsize=256)
def compile_conditions(text: str) -> tuple[Condition, ...]:
    from pydantic import ValidationError

    from toolgate.policy.conditions import Condition
    from toolgate.policy.model import ConditionSpec

    try:
        specs = {name: ConditionSpec.model_validate(spec) for name, spec in loads(text).items()}
    except ValidationError as error:
        raise InvalidArgs(
            f"the grant's conditions are wrong: {error.errors()[0]['msg']}", "see docs/policy.md"
        ) from None
    return tuple(Condition(name, spec, strict=False) for name, spec in specs.items())


@lru_cache(maxsize=256)
def _glob(text: str) -> PathGlob:
    return path_glob(text)


def check_scope(args: Mapping[str, Any], paths: Iterable[str]) -> None:
    """Refuse a grant that could never be read back."""
    compile_conditions(canonical(dict(args)))
    try:
        for text in paths:
            _glob(text)
    except ConfigError as error:
        raise InvalidArgs(error.message, error.fix) from None
