"""Data classes that cost nothing until they are used: their methods are written when one of them is first called.

The standard library's decorator compiles up to six functions for each class while its module is loaded, which was a
quarter of the start of a command. This one stands in for it, and type checkers read it as that; `fields`, `asdict` and
`is_dataclass` of the standard library know its classes. It knows only the options that are used here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

from toolgate.core.named_tuples import NamedTuple


class _Missing:
    def __repr__(self) -> str:
        return "<no default>"


MISSING = _Missing()


class FieldSaid(NamedTuple):
    """What a class says of one of its fields."""

    default: Any = MISSING
    default_factory: Any = MISSING
    init: bool = True
    repr: bool = True
    compare: bool = True
    kw_only: bool | None = None
    hint: Any = None

    def value(self) -> Any:
        """What it is where nobody says; MISSING if it must be said."""
        return self.default if self.default_factory is MISSING else self.default_factory()


class _Record(NamedTuple):
    """A class's fields, with those it inherits, and its options."""

    said: dict[str, FieldSaid]
    frozen: bool
    slots: bool
    kw_only: bool
    eq: bool
    repr: bool
    init: bool = True
    order: bool = False
    unsafe_hash: bool = False


class _Fields:
    """The fields as the standard library knows them, made when it asks."""

    def __init__(self, said: Mapping[str, FieldSaid]) -> None:
        self._said = said
        self._made: dict[str, Any] = {}

    def __get__(self, instance: Any, owner: type) -> dict[str, Any]:
        if not self._made:
            import dataclasses

            made: dict[str, Any] = {}
            for name, one in self._said.items():
                given = {key: value for key, value in one._asdict().items() if value is not MISSING}
                hint = given.pop("hint")
                made[name] = each = dataclasses.field(**given)
                each.name, each.type = name, hint
                each._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            self._made = made
        return self._made


def fields_of(cls: type) -> Mapping[str, FieldSaid]:
    said: Mapping[str, FieldSaid] = cls.__record__.said  # type: ignore[attr-defined]
    return said


def _dataclass(
    cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False,
    eq: bool = True, repr: bool = True,  # noqa: A002 - as in the standard library
) -> Any:  # fmt: skip
    def make(cls: type) -> type:
        own = _own_fields(cls, kw_only)
        said: dict[str, FieldSaid] = {}
        for base in cls.__mro__[-2:0:-1]:
            if (inherited := base.__dict__.get("__record__")) is not None:
                said.update(inherited.said)
        said.update(own)
        record = _Record(said, frozen, slots, kw_only, eq, repr)
        return _add_methods(_with_slots(cls, own) if slots else cls, record)

    return make if cls is None else make(cls)


def _own_fields(cls: Any, kw_only: bool) -> dict[str, FieldSaid]:
    """The fields in the class's body. Its attributes become the plain defaults."""
    own: dict[str, FieldSaid] = {}
    body = cls.__dict__
    for name, hint in body.get("__annotations__", {}).items():
        if hint.startswith("ClassVar") if isinstance(hint, str) else get_origin(hint) is ClassVar:
            continue
        given = body.get(name, MISSING)
        if not isinstance(given, FieldSaid):
            if given.__class__.__hash__ is None:
                raise ValueError(f"{cls.__name__}.{name}: this default can change; use default_factory")
            own[name] = FieldSaid(given, kw_only=kw_only, hint=hint)
            continue
        own[name] = given._replace(kw_only=kw_only if given.kw_only is None else given.kw_only, hint=hint)
        if given.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, given.default)
    return own


