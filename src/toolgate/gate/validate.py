"""Stage 2: raw arguments become typed, defaulted, canonical ones; paths become mount + relative path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from toolgate.core.call import Call
from toolgate.core.canonical import screen
from toolgate.core.errors import InvalidArgs, TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.core.tool import Tool
from toolgate.gate.flow import Flow, Services

_NESTED = frozenset({dict, list, tuple})
"""Values that can be deep; flat ones are looked at when they are spelled."""


def validate(services: Services, flow: Flow) -> None:
    tool = flow.tool
    assert tool is not None
    if not isinstance(flow.raw, Mapping):
        raise InvalidArgs(
            f"arguments must be an object, not {type(flow.raw).__name__}", "pass {name: value, ...}"
        )
    if any(type(value) in _NESTED for value in flow.raw.values()):
        screen(flow.raw)
    flow.args = tool.validate(flow.raw)
    args = _as_json(tool, flow.args)
    flow.call = Call.make(tool.name, tool.definition, args, flow.persona, flow.trail, flow.call_id)
    if len(flow.call.args_json) > services.budget.args_bytes:
        raise TooLarge(
            f"the arguments of {tool.name} are {len(flow.call.args_json):,} bytes, "
            f"the limit is {services.budget.args_bytes:,}",
            "send less at once",
        )
    if "\\u0000" in flow.call.args_json:
        _refuse_nul(args)
    flow.facts = Facts(flow.persona, tool, args, tool.effects_for(args), tuple(_paths(tool, flow.args)))


def _as_json(tool: Tool, args: BaseModel) -> dict[str, Any]:
    """The arguments that identify the call. Secrets count for the digest; the journal gets them masked."""
    dumped: dict[str, Any] = tool.args.__pydantic_serializer__.to_python(args, mode="json")
    for name in tool.secret_args:
        dumped[name] = _revealed(getattr(args, name), dumped[name])
    return dumped


def _revealed(value: Any, dumped: Any) -> Any:
    """What was dumped, with secrets at any depth as they are: two calls with different ones are two calls."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return {name: _revealed(getattr(value, name), item) for name, item in dumped.items()}
    if isinstance(value, Mapping):
        return {
            key: _revealed(one, item) for one, (key, item) in zip(value.values(), dumped.items(), strict=True)
        }
    if isinstance(value, list | tuple):
        return [_revealed(one, item) for one, item in zip(value, dumped, strict=True)]
    return dumped


def _refuse_nul(value: Any, where: str = "") -> None:
    """The escape was seen in the JSON; only a real NUL counts, not a text that spells one."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidArgs(f"{where or 'an argument'} has a NUL character", "remove it")
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        _refuse_nul(key, where)
        _refuse_nul(item, f"{where}.{key}" if where else str(key))


def _paths(tool: Tool, args: BaseModel) -> Iterator[MountPath]:
    for name in tool.path_args:
        yield from _paths_in(getattr(args, name))
    if tool.paths_of is not None:
        yield from tool.paths_of(args)


def _paths_in(value: Any) -> Iterator[MountPath]:
    """Paths at any depth: one that policy does not see is one that it does not judge."""
    if isinstance(value, MountPath):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _paths_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _paths_in(key)
            yield from _paths_in(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _paths_in(item)
