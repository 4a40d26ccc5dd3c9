"""Which alternatives of a schema a value can be one of, and which parts of it hold for a key.

A caller who may choose between a secret and something else must not hide the one as the other. What is looked at here is
necessary and not all that a schema demands: a value that was checked always fits the alternative that it was meant for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from toolgate.core.errors import ConfigError
from toolgate.policy.linear import Linear

_DEEPEST = 16
_LONGEST = 1000
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "object": (dict,),
    "array": (list, tuple),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int, float),
}


def target(root: Mapping[str, Any], ref: str) -> Any:
    found: Any = root
    for name in ref.removeprefix("#").strip("/").split("/"):
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def members(part: Mapping[str, Any], key: str) -> Iterator[Any]:
    """What holds for a key: its own schema, those of the patterns that it fits, else that of all others."""
    known = part.get("properties", {})
    fitting = [each for text, each in part.get("patternProperties", {}).items() if _named_so(text, key)]
    if key in known:
        yield known[key]
    yield from fitting
    if key not in known and not fitting:
        yield part.get("additionalProperties")


def may_be(value: Any, schema: Any, root: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether nothing that is looked at speaks against it: kind, constants, keys, and the same of what stands in it."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return True
    if isinstance(ref := schema.get("$ref"), str) and not may_be(value, target(root, ref), root, depth + 1):
        return False
    if not _is_kind(value, schema.get("type")) or not _is_constant(value, schema):
        return False
    if not all(may_be(value, each, root, depth + 1) for each in schema.get("allOf", ())):
        return False
    for word in ("anyOf", "oneOf"):
        if schema.get(word) and not any(may_be(value, each, root, depth + 1) for each in schema[word]):
            return False
    return not isinstance(value, dict) or _has_keys(value, schema, root, depth)


def _has_keys(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> bool:
    if not all(key in value for key in schema.get("required", ())):
        return False
    return all(
        may_be(item, each, root, depth + 1) for key, item in value.items() for each in members(schema, key)
    )


def _is_kind(value: Any, wanted: Any) -> bool:
    kinds = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if not kinds:
        return True
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _KINDS.get(kind, (object,))) for kind in kinds)


def _is_constant(value: Any, schema: Mapping[str, Any]) -> bool:
    if "const" in schema and schema["const"] != value:
        return False
    return not isinstance(schema.get("enum"), list) or value in schema["enum"]


def _named_so(pattern: str, key: str) -> bool:
    """A pattern that cannot be judged fits nothing: what might be hidden by it is shown."""
    compiled = _compiled(pattern)
    return compiled is not None and len(key) <= _LONGEST and compiled.search(key)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Linear | None:
    try:
        return Linear(pattern)
    except ConfigError:
        return None
