"""Grants: whether one covers a call (exactly what it says, never more), and the narrowest that a question lends itself to:
its own paths, and its own arguments, each as a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from toolgate.core.canonical import canonical
from toolgate.core.effects import Effects
from toolgate.core.errors import CallError, ConfigError, InvalidArgs, SetupError
from toolgate.core.paths import MountPath, paths_in
from toolgate.core.records import dataclass
from toolgate.core.wire import loads
from toolgate.policy.globs import escaped, path_glob

if TYPE_CHECKING:
    from toolgate.core.call import Call
    from toolgate.core.decision import Question
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


_glob = lru_cache(maxsize=256)(path_glob)


def check_scope(args: Mapping[str, Any], paths: Iterable[str]) -> None:
    """Refuse a grant that could never be read back."""
    compile_conditions(canonical(dict(args)))
    try:
        for text in paths:
            _glob(text)
    except ConfigError as error:
        raise InvalidArgs(error.message, error.fix) from None


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
        given = tool.validate(question.args)
        found = (*paths_in(vars(given)), *(tool.paths_of(given) if tool.paths_of is not None else ()))
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
