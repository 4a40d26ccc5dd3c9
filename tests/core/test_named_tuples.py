"""Named tuples that write their constructor late are those of the standard library to whoever uses them."""

from __future__ import annotations

import collections
import copy
import pickle
import typing
from typing import Any

import pytest

from toolgate.core.named_tuples import NamedTuple


class Place(NamedTuple):
    line: int
    column: int = 1
    note: str = ""

    @property
    def shown(self) -> str:
        return f"{self.line}:{self.column}"

    @classmethod
    def start(cls) -> Place:
        return cls(1)


class _Told(typing.NamedTuple):
    line: int
    column: int = 1
    note: str = ""


class Farther(Place):
    __slots__ = ()


def _outcome(made: Any, what: str) -> Any:
    try:
        return {
            "positional": lambda: tuple(made(3, 4)), "named": lambda: tuple(made(note="x", line=2)),
            "missing": lambda: made(), "twice": lambda: made(1, line=2), "unknown": lambda: made(1, other=2),
            "many": lambda: made(1, 2, "", 4), "dict": lambda: made(1)._asdict(), "replaced": lambda: tuple(made(1)._replace(column=9)),
            "not there": lambda: made(1)._replace(other=2), "made": lambda: tuple(made._make((1, 2, "n"))),
            "too few": lambda: made._make((1,)), "fields": lambda: made._fields, "defaults": lambda: dict(made._field_defaults),
            "equal": lambda: (made(1) == (1, 1, ""), hash(made(1)) == hash((1, 1, ""))), "match": lambda: made.__match_args__,
        }[what]()  # fmt: skip
    except (TypeError, ValueError) as error:
        return type(error) if what != "not there" else ValueError


@pytest.mark.parametrize(
    "what",
    [
        "positional",
        "named",
        "missing",
        "twice",
        "unknown",
        "many",
        "dict",
        "replaced",
        "made",
        "fields",
        "defaults",
        "equal",
        "match",
    ],
)
def test_they_do_what_those_of_the_standard_library_do(what: str) -> None:
    class Fresh(NamedTuple):
        line: int
        column: int = 1
        note: str = ""

    assert _outcome(Fresh, what) == _outcome(_Told, what)
    assert _outcome(Place, what) == _outcome(_Told, what)


def test_a_replacement_of_a_field_that_is_not_there_is_an_error() -> None:
    with pytest.raises((TypeError, ValueError)):
        Place(1)._replace(other=2)  # type: ignore[call-arg]


def test_they_keep_their_methods_their_subclasses_and_their_words() -> None:
    assert Place(3, 4).shown == "3:4"
    assert Place.start() == (1, 1, "")
    assert repr(Place(1, note="n")) == "Place(line=1, column=1, note='n')"
    assert isinstance(Farther(2), Place)
    assert Farther(2).shown == "2:1"
    assert isinstance(Place(1), tuple)


def test_they_are_copied_and_pickled_as_what_they_are() -> None:
    for one in (Place(1, 2), Farther(3)):
        assert type(copy.deepcopy(one)) is type(one)
        assert pickle.loads(pickle.dumps(one)) == one
    assert collections.Counter([Place(1), Place(1)])[Place(1)] == 2


def test_a_field_without_a_default_after_one_with_one_is_refused() -> None:
    with pytest.raises(TypeError, match="default"):
        type(NamedTuple)("Ill", (NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})
