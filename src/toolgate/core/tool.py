"""A Tool: one operation with a name, typed args and result, effects, a risk and a phase.

`@tool("weather.now", reads=["internet"])` makes one from a typed function. A tool that writes files is given
`plan` (args → Change) and the decorated function applies that Change; the gate shows, records, reconciles and
undoes the same value.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from toolgate.core import known_types
from toolgate.core.annotations import argument_names, hints_of
from toolgate.core.canonical import digest
from toolgate.core.change import Change
from toolgate.core.context import Context
from toolgate.core.effects import Effects, ReadWord, WriteWord
from toolgate.core.errors import CallError, InvalidArgs, SetupError
from toolgate.core.names import check_name
from toolgate.core.records import dataclass, field
from toolgate.core.tool_options import ToolOptions, check_options, check_plan, check_signatures

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolgate.core.known_types import KnownTypes
    from toolgate.core.paths import MountPath, Places
    from toolgate.core.result import Follow
    from toolgate.core.tool_types import Returns

    Arguments = BaseModel | SimpleNamespace

Risk = Literal["low", "medium", "high"]
Phase = Literal["observe", "experiment", "contribute", "collaborate"]
Outcome = Literal["happened", "not", "unknown"]
Handler = Callable[..., Any] | Callable[..., Awaitable[Any]]

DEFAULT_TIMEOUT = 30.0
_FEATURES = "toolgate.features."
MAX_SHOWN = 200
"""Characters of a name that a message quotes."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    name: str
    description: str
    run: Handler
    model: Callable[[], type[BaseModel]]
    """Makes the model of its arguments, when somebody asks for it."""
    effects: Effects = field(default_factory=Effects)
    risk: Risk = "low"
    phase: Phase = "observe"
    """The earliest phase whose table may allow it; a tool can only tighten its row, never loosen it."""
    timeout: float = DEFAULT_TIMEOUT
    cache_s: float = 0.0
    """How long a read's result may be served again; 0 means never. Writers are never cached."""
    plan: Handler | None = None
    preview: Handler | None = None
    undo: Handler | None = None
    reconcile: Handler | None = None
    effects_of: Callable[[Mapping[str, Any]], Effects] | None = None
    """Effects that depend on the arguments, such as a program with or without a network."""
    paths_of: Callable[[Any], Iterable[MountPath]] | None = None
    """Paths that arguments hold inside a text, such as those of a diff: policy judges them before anything is read."""
    repeats: tuple[str, ...] = ()
    """Arguments of which the Change's diff says it all, so that a question need not show them once more."""
    unrecorded: tuple[str, ...] = ()
    """Arguments that the journal never holds, because their texts may have to go for good, and rows cannot. A keyed hash
    stands for each; a question shows them; the tool keeps them under the call's id. What a preview shows is then not
    recorded either; `("preview",)` says so of that alone."""
    replays: bool = True
    """Whether the result of a call with a key is kept, to be given back. Not of a read whose texts may have to go."""
    plain: tuple[str, ...] = ()
    """Arguments that are called like secrets and hold none, such as the names of secrets: people must see them."""
    summarize: Callable[[Any], str] | None = None
    fit: Callable[[Any, int], Any] | None = None
    """Shortens a result to so many characters of JSON, and says in it what was cut and how to get it."""
    follow: Follow | None = None
    """Another call that this one leads to, made for the same caller once it is settled."""
    forwards: Callable[[Mapping[str, Any]], tuple[str, Mapping[str, Any]]] | None = None
    """Another call that this one stands for: that one passes the gate in its place, by its own name, and this never."""
    aliases: tuple[str, ...] = ()
    around: str = ""
    """An argument that may hold others, as some write them: `{"opts": {"ifMatch": …}}`."""
    origin: Literal["native", "imported"] = "native"
    listed: bool = True
    """Whether lists show it; one that cannot work on this machine is not shown, and says so when it is called."""
    free: bool = False
    """Needs no permission: describing the tools themselves."""
    human: bool = False
    """Only a human may call it: undo and the like."""
    asks: bool = False
    """A human is asked each time, whatever would allow it."""
    scoped: bool = False
    """Opts in to deduplication by scope hash for callers that give no key (events.log, garden edits)."""
    keeps_result: bool = False
    """Whether the journal keeps what it returned also where no key asks for it again: hashes and reasons of an edit."""
    lasting: bool = False
    """Whether what it makes cannot be taken back, although it plans a Change: it only creates where nothing is deleted."""
    returns: Callable[[], Returns | None] = lambda: None
    """Makes what is known of what it returns, when somebody asks for it."""
    feature: str = ""
    """The package of the feature that it is of, whose file may know its types."""
    input_schema_override: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.plan is not None and not self.effects.writes:
            raise SetupError(f"{self.name} plans a Change but declares no writes", "add writes=[...]")

    @cached_property
    def args(self) -> type[BaseModel]:
        return self.model()

    @cached_property
    def result(self) -> Returns | None:
        return self.returns()

    @cached_property
    def known(self) -> KnownTypes | None:
        """Its types, where they can be had without pydantic."""
        return known_types.find(self.feature, self.name, self.about) if self.feature else None

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """What an argument is where nobody gives it."""
        return _defaults(self.plan or self.run)

    @cached_property
    def about(self) -> str:
        """Hash of all that it says and that is no type."""
        typed = self.plan or self.run
        words = {**typed.__annotations__, "return": self.run.__annotations__.get("return", "")}
        return digest({**self._said(), "hints": {name: str(hint) for name, hint in words.items()}})

    @cached_property
    def definition(self) -> str:
        """Hash of everything a human relies on when approving; a changed tool invalidates approvals and grants."""
        return self.known.definition if self.known is not None else digest(self.describe())

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        if self.input_schema_override is not None:
            return dict(self.input_schema_override)
        if self.known is not None:
            return self.known.input_schema
        from toolgate.core.tool_types import LeanSchema

        schema = self.args.model_json_schema(schema_generator=LeanSchema)
        schema.pop("title", None)
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        if self.known is not None:
            return self.known.output_schema
        return self.result.schema() if self.result is not None else None

    @cached_property
    def argument_schema(self) -> Mapping[str, Any]:
        """The schema of the arguments under the names that the gate knows them by, whatever spellings are taken."""
        if self.input_schema_override is not None:
            return self.input_schema_override
        return (
            self.known.input_schema if self.known is not None else self.args.model_json_schema(by_alias=False)
        )

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """Every spelling of an argument that is understood, and the argument's name."""
        if self.known is not None:
            return self.known.spellings
        return {
            alias: name for name, info in self.args.model_fields.items() for alias in _spellings(name, info)
        }

    @cached_property
    def has_secrets(self) -> bool:
        """Whether a type among its arguments hides what it holds when it is dumped."""
        return self.input_schema_override is None and _writes_only(self.argument_schema)

    @cached_property
    def wants(self) -> Mapping[Handler, str]:
        """Which of its functions take a Context, and under which parameter name."""
        functions = (self.run, self.plan, self.preview, self.undo, self.reconcile)
        found = {function: _context_parameter(function) for function in functions if function is not None}
        return {function: name for function, name in found.items() if name}

    @cached_property
    def blocks(self) -> bool:
        """Whether running it would hold up the event loop, so that it needs a thread."""
        return not inspect.iscoroutinefunction(self.run)

    def describe(self) -> dict[str, Any]:
        """The definition, as `tools.help` shows it and as the definition hash covers it."""
        types = {"input_schema": self.input_schema, "output_schema": self.output_schema}
        return {"name": self.name, "description": self.description, **types, **self._said()}

    def _said(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "reads": list(self.effects.reads),
            "writes": list(self.effects.writes),
            "risk": self.risk,
            "phase": self.phase,
            "timeout": self.timeout,
            "origin": self.origin,
            "undoable": self.undoable,
        } | ({"asks": True} if self.asks else {})

    @property
    def undoable(self) -> bool:
        return not self.lasting and (self.plan is not None or self.undo is not None)

    def effects_for(self, args: Mapping[str, Any]) -> Effects:
        return self.effects_of(args) if self.effects_of is not None else self.effects

    def opened(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as one object, where some of them may be given in another."""
        if not self.around or not isinstance(raw.get(self.around), Mapping):
            return raw
        inner = raw[self.around]
        if twice := sorted(map(str, inner.keys() & raw.keys())):
            raise InvalidArgs(f"the arguments of {self.name} say {', '.join(twice)} twice", "say each once")
        return {name: value for name, value in raw.items() if name != self.around} | dict(inner)

    def _refuse_unknown(self, raw: Mapping[str, Any]) -> None:
        """There are more than it has: told by the first few, where pydantic would list every one."""
        known = self.spellings
        unknown = [str(name)[:MAX_SHOWN] for name in islice((one for one in raw if one not in known), 8)]
        if unknown:
            from toolgate.core.tool_types import unknown_args

            raise unknown_args(self, unknown)

    def validate(self, raw: Mapping[str, Any], places: Places | None = None) -> Arguments:
        """With `places`, paths may be absolute."""
        raw = self.opened(raw)
        if "pydantic" not in sys.modules and self.known is not None:
            with suppress(known_types.NotPlain):
                return self.known.take(raw, self.defaults, places)
        return self._validated(raw, places)

    def dump_args(self, args: Arguments) -> dict[str, Any]:
        """Validated arguments as JSON."""
        if isinstance(args, SimpleNamespace):
            return known_types.dump_args(args)
        dumped: dict[str, Any] = self.args.__pydantic_serializer__.to_python(args, mode="json")
        return dumped

    def dump(self, value: Any) -> Any:
        """What it returned as JSON."""
        if "pydantic" not in sys.modules and self.known is not None:
            with suppress(known_types.NotPlain):
                return self.known.dump(value)
        return self.result.dump(value) if self.result is not None else value

    def _validated(self, raw: Mapping[str, Any], places: Places | None) -> BaseModel:
        if len(raw) > len(self.spellings) and self.args.model_config.get("extra") == "forbid":
            self._refuse_unknown(raw)
        try:
            args: BaseModel = self.args.__pydantic_validator__.validate_python(raw, context=places)
            return args
        except CallError:
            raise
        except ValueError as error:
            from toolgate.core.tool_types import invalid

            raise invalid(self, error) from None
        except RecursionError:
            raise InvalidArgs(f"the arguments of {self.name} are nested too deeply", "flatten them") from None


def tool(
    name: str,
    *,
    reads: Iterable[ReadWord] = (),
    writes: Iterable[WriteWord] = (),
    plan: Handler | None = None,
    description: str = "",
    also: Mapping[str, str] | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[[Handler], Tool]:
    """Make a Tool from a typed function. With `plan`, the function applies the planned Change. `also` gives arguments
    another name, by which they can be given too."""
    check_options(name, options)

    def make(function: Handler) -> Tool:
        typed = plan or function
        feature = ".".join(typed.__module__.split(".")[:3]) if typed.__module__.startswith(_FEATURES) else ""
        check_signatures(name, argument_names(name, typed), options)
        if plan is not None:
            check_plan(name, plan, function)
        return Tool(
            name=name,
            description=description or inspect.getdoc(typed) or inspect.getdoc(function) or "",
            run=function,
            plan=plan,
            model=_model(name, typed, also or {}, late=bool(feature)),
            returns=partial(_returns, function),
            feature=feature,
            effects=Effects.of(tuple(reads), tuple(writes)),
            **options,
        )

    return make


def _model(
    name: str, function: Handler, also: Mapping[str, str], *, late: bool
) -> Callable[[], type[BaseModel]]:
    """Others learn at once, where their tool is made, what is wrong with its arguments."""

    def make() -> type[BaseModel]:
        from toolgate.core.tool_types import args_model

        return args_model(name, function, also)

    made = None if late else make()
    return make if made is None else lambda: made


def _returns(function: Handler) -> Returns | None:
    from toolgate.core.tool_types import returns

    return returns(function)


def _defaults(function: Any) -> Mapping[str, Any]:
    named, defaults = (
        function.__code__.co_varnames[: function.__code__.co_argcount],
        function.__defaults__ or (),
    )
    return dict(zip(named[len(named) - len(defaults) :], defaults, strict=True)) | (
        function.__kwdefaults__ or {}
    )


def _context_parameter(function: Handler) -> str:
    hints = hints_of(function)
    return next((name for name, hint in hints.items() if hint is Context and name != "return"), "")


def _spellings(name: str, info: Any) -> tuple[str, ...]:
    choices = getattr(info.validation_alias, "choices", ())
    return (name, *(choice for choice in choices if isinstance(choice, str)))


def _writes_only(part: Any) -> bool:
    """Whether a JSON schema holds something that may be written and not read back: pydantic's word for a secret."""
    if isinstance(part, list):
        return any(map(_writes_only, part))
    return isinstance(part, dict) and (part.get("writeOnly") is True or any(map(_writes_only, part.values())))


__all__ = ["Change", "Context", "Tool", "tool"]
