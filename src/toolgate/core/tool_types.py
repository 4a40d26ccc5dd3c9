"""Types of a tool's function: a model of its arguments, bounded, and what it returns as JSON and as a schema.

All of a Tool that needs pydantic, which takes longer to load than a gate to open.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import annotated_types
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from toolgate.core.annotations import for_pydantic, hints_of
from toolgate.core.bounds import MAX_ITEMS, MAX_KEY, MAX_TEXT
from toolgate.core.context import Context
from toolgate.core.errors import InvalidArgs
from toolgate.core.tool import MAX_SHOWN

if TYPE_CHECKING:
    from toolgate.core.tool import Handler, Tool


class LeanSchema(GenerateJsonSchema):
    """Without a title for every field, which only says its name again: models pay for each word of a tool list."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Args(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        strict=False,
        populate_by_name=True,
        arbitrary_types_allowed=True,
        defer_build=True,  # a server that starts for one call builds the validators of one tool
    )


class Returns:
    """What a tool's function returns: as JSON, and as a schema. Worked out when it is first needed."""

    def __init__(self, hint: Any) -> None:
        self._hint = hint

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._hint)

    @cached_property
    def _to_python(self) -> Callable[..., Any]:
        return self._adapter.serializer.to_python

    def dump(self, value: Any) -> Any:
        return self._to_python(value, mode="json")

    def schema(self) -> dict[str, Any]:
        return self._adapter.json_schema(mode="serialization", schema_generator=LeanSchema)


def args_model(name: str, function: Handler, also: Mapping[str, str]) -> type[BaseModel]:
    hints = hints_of(function)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if hints.get(parameter.name) is Context:
            continue
        default = ... if parameter.default is parameter.empty else _cheap_to_copy(parameter.default)
        fields[parameter.name] = _field(
            parameter.name, for_pydantic(hints[parameter.name]), default, also.get(parameter.name)
        )
    return create_model(f"{name} arguments", __base__=Args, **fields)


class _FlatList(list[Any]):
    """A default that pydantic copies at every call, as deeply as it can: here there is nothing deep."""

    def __deepcopy__(self, memo: Any) -> list[Any]:
        return list(self)


def _cheap_to_copy(default: Any) -> Any:
    flat = type(default) is list and all(type(item) in (str, int, float, bool) for item in default)
    return _FlatList(default) if flat else default


def _field(name: str, hint: Any, default: Any, other: str | None) -> tuple[Any, Any]:
    """Accept the documents' camelCase spelling beside ours, and their other names."""
    spellings = dict.fromkeys(each for given in (name, other) if given for each in (given, _camel(given)))
    if len(spellings) == 1:
        return _bounded(hint), default
    return _bounded(hint), Field(default, validation_alias=AliasChoices(*spellings))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def returns(function: Handler) -> Returns | None:
    hint = hints_of(function).get("return")
    return Returns(for_pydantic(hint)) if hint is not None and hint is not type(None) else None


def _bounded(hint: Any) -> Any:
    """The type with a bound on every text, list and object that has none of its own."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base, *said = inner
        return Annotated[(_inside(base) if _is_bounded(said) else _bounded(base), *said)]
    if hint is str or hint is bytes:
        return Annotated[hint, Field(max_length=MAX_TEXT)]
    if hint in (list, dict) or origin in (list, dict, set, frozenset) or _is_endless(origin, inner):
        return Annotated[_inside(hint), Field(max_length=MAX_ITEMS)]
    return _inside(hint)


def _inside(hint: Any) -> Any:
    """The same type, bounded in what it holds."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return Union[tuple(_bounded(one) for one in inner)]  # noqa: UP007 - made of what was given
    if origin is dict:
        return dict[_key(inner[0]), _bounded(inner[1])]  # type: ignore[misc]
    if origin in (list, set, frozenset, tuple):
        return origin[tuple(one if one is ... else _bounded(one) for one in inner)]
    return hint


def _key(hint: Any) -> Any:
    return Annotated[hint, Field(max_length=MAX_KEY)] if hint is str else hint


def _is_endless(origin: Any, inner: tuple[Any, ...]) -> bool:
    return origin is tuple and len(inner) == 2 and inner[1] is ...


def _is_bounded(said: list[Any]) -> bool:
    """Whether these words about a type bound it, or a pattern of its own does."""
    found = [part for one in said for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
    return any(isinstance(one, annotated_types.MaxLen) for one in found)


_PROBLEMS = {
    "extra_forbidden": "there is no such argument",
    "missing": "it is needed",
    "string_unicode": "a lone surrogate in it is not valid Unicode",
}
"""Words of pydantic's in those of a caller: the mistakes that models make most."""


_MANY = 1000
"""Problems that are listed at all: to get the first few of pydantic's, it makes all of them."""


def unknown_args(subject: Tool, names: list[str]) -> InvalidArgs:
    problem = _PROBLEMS["extra_forbidden"]
    return _misfit(subject, [{"arg": name, "problem": problem} for name in names])


def invalid(subject: Tool, error: ValueError) -> InvalidArgs:
    if not isinstance(error, ValidationError):
        raise error
    if error.error_count() > _MANY:
        return _misfit(subject, [{"arg": "(all)", "problem": f"{error.error_count():,} things are wrong"}])
    problems = [
        {
            "arg": ".".join(str(part)[:MAX_SHOWN] for part in item["loc"]) or "(all)",
            "problem": _PROBLEMS.get(item["type"], item["msg"]),
        }
        for item in error.errors(include_url=False, include_input=False, include_context=False)[:8]
    ]
    return _misfit(subject, problems)


def _misfit(subject: Tool, problems: list[dict[str, str]]) -> InvalidArgs:
    listed = "; ".join(f"{item['arg']}: {item['problem']}" for item in problems)
    known = ", ".join(subject.args.model_fields) or "none"
    return InvalidArgs(
        f"the arguments of {subject.name} do not fit: {listed}",
        f"it takes: {known}",
        data={"problems": problems},
    )