def _with_slots(cls: type, own: Mapping[str, FieldSaid]) -> type:
    left = {"__dict__", "__weakref__", *own}
    body = {key: value for key, value in cls.__dict__.items() if key not in left}
    held = {slot for base in cls.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
    body["__slots__"] = tuple(name for name in own if name not in held)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _add_methods(cls: Any, record: _Record) -> type:
    body = frozenset(cls.__dict__)
    hashed = cls.__dict__.get("__hash__") is not None
    cls.__record__, cls.__dataclass_fields__, cls.__dataclass_params__ = record, _Fields(record.said), record
    if "__init__" not in body:
        _late(cls, "__init__", _init)
    if "__match_args__" not in body:
        given = tuple(name for name, one in record.said.items() if one.init and not one.kw_only)
        setattr(cls, "__match_args__", given)  # noqa: B010 - mypy knows it as a constant
    if record.repr and "__repr__" not in body:
        cls.__repr__ = _repr
    if record.eq:
        if "__eq__" not in body:
            _late(cls, "__eq__", _eq)
        if not hashed and record.frozen:
            _late(cls, "__hash__", _hash)
        elif not hashed:
            cls.__hash__ = None
    if record.frozen:
        _freeze(cls, record)
    made: type = cls
    return made


def _late(cls: Any, name: str, write: Callable[[Any, _Record], tuple[str, dict[str, Any]]]) -> None:
    """A method that writes itself when it is first called."""

    def first(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        text, known = write(cls, cls.__record__)
        exec(text, known)  # noqa: S102 - the names of fields alone
        method = known[name]
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)
        return method(self, *args, **kwargs)

    first.__name__ = name
    setattr(cls, name, first)


def _init(cls: Any, record: _Record) -> tuple[str, dict[str, Any]]:
    """Every field is set in the order of the class."""
    known: dict[str, Any] = {"_MISSING": MISSING, "_set": object.__setattr__}
    positional: list[str] = ["self"]
    named: list[str] = []
    lines: list[str] = []
    for name, one in record.said.items():
        made, plain = one.default_factory is not MISSING, one.default is not MISSING
        if made:
            known[f"_default_{name}"] = one.default_factory
            value = (
                f"_default_{name}() if {name} is _MISSING else {name}" if one.init else f"_default_{name}()"
            )
        else:
            known[f"_default_{name}"] = one.default
            value = name if one.init else f"_default_{name}"
        if one.init:
            default = "=_MISSING" if made else f"=_default_{name}" if plain else ""
            (named if one.kw_only else positional).append(name + default)
        elif not made and not (record.slots and plain):
            continue  # an attribute of the class, or set by whoever makes it
        if record.frozen and record.slots:
            known[f"_set_{name}"] = getattr(cls, name).__set__
            lines.append(f" _set_{name}(self, {value})")
        elif record.frozen:
            lines.append(f" _set(self, {name!r}, {value})")
        else:
            lines.append(f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    head = ", ".join([*positional, *(["*", *named] if named else [])])
    return f"def __init__({head}):\n" + ("\n".join(lines) or " pass"), known


def _eq(cls: Any, record: _Record) -> tuple[str, dict[str, Any]]:
    mine, others = (_values(who, record) for who in ("self", "other"))
    equal = f"{mine} == {others} if other.__class__ is self.__class__ else NotImplemented"
    return f"def __eq__(self, other):\n return {equal}", {}


def _hash(cls: Any, record: _Record) -> tuple[str, dict[str, Any]]:
    return f"def __hash__(self):\n return hash({_values('self', record)})", {}


def _values(who: str, record: _Record) -> str:
    return "(" + "".join(f"{who}.{name}," for name, one in record.said.items() if one.compare) + ")"


@recursive_repr()
def _repr(self: Any) -> str:
    said = fields_of(type(self)).items()
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name, one in said if one.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _freeze(cls: Any, record: _Record) -> None:
    def refuse(self: Any, name: str, verb: str) -> None:
        if type(self) is cls or name in record.said:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot {verb} field {name!r}")

    def set_one(self: Any, name: str, value: Any) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def delete_one(self: Any, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_one, delete_one
    if record.slots and "__getstate__" not in cls.__dict__:  # a copy and a pickle set what nobody else may
        cls.__getstate__, cls.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in fields_of(type(self))]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(fields_of(type(self)), state, strict=True):
        object.__setattr__(self, name, value)


def _replace(obj: Any, /, **changes: Any) -> Any:
    if "__record__" not in type(obj).__dict__:
        from dataclasses import replace

        return replace(obj, **changes)
    for name, one in fields_of(type(obj)).items():
        if one.init and name not in changes:
            changes[name] = getattr(obj, name)
    return type(obj)(**changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, FieldSaid, _replace

__all__ = ["MISSING", "FieldSaid", "dataclass", "field", "fields_of", "replace"]
