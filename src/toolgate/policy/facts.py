"""Facts about a call that is only imagined or long past, for examples, replay and explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolgate.core.names import Registry
from toolgate.core.paths import paths_in
from toolgate.core.ports import Facts
from toolgate.policy.model import ExampleCall

FactsFor = Callable[[ExampleCall], Facts]


def facts_from(registry: Registry, paused: Mapping[str, str] | None = None) -> FactsFor:
    """Resolves, validates and defaults a call as the gate does. Raises CallError for one that could not be made."""

    def facts_for(call: ExampleCall) -> Facts:
        tool = registry.resolve(call.tool)
        model = tool.validate(call.args)
        args = model.model_dump(mode="json")
        paths = tuple(paths_in(model))
        if tool.paths_of is not None:
            paths += tuple(tool.paths_of(model))
        return Facts(call.persona, tool, args, tool.effects_for(args), paths, paused or {})

    return facts_for
