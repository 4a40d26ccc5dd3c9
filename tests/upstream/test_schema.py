"""Schemas are a stranger's: they are checked against, and can neither hang the gate nor reach out."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest

from toolgate.features.servers.results import Checker, Unusable


def test_what_does_not_fit_is_said_with_its_place() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    assert Checker(schema).problems({"a": [1, "x"]}) == ["a.1: 'x' is not of type 'integer'"]
    assert Checker(schema).problems({"a": [1, 2]}) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 5000 + "b"}),
        ({"patternProperties": {"(a+)+$": {"type": "string"}}}, {"a" * 5000 + "b": 1}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(5000)]}),
    ],
    ids=["pattern", "names", "unique"],
)  # fmt: skip
def test_no_schema_takes_long(schema: dict[str, Any], value: Any) -> None:
    begun = time.monotonic()
    with suppress(Unusable):
        Checker(schema).problems(value)
    assert time.monotonic() - begun < 20


def test_a_schema_that_never_ends_is_given_up() -> None:
    with pytest.raises(Unusable, match="without end"):
        Checker({"$ref": "#"}).problems({})
    branches = {"anyOf": [{"properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["b"]}] * 8}
    deep: dict[str, Any] = {}
    for _ in range(8):
        deep = {"a": deep}
    with pytest.raises(Unusable, match="too many steps"):
        Checker({"$defs": {"x": branches}, "$ref": "#/$defs/x"}).problems(deep)


def test_a_reference_to_an_address_is_not_followed() -> None:
    with pytest.raises(Unusable):
        Checker({"$ref": "http://127.0.0.1:9/schema.json"}).problems({})


def test_a_schema_that_is_none_is_found_out() -> None:
    with pytest.raises(Unusable):
        Checker({"type": "objekt"}).check()
