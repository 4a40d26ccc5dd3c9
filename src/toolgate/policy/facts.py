"""Facts about a call that is only imagined or long past, for examples, replay and explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolgate.core.names import Registry
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.policy.model import ExampleCall

FactsFor = Callable[[ExampleCall], Facts]


def facts_from(registry: Registry, paused: Mapping[str, str] | None = None) -> FactsFor:
    """Resolves, validates and defaults a call as the gate does. Raises CallError for one that could not be made."""

    def facts_for(call: ExampleCall) -> Facts:
        tool = registry.resolve(call.tool)
        model = tool.validate(call.args)
        args = model.model_dump(mode="json")
        paths = tuple(path for name in tool.path_args for path in _paths(getattr(model, name)))
        if tool.paths_of is not None:
            paths += tuple(tool.paths_of(model))
        return Facts(call.persona, tool, args, tool.effects_for(args), paths, paused or {})

    return facts_for


def _paths(value: Any) -> Iterator[MountPath]:
    if isinstance(value, MountPath):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _paths(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _paths(item)
