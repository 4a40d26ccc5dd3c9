"""Types that are known without pydantic: they are what pydantic says, or pydantic is asked."""

from __future__ import annotations

import random
import re
import string
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ConfigDict
from pydantic.errors import PydanticUserError
from tests.sampling import fewer
from tests.tool_types import EVERYTHING, files
from typing_extensions import TypedDict

import toolgate
from toolgate import Tool, testing
from toolgate.core import known_types
from toolgate.core.errors import CallError, InvalidArgs
from toolgate.core.known_types import KnownTypes, NotPlain, dump_args


@pytest.fixture
async def tools() -> AsyncIterator[list[tuple[Tool, KnownTypes]]]:
    with tempfile.TemporaryDirectory() as root:
        Path(root, "garden").mkdir()
        async with testing.gate(policy=EVERYTHING, root=root) as gate:
            every = [(tool, tool.known) for tool in gate.services.registry]
            yield [(tool, known) for tool, known in every if known is not None]


async def test_each_file_says_what_pydantic_says() -> None:
    for path, text in (await files()).items():
        assert path.read_text(encoding="utf-8") == text, (
            f"run `make types`: {path.name} of {path.parent.name} is old"
        )


class Maker:
    """Makes up values of a type, some of them not quite of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def value(self, said: list[Any] | None, odd: float) -> Any:
        choose = self.chance.choice
        if said is None or self.chance.random() < odd:
            return choose(
                [
                    None,
                    True,
                    0,
                    7,
                    1.0,
                    2.5,
                    "",
                    "a",
                    "x" * 90,
                    "\ud800",
                    "é",
                    "1",
                    [],
                    ["a"],
                    {},
                    {"a": 1},
                    ("a",),
                ]
            )
        kind = said[0]
        if kind == "str":
            return "".join(choose(string.ascii_letters + " é√") for _ in range(choose([0, 1, 5, 30, 90])))
        if kind in ("int", "float"):
            number = choose([0, 1, 2, 20, 100, 5000, 10**6, -1])
            return number if kind == "int" else number + 0.5
        if kind == "optional":
            return choose([None, self.value(said[1], odd)])
        if kind in ("list", "tuple"):
            items = [self.value(said[3], odd) for _ in range(choose([0, 1, 2, 3]))]
            return choose([items, items, items, tuple(items)])
        if kind == "map":
            return {choose("abc"): self.value(said[1], odd) for _ in range(2)}
        if kind == "object":
            return {
                key: self.value(one, odd)
                for key, one in said[1].items()
                if key in said[2] or choose([True, False])
            }
        simple = {"bool": [True, False], "choice": said[1], "any": [1, "a", None, [1.5], {"a": "é"}]}
        return choose(
            simple.get(kind)
            or ["a.py", "src/a.py", "scratch:a", "/abs/a", "../up", "a/./b", "garden:x.md", "."]
        )

    def args(self, known: KnownTypes, odd: float) -> dict[str, Any]:
        made = {
            self.chance.choice(one["as"]): self.value(one["type"], odd)
            for one in known.args.values()
            if self.chance.random() < 0.7
        }
        return made | ({"strange": 1} if self.chance.random() < odd / 4 else {})


PLACES = {"/abs": "project"}


async def test_arguments_that_are_taken_are_those_that_pydantic_takes(
    tools: list[tuple[Tool, KnownTypes]],
) -> None:
    maker, taken, refused = Maker(1), 0, 0
    for tool, known in tools:
        for at in range(fewer(200, 40)):
            raw = maker.args(known, 0.05 if at % 2 else 0.0)
            try:
                ours: Any = known.take(raw, tool.defaults, PLACES)
            except NotPlain:
                continue
            except CallError as error:
                with pytest.raises(type(error), match=f"^{re.escape(error.message)}$"):
                    tool._validated(raw, PLACES)
                refused += 1
                continue
            model = tool._validated(raw, PLACES)
            assert vars(ours) == model.__dict__, (tool.name, raw)
            assert [type(one) for one in vars(ours).values()] == [
                type(one) for one in model.__dict__.values()
            ]
            assert dump_args(ours) == tool.dump_args(model), (tool.name, raw)
            taken += 1
    assert taken > 10 * len(tools), "most of what is plain is taken"
    assert refused, "paths that lead elsewhere are refused in the same words"


async def test_a_result_that_is_taken_is_dumped_as_pydantic_does(
    tools: list[tuple[Tool, KnownTypes]],
) -> None:
    maker, taken = Maker(2), 0
    for tool, known in tools:
        assert tool.result is not None or known._result == ["any", None, None]
        for _ in range(fewer(100, 30)):
            value = maker.value(known._result, 0.01)
            try:
                ours = known.dump(value)
            except NotPlain:
                continue
            assert tool.result is None or tool.result.dump(value) == ours, (tool.name, value)
            taken += 1
    assert taken > 5 * len(tools)


async def test_another_version_of_a_tool_is_not_known(tools: list[tuple[Tool, KnownTypes]]) -> None:
    from dataclasses import replace

    tool, _ = tools[0]
    assert replace(tool, description=tool.description + " And more.").known is None
    assert replace(tool, description=tool.description + " And more.").definition != tool.definition


async def test_a_default_is_each_calls_own() -> None:
    found = {
        "definition": "",
        "input": {},
        "output": None,
        "result": None,
        "args": {"x": {"as": ["x"], "type": None}},
    }
    default = {"a": [["b"]]}
    taken = KnownTypes(found).take({}, {"x": default}, None)
    taken.x["a"][0].append("changed")
    assert default == {"a": [["b"]]}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"fs.write": 1}', '{"fs.write": {"about": "x"}}']
)
def test_of_a_damaged_file_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    (tmp_path / "tool_types.json").write_text(content)
    monkeypatch.setitem(
        sys.modules, "toolgate.features.broken", SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    )  # type: ignore[arg-type]
    known_types._read.cache_clear()
    assert known_types.find("toolgate.features.broken", "fs.write", "x") is None


class Given(TypedDict):
    name: str


Given.__pydantic_config__ = ConfigDict(str_max_length=3)  # type: ignore[attr-defined]


def test_what_others_say_of_their_dictionaries_stays() -> None:
    @toolgate.tool("t.given", reads=["project"])
    def given(one: Given) -> None:
        """Do nothing."""

    given.validate({"one": {"name": "abc"}})
    with pytest.raises(InvalidArgs):
        given.validate({"one": {"name": "abcd"}})


def test_arguments_that_no_model_can_have_are_an_error_where_the_tool_is_made() -> None:
    def odd(_hidden: str) -> None:
        """Do nothing."""

    with pytest.raises(PydanticUserError, match="_hidden"):
        toolgate.tool("t.odd", reads=["project"])(odd)
