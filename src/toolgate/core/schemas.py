"""JSON schemas as models are shown them: what is needed to write the arguments, and nothing that only repeats it.

A model pays for every word of a tool list, in every conversation. Bounds, titles and defaults that say nothing are left
out; the gate checks them all the same, and its refusal says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Below these stand names that somebody chose, not words of JSON schema."""
_VALUES = frozenset({"default", "const", "enum", "examples", "example", "required"})
"""What stands below these is no schema."""
_NOISE = frozenset(
    {
        "$schema", "$id", "maxLength", "minLength", "minimum", "exclusiveMinimum", "pattern", "format", "maxProperties",
        "propertyNames",
    }
)  # fmt: skip
_MUCH = 10_000
"""A largest number from which on it is no advice."""
_NULL = {"type": "null"}


def lean(
    schema: Mapping[str, Any], *, ours: bool = True, said: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """`ours`: the gate says what does not fit, so bounds need not be told; of another's schema only titles go. `said`:
    descriptions that are told elsewhere."""
    return {
        name: _below(name, value, ours, said)
        for name, value in (_plain(schema) if ours else schema).items()
        if not _is_noise(name, value, ours, said)
    }


def _below(name: str, value: Any, ours: bool, said: frozenset[str]) -> Any:
    if name in _NAMED and isinstance(value, Mapping):
        return {key: _part(part, ours, said) for key, part in value.items()}
    return value if name in _VALUES else _part(value, ours, said)


def _part(value: Any, ours: bool, said: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return lean(value, ours=ours, said=said)
    if isinstance(value, list):
        return [_part(item, ours, said) for item in value]
    return value


def _is_noise(name: str, value: Any, ours: bool, said: frozenset[str]) -> bool:
    if name == "title":
        return isinstance(value, str)
    if name == "description":
        return value in said
    if not ours:
        return False
    if name == "additionalProperties":
        return isinstance(value, bool)
    if name == "default":
        return not value or isinstance(value, list)
    if name in ("minItems", "maxItems"):
        return bool(value != 2)  # a pair is one by its length
    return name in _NOISE or (name == "maximum" and value >= _MUCH)


def _plain(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`anyOf: [X, null]` as X: what may be left out need not be said to be absent. A pair of alike as a list of them."""
    pair = schema.get("prefixItems")
    if isinstance(pair, list) and pair and all(item == pair[0] for item in pair) and "items" not in schema:
        rest = {name: value for name, value in schema.items() if name != "prefixItems"}
        return {"items": pair[0], **rest}
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or _NULL not in choices:
        return schema
    some = [choice for choice in choices if choice != _NULL]
    if len(some) != 1 or not isinstance(some[0], Mapping):
        return schema
    return {**some[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
