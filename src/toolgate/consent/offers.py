"""The narrowest grants that a question lends itself to: its own paths, and its own arguments, each as a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from toolgate.core.errors import CallError, InvalidArgs, SetupError
from toolgate.core.paths import MountPath, paths_in
from toolgate.core.records import dataclass
from toolgate.policy.globs import escaped

if TYPE_CHECKING:
    from toolgate.core.decision import Question
    from toolgate.core.tool import Tool

SHORT = 120
"""Characters of a text that a condition repeats; of a longer one it has the hash."""
MANY = 64
ARGV = "argv"
FREE = frozenset({"timeout", "timeout_ms"})
"""How long a program may take is limited anyway, and no part of what it is."""
_AT_MOST = frozenset({"secrets", "packages"})
"""Lists of which a call may also have a part."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One argument, and the condition under which a call is like the one that was asked about."""

    name: str
    condition: Mapping[str, Any]


def limits(question: Question, paths: Iterable[MountPath] = ()) -> list[Limit]:
    """For every argument that is not one of these paths."""
    known = {str(path) for path in paths}
    return [
        Limit(name, condition_of(name, value))
        for name, value in question.args.items()
        if name not in FREE and not ((texts := _texts(value)) and known.issuperset(texts))
    ]


def condition_of(name: str, value: Any) -> dict[str, Any]:
    """At most these hosts or names, exactly this text, or what has this hash."""
    if value is None:
        return {"exists": False}
    if isinstance(value, bool | int | float) or (isinstance(value, str) and _short(value)):
        return {"equals": value}
    if name == "network" and isinstance(value, Mapping) and not value.get("methods"):
        value = value.get("hosts")  # with methods, a grant for the hosts alone would be for every method
    texts = _texts(value)
    if 0 < len(texts) <= MANY:
        if name == "network" and all(map(_is_host, texts)):
            return {"host": texts}
        if name in _AT_MOST and all(map(_short, texts)):
            return {"in": texts}
    from toolgate.policy.conditions import hash_of

    return {"sha256": [hash_of(value)]}


@dataclass(frozen=True, slots=True)
class GrantChoice:
    """A grant that a question lends itself to, ready to be given."""

    key: Literal["same", "program", "paths"]
    label: str
    """What is covered, without its values: each has its own place, where it is quoted."""
    args: Mapping[str, Any]
    paths: tuple[str, ...] = ()


def choices(question: Question, paths: Iterable[MountPath] = ()) -> list[GrantChoice]:
    """The same call again; this program with any arguments; these paths with any other arguments. None is for more
    than the call may reach: that is kept by whoever judges a grant."""
    paths = tuple(paths)
    known = globs(paths)
    every = {limit.name: dict(limit.condition) for limit in limits(question)}
    found = []
    if known:
        whole = len(known) == 1 and known[0].endswith("/**")
        label = "calls on everything in this directory" if whole else "calls on these paths"
        found.append(GrantChoice("paths", label, {} if whole else sides(question, paths), tuple(known)))
    if (program := program_of(question)) is not None:
        found.append(GrantChoice("program", "this program with any arguments", every | {ARGV: program}))
    return [GrantChoice("same", "the same command" if program else "the same call", every), *found]


def sides(question: Question, paths: Iterable[MountPath]) -> dict[str, Any]:
    """Where several arguments are paths, each keeps its own: a move from here to there is none from there to here."""
    paths = tuple(paths)
    known = {str(path) for path in paths} | {path.relative for path in paths}
    named = [name for name, value in question.args.items() if isinstance(value, str) and value in known]
    every = {limit.name: dict(limit.condition) for limit in limits(question)}
    return {name: every[name] for name in named} if len(named) > 1 else {}


def program_of(question: Question) -> dict[str, Any] | None:
    """The condition that keeps the program of an argv, and nothing that comes after it."""
    given = question.args.get(ARGV)
    if not isinstance(given, list | tuple) or not given or not isinstance(given[0], str):
        return None
    return {"begins": [given[0]]} if _short(given[0]) else None


def same(question: Question, names: Iterable[str]) -> dict[str, Any]:
    """Conditions that keep these arguments as they are in the question."""
    offered = {limit.name: dict(limit.condition) for limit in limits(question)}
    chosen = list(names)
    for name in chosen:
        if name not in offered:
            known = ", ".join(offered) or "none"
            raise InvalidArgs(f"the question has no argument {name[:80]!r}", f"it has: {known}")
    return {name: offered[name] for name in chosen}


def paths_of(question: Question, tool: Tool | None) -> tuple[MountPath, ...]:
    """The paths that policy and grants see in this call; none where they cannot be known."""
    if tool is None:
        return ()
    try:
        model = tool.validate(question.args)
        found = (*paths_in(model), *(tool.paths_of(model) if tool.paths_of is not None else ()))
    except (CallError, ValueError):  # what is recorded of it is masked or cut
        return ()
    return tuple(dict.fromkeys(found))


def globs(paths: Iterable[MountPath]) -> list[str]:
    """The files themselves; of many, the directory that they share, if they share one."""
    found = list(dict.fromkeys(paths))
    if any(path.relative == "." for path in found):  # a whole mount is no narrow offer
        return []
    if len(found) <= MANY:
        return [escaped(path) for path in found]
    shared = {(path.mount, path.relative.rpartition("/")[0]) for path in found}
    mount, directory = shared.pop()
    if shared or not directory:
        return []
    return [f"{escaped(MountPath(f'{mount}:{directory}'))}/**"]


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list | tuple) else [value]
    return list(items) if items and all(isinstance(item, str) for item in items) else []


def _short(text: str) -> bool:
    return len(text) <= SHORT and text.isprintable()


def _is_host(text: str) -> bool:
    from toolgate.policy.endpoints import check_host

    try:
        check_host(text)
    except SetupError:
        return False
    return True
