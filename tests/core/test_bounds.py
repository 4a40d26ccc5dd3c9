"""Every argument of every tool has a bound, whoever wrote the tool; and what is measured is not looked at further."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

import toolgate
from toolgate.core import wire
from toolgate.core.bounds import MAX_ITEMS, MAX_KEY, MAX_TEXT, Bounds, measure
from toolgate.core.errors import CallError, TooLarge

SMALL = Bounds(size=1000, values=100, depth=8)


def unbounded(part: Any, defs: dict[str, Any], where: str) -> list[str]:
    """Places in a JSON schema that say no limit: texts without length, lists and open objects without a number."""
    if not isinstance(part, dict):
        return []
    if "$ref" in part:
        return unbounded(defs[part["$ref"].rpartition("/")[2]], defs, where)
    found = [
        flaw
        for word in ("anyOf", "oneOf", "allOf")
        for one in part.get(word, ())
        for flaw in unbounded(one, defs, where)
    ]
    kind, chosen = part.get("type"), "enum" in part or "const" in part
    if kind == "string" and not chosen and "maxLength" not in part:
        found.append(f"{where}: a text")
    if kind == "array":
        found += [f"{where}: a list"] if "maxItems" not in part else []
        found += unbounded(part.get("items"), defs, f"{where}[]")
    if kind == "object":
        more = part.get("additionalProperties", False)
        found += [f"{where}: an object"] if more and "maxProperties" not in part else []
        found += unbounded(more, defs, f"{where}{{}}")
        for name, inner in part.get("properties", {}).items():
            found += unbounded(inner, defs, f"{where}.{name}")
    return found


def flaws(tool: toolgate.Tool) -> list[str]:
    schema = tool.input_schema
    return unbounded(schema, schema.get("$defs", {}), tool.name)


async def test_every_argument_of_every_built_in_tool_has_a_bound(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, {"version": 1}) as gate:
        tools = list(gate.services.registry)
        assert len(tools) > 30
        assert [flaw for tool in tools for flaw in flaws(tool)] == []


@pytest.mark.parametrize("hint", [
    str, str | None, list[str], list[list[int]], dict[str, str], dict[str, list[str]], tuple[str, ...], set[str],
    Annotated[str, Field(description="x")], Annotated[list[str], Field(max_length=3)], dict[str, Any],
    Annotated[Annotated[list[str], Field(max_length=3)] | None, Field(description="x")], bytes, list,
])  # fmt: skip
def test_an_author_who_says_nothing_gets_bounds(hint: Any) -> None:
    async def run(value: Any) -> None: ...

    run.__annotations__["value"] = hint
    made = toolgate.tool("t.any")(run)
    assert flaws(made) == []


def test_an_authors_own_bounds_stand() -> None:
    @toolgate.tool("t.own")
    async def own(text: Annotated[str, Field(max_length=3)], names: list[str], free: str = "") -> None: ...

    fields = own.input_schema["properties"]
    assert fields["text"]["maxLength"] == 3
    assert (fields["names"]["maxItems"], fields["free"]["maxLength"]) == (MAX_ITEMS, MAX_TEXT)


def test_the_walk_shows_what_it_is_made_of() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}}}}
    assert unbounded(loose, {}, "x") == ["x.a: a text", "x.b: a list"]


_loop: list[Any] = []
_loop.append(_loop)


@pytest.mark.parametrize("value", [
    "x" * 1001, ["x" * 501] * 2, list(range(101)), {f"k{n}": n for n in range(51)}, {"k" * (MAX_KEY + 1): 1},
    [[[[[[[[[1]]]]]]]]], [[1] * 60] * 2, 1 << 9000, {"a": {"b": "x" * 1001}}, (["x"] * 20,) * 6, _loop,
])  # fmt: skip
def test_what_is_too_much_is_refused_by_measuring_alone(value: Any) -> None:
    with pytest.raises(CallError) as refused:
        measure({"a": value}, SMALL)
    assert refused.value.code in ("too_large", "invalid_args")
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("value", ["x" * 990, list(range(95)), [[[[[[1]]]]]], {"a": {"b": ["c", None, 1.5]}}])
def test_what_fits_is_let_through(value: Any) -> None:
    assert measure({"a": value}, SMALL) > 0


@pytest.mark.parametrize(("text", "values"), [
    (b"1", 1), (b"[1,2]", 3), (b'"a,b[c{"', 1), (b'{"a,":"\\\\",",":[]}', 4), (b'["\\"," , "x"]', 3), (b'["\\\\","x"]', 3),
])  # fmt: skip
def test_values_are_counted_outside_of_texts_however_the_bytes_come(text: bytes, values: int) -> None:
    for size in range(1, len(text) + 1):
        count = wire.Count()
        for at in range(0, len(text), size):
            count.feed(text[at : at + size])
        assert count.values == values, size


def test_a_long_text_full_of_commas_is_one_value() -> None:
    wire.check_size(b'{"content":"' + b'a,b[\\n\\"' * 500_000 + b'"}')
    for many in (b"[" + b"[]," * 200_000 + b"1]", b"[" + b'"",' * 500_000 + b"1]"):
        with pytest.raises(TooLarge):
            wire.check_size(many)
