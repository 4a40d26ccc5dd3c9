"""Options of `@toolgate.tool`: typed, so that editors complete them, and checked when the tool is made.

A `preview`, `undo` or `reconcile` that does not take the tool's arguments would fail when a human waits for it or when
something must be taken back; here it fails when the module is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from toolgate.core.annotations import hints_of
from toolgate.core.context import Context
from toolgate.core.errors import SetupError

if TYPE_CHECKING:
    from toolgate.core.effects import Effects
    from toolgate.core.paths import MountPath
    from toolgate.core.result import Follow
    from toolgate.core.tool import Handler, Phase, Risk

_NAMELESS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


class ToolOptions(TypedDict, total=False):
    """What each means is said at the field of the same name of `Tool`."""

    risk: Risk
    phase: Phase
    timeout: float
    cache_s: float
    preview: Handler | None
    undo: Handler | None
    reconcile: Handler | None
    effects_of: Callable[[Mapping[str, Any]], Effects] | None
    paths_of: Callable[[Any], Iterable[MountPath]] | None
    repeats: tuple[str, ...]
    unrecorded: tuple[str, ...]
    replays: bool
    keeps_result: bool
    lasting: bool
    forwards: Callable[[Mapping[str, Any]], tuple[str, Mapping[str, Any]]] | None
    plain: tuple[str, ...]
    summarize: Callable[[Any], str] | None
    fit: Callable[[Any, int], Any] | None
    follow: Follow | None
    aliases: tuple[str, ...]
    around: str
    origin: Literal["native", "imported"]
    listed: bool
    free: bool
    human: bool
    asks: bool
    scoped: bool


def check_options(name: str, given: Iterable[str]) -> None:
    """What `**options` would only tell with the name of an internal class."""
    known = [*ToolOptions.__annotations__, "reads", "writes", "plan", "description", "also"]
    for option in given:
        if option not in known:
            import difflib  # for a mistake only

            near = difflib.get_close_matches(option, known, n=1)
            fix = f"did you mean `{near[0]}`?" if near else f"the options are: {', '.join(sorted(known))}"
            raise SetupError(f"{name}: a tool has no option {option!r}", fix)


def check_signatures(name: str, args: Iterable[str], options: ToolOptions) -> None:
    """Each of these functions is called with the tool's arguments by name, and with a Context if it has a place for one."""
    wanted = list(args)
    handlers = {key: options.get(key) for key in ("preview", "undo", "reconcile")}
    for key, function in handlers.items():
        if function is not None:
            _check_takes(name, key, _called(name, key, function), wanted)


def check_plan(name: str, plan: Handler, apply: Handler) -> None:
    """`plan` gives a Change; the decorated function is called with that Change and nothing else."""
    from toolgate.core.change import Change

    _called(name, "plan", plan)
    gives = hints_of(plan).get("return", Change)
    if gives is not Change:
        shown = getattr(gives, "__name__", str(gives))
        raise SetupError(
            f"{name}: `plan` returns {shown}, not a Change",
            "plan what will be written and return toolgate.Change(files, ...)",
        )
    hints = hints_of(apply)
    taken = [each for each in _called(name, "the function", apply) if hints.get(each.name) is not Context]
    needed = [each for each in taken if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if not taken or len(needed) > 1 or hints.get(taken[0].name, Change) is not Change:
        told = ", ".join(each.name for each in taken) or "nothing"
        raise SetupError(
            f"{name}: with `plan`, the function is called with the planned Change alone; it takes {told}",
            "write it as `async def apply(change: toolgate.Change)`; the arguments are those of `plan`",
        )


def _called(name: str, key: str, function: Any) -> list[inspect.Parameter]:
    if not callable(function):
        raise SetupError(f"{name}: `{key}` is {function!r}, not a function", "give the function itself")
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some of C have none: whether it fits shows when it is called
        return [inspect.Parameter("any", inspect.Parameter.VAR_KEYWORD)]


def _check_takes(name: str, key: str, parameters: list[inspect.Parameter], wanted: list[str]) -> None:
    fix = f"it is called with the tool's arguments by name: ({', '.join(wanted)}); a Context may be added"
    function_takes = {each.name for each in parameters if each.kind not in _NAMELESS}
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters)
    missing = [] if anything else [one for one in wanted if one not in function_takes]
    if missing:
        raise SetupError(f"{name}: `{key}` does not take {_listed(missing)}", fix)
    more = [
        each.name
        for each in parameters
        if each.name not in wanted
        and each.default is each.empty
        and each.kind is not each.VAR_KEYWORD
        and each.kind is not each.VAR_POSITIONAL
        and not _is_context(each)
    ]
    if more:
        raise SetupError(f"{name}: `{key}` wants {_listed(more)}, which the tool does not have", fix)


def _is_context(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is Context or str(parameter.annotation).rpartition(".")[2] == "Context"


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
