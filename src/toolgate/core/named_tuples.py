"""Named tuples that cost little until they are used: a class's constructor is written when it is first called.

The standard library's compiles one for each class while its module is loaded: fifty of them were a twelfth of the
start of a gate. This one stands in for `typing.NamedTuple`, and type checkers read it as that. It is for plain
fields with defaults and for methods; it knows no generic classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

try:
    from _collections import (  # type: ignore[import-not-found]
        _tuplegetter as _reader,  # what those of the standard library have
    )
except ImportError:

    def _reader(at: int, doc: Any) -> Any:
        return property(itemgetter(at), doc=doc)


class _Named(tuple[Any, ...]):
    """What every named tuple has."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _field_defaults: Mapping[str, Any] = {}

    @classmethod
    def _make(cls, values: Iterable[Any], /) -> Self:
        made: Self = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
        return made

    def _replace(self, /, **changes: Any) -> Self:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"{type(self).__name__} has no fields {list(changes)}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({shown})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _NamedTupleMeta(type):
    """Turns the body of a class into a plain subclass of tuple."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if not bases:
            return type.__new__(cls, name, bases, body)
        fields = tuple(body.get("__annotations__", {}))
        given = [field for field in fields if field in body]
        if given and given != list(fields[-len(given) :]):
            raise TypeError(f"{name}: a field without a default comes after one that has one")
        own = {field: _reader(at, None) for at, field in enumerate(fields)}
        own |= {
            "__slots__": (), "_fields": fields, "_field_defaults": {field: body.pop(field) for field in given},
            "__match_args__": fields, "__new__": _write_new,
        }  # fmt: skip
        return type(name, (_Named,), body | own)


def _write_new(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Writes the constructor of a class, which takes the place of this one, and calls it."""
    owner = next(each for each in cls.__mro__ if "_fields" in each.__dict__)
    listed = ", ".join(owner._fields)
    known: dict[str, Any] = {"_make": tuple.__new__}
    exec(f"def __new__(_cls, {listed}):\n return _make(_cls, ({listed},))", known)  # noqa: S102 - names of fields alone
    written = known["__new__"]
    written.__defaults__ = tuple(owner._field_defaults.values())
    owner.__new__ = staticmethod(written)
    return written(cls, *args, **kwargs)


if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTuple(metaclass=_NamedTupleMeta):
        pass


__all__ = ["NamedTuple"]
