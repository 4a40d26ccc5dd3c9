"""Stage 2: raw arguments become typed, defaulted, canonical ones; paths become mount + relative path."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from toolgate.core.apart import apart
from toolgate.core.bounds import measure
from toolgate.core.call import Call
from toolgate.core.canonical import screen
from toolgate.core.errors import InvalidArgs, TooLarge
from toolgate.core.paths import MountPath, paths_in
from toolgate.core.ports import Facts
from toolgate.core.wire import is_words
from toolgate.gate.flow import LARGE, Flow, Services
from toolgate.gate.resolve import take_key

_NESTED = frozenset({dict, list, tuple, float})
"""Values that can be deep or have two spellings; the others are looked at when they are spelled."""
_FLAT = frozenset({str, int, bool, float, type(None)})


def validate(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    """Measured first, so that nothing below meets more than it can look at; what is large, in a thread."""
    if type(flow.raw) is not dict and not isinstance(flow.raw, Mapping):
        raise InvalidArgs(
            f"arguments must be an object, not {type(flow.raw).__name__}", "pass {name: value, ...}"
        )
    if measure(flow.raw, services.budget.args) > LARGE:
        return _aside(services, flow)
    _validate(services, flow)
    return None


async def _aside(services: Services, flow: Flow) -> None:
    """Checking megabytes, or looking for secrets and paths in them, takes seconds, which nobody else shall wait for."""
    await apart(_validate, services, flow)


def _validate(services: Services, flow: Flow) -> None:
    tool = flow.tool
    assert tool is not None
    if tool.around and flow.key is None:
        take_key(services, flow)
    nested = not _NESTED.isdisjoint(map(type, flow.raw.values()))
    if nested:
        screen(flow.raw)
    flow.args = tool.validate(flow.raw, services.places)
    args = tool.dump_args(flow.args)
    if tool.has_secrets:  # they count for the digest; the journal gets them masked
        args = {name: _revealed(getattr(flow.args, name), item) for name, item in args.items()}
    _identify(services, flow, args, nested, services.redactor.seal(tool, args))
    _judge_by(flow, args)


def _identify(
    services: Services, flow: Flow, args: dict[str, Any], nested: bool, found: tuple[Any, tuple[str, ...]]
) -> None:
    tool = flow.tool
    assert tool is not None
    assert flow.args is not None
    sealed, flow.hidden = found
    flow.call = Call.make(tool.name, tool.definition, args, flow.persona, flow.trail, flow.call_id, sealed)
    spelled = flow.call.args_json
    if nested and not tool.has_secrets:
        import orjson

        # 1 and 1.0 are one number in JSON: the tool gets the spelling that was digested, shown and approved
        flow.args = tool.validate(orjson.loads(spelled))
    if len(spelled) > services.budget.args.size:
        raise TooLarge(
            f"the arguments of {tool.name} are {len(spelled):,} bytes, "
            f"the limit is {services.budget.args.size:,}",
            "send less at once",
        )
    if "\\u0000" in spelled:
        _refuse_nul(args)


def _judge_by(flow: Flow, args: dict[str, Any]) -> None:
    """What policy is told: the paths among the arguments, and those that the tool says are in them."""
    tool = flow.tool
    assert tool is not None
    assert flow.args is not None
    values = flow.args.__dict__.values()
    paths: tuple[MountPath, ...] = ()
    if not _FLAT.issuperset(map(type, values)):
        paths = tuple(
            path
            for value in values
            if type(value) not in _FLAT and not is_words(value)
            for path in paths_in(value)
        )
    if tool.paths_of is not None:
        paths += tuple(tool.paths_of(flow.args))
    effects = tool.effects_for(args)
    flow.facts, flow.effectful = Facts(flow.persona, tool, args, effects, paths), effects.effectful


def _revealed(value: Any, dumped: Any) -> Any:
    """What was dumped, with secrets at any depth as they are: two calls with different ones are two calls."""
    from dataclasses import is_dataclass

    from pydantic import BaseModel, Secret, SecretBytes, SecretStr
    from pydantic_core import to_jsonable_python

    if isinstance(value, SecretStr | SecretBytes | Secret):
        hidden = value.get_secret_value()
        return hidden.hex() if isinstance(hidden, bytes) else to_jsonable_python(hidden)
    if isinstance(value, BaseModel) or is_dataclass(value):
        return {name: _revealed(getattr(value, name), item) for name, item in dumped.items()}
    if isinstance(value, Mapping):
        return {
            key: _revealed(one, item) for one, (key, item) in zip(value.values(), dumped.items(), strict=True)
        }
    if isinstance(value, set | frozenset):
        return sorted((_revealed(one, item) for one, item in zip(value, dumped, strict=True)), key=str)
    if isinstance(value, list | tuple):
        return [_revealed(one, item) for one, item in zip(value, dumped, strict=True)]
    return dumped


def _refuse_nul(args: dict[str, Any]) -> None:
    """The escape was seen in the JSON; only a real NUL counts, not a text that spells one."""
    for name, given in args.items():
        waiting: list[Any] = [name, given]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str) and "\0" in value:
                raise InvalidArgs(f"{name[:80]!r} has a NUL character in it", "remove it")
            if isinstance(value, dict):
                waiting.extend(value)
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
