"""Facts about a call that is only imagined or long past, for examples, replay and explain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from toolgate.core.finding import Finding, FindingKind
from toolgate.core.names import Registry
from toolgate.core.paths import MountPath, paths_in
from toolgate.core.ports import Facts

if TYPE_CHECKING:
    from toolgate.policy.model import ExampleCall

FactsFor = Callable[["ExampleCall"], Facts]


def facts_from(registry: Registry, paused: Mapping[str, str] | None = None) -> FactsFor:
    """Resolves, validates and defaults a call as the gate does. Raises CallError for one that could not be made."""

    def facts_for(call: ExampleCall) -> Facts:
        tool = registry.resolve(call.tool)
        given = tool.validate(call.args)
        args = tool.dump_args(given)
        paths = tuple(paths_in(vars(given)))
        if tool.paths_of is not None:
            paths += tuple(tool.paths_of(given))
        findings = tuple(_imagined(word, paths) for word in call.findings)
        effects = tool.effects_for(args)
        changed = paths if tool.plan is not None and effects.writes else None  # as far as its arguments tell
        return Facts(call.persona, tool, args, effects, paths, paused or {}, findings, changed)

    return facts_for


def _imagined(word: str, paths: Sequence[MountPath]) -> Finding:
    kind, _, rule = word.partition(":")
    where = paths[0] if paths else MountPath("project:.")
    return Finding(cast(FindingKind, kind), rule or "any", where, 0, 0, "")
