"""Annotations of a tool's arguments, written as pydantic's and made when pydantic is loaded.

A call of a tool whose types are known (`known_types.py`) ends before anybody asks for a model or a schema, and loading
pydantic takes longer than the call. Type checkers read these names as pydantic's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from toolgate.core.context import Context
from toolgate.core.errors import SetupError

_NAMELESS = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


class LateAnnotation:
    """A call of one of pydantic's functions, put off."""

    __slots__ = ("_given", "_name", "_options")

    def __init__(self, name: str, *given: Any, **options: Any) -> None:
        self._name, self._given, self._options = name, given, options

    def made(self) -> Any:
        import pydantic

        options = {key: _made(value) for key, value in self._options.items()}
        return getattr(pydantic, self._name)(*map(_made, self._given), **options)


def _made(value: Any) -> Any:
    return value.made() if isinstance(value, LateAnnotation) else value


if TYPE_CHECKING:
    from pydantic import AfterValidator as AfterValidator
    from pydantic import AliasChoices as AliasChoices
    from pydantic import BeforeValidator as BeforeValidator
    from pydantic import Field as Field
else:
    Field = partial(LateAnnotation, "Field")
    AliasChoices = partial(LateAnnotation, "AliasChoices")
    BeforeValidator = partial(LateAnnotation, "BeforeValidator")
    AfterValidator = partial(LateAnnotation, "AfterValidator")


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters and of what it returns, as they are written."""
    return get_type_hints(function, include_extras=True)


def argument_names(tool: str, function: Callable[..., Any]) -> list[str]:
    """The parameters that a caller gives: all but the Context."""
    hints = hints_of(function)
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if hints.get(parameter.name) is Context:
            continue
        if parameter.kind in _NAMELESS:
            raise SetupError(
                f"{tool}: parameter {parameter.name!r} has no name a caller could use", "name it"
            )
        if parameter.name not in hints:
            raise SetupError(f"{tool}: parameter {parameter.name!r} has no type", "annotate it")
        names.append(parameter.name)
    return names


def for_pydantic(hint: Any) -> Any:
    """The same type with pydantic's own annotations in it, and with dictionaries that pydantic reads on every Python."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        base, *said = inner
        return Annotated[(for_pydantic(base), *map(_made, said))]
    if is_typeddict(hint):
        return _typed_dict(hint) if hint.__module__.startswith(_OURS) else hint
    if not inner or origin is None:
        return hint
    made = tuple(for_pydantic(one) if one is not ... else one for one in inner)
    if all(one is other for one, other in zip(made, inner, strict=True)):
        return hint
    if origin is UnionType:
        return Union[made]  # noqa: UP007 - made of what was given
    return hint.copy_with(made) if hasattr(hint, "copy_with") else origin[made]


_OURS = "toolgate.features."
_read: dict[Any, Any] = {}


def _typed_dict(hint: Any) -> Any:
    """`typing`'s own are enough for pydantic only from Python 3.12 on. Others' may say more to pydantic than ours do."""
    if hint in _read:
        return _read[hint]
    from typing_extensions import TypedDict

    fields = {}
    for name, one in get_type_hints(hint, include_extras=True).items():
        said = get_origin(one) in (Required, NotRequired)
        known = Required if name in hint.__required_keys__ else NotRequired
        fields[name] = for_pydantic(one if said else known[one])
    made = TypedDict(hint.__name__, fields)  # type: ignore[misc]
    made.__doc__, made.__module__, made.__qualname__ = hint.__doc__, hint.__module__, hint.__qualname__
    _read[hint] = made
    return made
