"""Data classes whose methods are written late: they are what the standard library would have made."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from toolgate.core import records
from toolgate.core.records import dataclass, field, replace

OPTIONS: list[dict[str, bool]] = [
    {}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}, {"kw_only": True}, {"eq": False}, {"repr": False},
    {"slots": True, "kw_only": True},
]  # fmt: skip


def _twins(options: dict[str, bool]) -> list[Any]:
    """The same class, made by the standard library and by ours."""
    made = []
    for decorate, more in ((dataclasses.dataclass, dataclasses.field), (dataclass, field)):

        class Place:
            kind: ClassVar[str] = "place"
            name: str
            size: int = 3
            parts: list[int] = more(default_factory=list)  # type: ignore[call-overload]
            note: str = more(default="", compare=False, repr=False)  # type: ignore[call-overload]

            def doubled(self) -> int:
                return self.size * 2

        made.append(decorate(**options)(Place))  # type: ignore[call-overload]
    return made


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_record_behaves_as_the_standard_librarys_class_does(options: dict[str, bool]) -> None:
    told = []
    for cls in _twins(options):
        one, same, other = cls(name="a"), cls(name="a", note="x"), cls(name="a", size=4)
        told.append(
            [
                one == same, one == other, one == 3, one.doubled(), one.parts, one.parts is same.parts,
                cls.__match_args__, hasattr(one, "__dict__"), cls.__hash__ is None, dataclasses.asdict(other),
                dataclasses.replace(other, name="b") == replace(other, name="b"), dataclasses.is_dataclass(one),
                [(each.name, each.type, each.init, each.repr, each.kw_only) for each in dataclasses.fields(cls)],
                repr(other) if options.get("repr", True) else "", copy.copy(other).size, copy.deepcopy(one).parts,
            ]
        )  # fmt: skip
        for wrong in ({}, {"name": "a", "nme": 1}):
            with pytest.raises(TypeError):
                cls(**wrong)
    assert told[0] == told[1]


def test_a_frozen_record_is_changed_by_nobody_and_can_be_a_key() -> None:
    for cls in _twins({"frozen": True, "slots": True}):
        one = cls("a")
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.size = 4
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.size
        with pytest.raises(TypeError):
            hash(one)  # it holds a list
    assert {_Kept(1): "x"}[_Kept(1)] == "x"


@dataclass(frozen=True, slots=True)
class _Kept:
    number: int
    doubled: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", self.number * 2)


@dataclass(slots=True)
class _Base:
    first: int
    second: int = 2


@dataclass(slots=True)
class _Child(_Base):
    third: int = 3


def test_a_record_is_copied_and_pickled_with_what_it_worked_out() -> None:
    assert _Kept(2).doubled == 4
    assert pickle.loads(pickle.dumps(_Kept(2))) == _Kept(2)
    assert copy.deepcopy(_Kept(2)).doubled == 4


def test_fields_are_inherited_in_order_also_by_a_class_of_the_standard_library() -> None:
    assert repr(_Child(1)) == "_Child(first=1, second=2, third=3)"
    assert _Child.__slots__ == ("third",)  # type: ignore[attr-defined]

    @dataclasses.dataclass
    class Stranger(_Base):
        fourth: int = 4

    assert replace(Stranger(1), fourth=5) == Stranger(1, 2, 5)


def test_a_default_that_can_change_is_refused() -> None:
    with pytest.raises(ValueError, match="default_factory"):

        @dataclass
        class Shared:
            parts: list[int] = []  # noqa: RUF012


def test_nothing_is_written_before_a_method_is_called() -> None:
    @dataclass
    class Late:
        name: str

    before = Late.__init__
    Late("a")
    assert Late.__init__ is not before
    assert set(records.fields_of(Late)) == {"name"}
