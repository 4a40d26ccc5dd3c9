"""What `tool_types.json` of each feature says, made from pydantic's own schemas: `make types` writes it, a test compares it.

What pydantic would do with a type that is not listed here is left to pydantic: its argument has no type in the file.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic._internal._validators import max_length_validator

from toolgate import Tool, testing
from toolgate.core.known_types import FILE
from toolgate.core.paths import MountPath
from toolgate.core.paths import _listed as one_or_many

EVERYTHING = {"version": 1, "mounts": {"garden": {"path": "garden"}}, "memory": {}, "jobs": {}}
EASY = ("files", "code", "system", "jobs", "garden", "memory")
"""Features whose tools work without pydantic; the others' load it themselves."""


async def files() -> dict[Path, str]:
    """Each feature's file, and what is to stand in it."""
    found: dict[Path, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as root:
        Path(root, "garden").mkdir()
        async with testing.gate(policy=EVERYTHING, root=root) as gate:
            for tool in gate.services.registry:
                path = Path(sys.modules[tool.feature].__file__ or "").with_name(FILE)
                if path.parent.name in EASY and not tool.has_secrets:
                    found.setdefault(path, {})[tool.name] = told(tool)
    return {path: _written(tools) for path, tools in found.items()}


def _written(tools: Mapping[str, Any]) -> str:
    """A line for each tool, so that a change shows which it is of."""
    lines = (
        f'"{name}":{json.dumps(one, separators=(",", ":"), ensure_ascii=False)}'
        for name, one in tools.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def told(tool: Tool) -> dict[str, Any]:
    tool.__dict__["known"] = None  # what pydantic says
    assert tool.argument_schema["properties"].keys() == tool.input_schema["properties"].keys()
    result = tool.result._adapter.core_schema if tool.result is not None else {"type": "any"}
    return {
        "about": tool.about,
        "definition": tool.definition,
        "input": tool.input_schema,
        "output": tool.output_schema,
        "args": _args(tool),
        "result": spec(result, _definitions(result)),
    }


def _args(tool: Tool) -> dict[str, Any]:
    tool.args.model_rebuild()
    whole: Any = tool.args.__pydantic_core_schema__
    definitions = _definitions(whole)
    while whole["type"] in ("definitions", "model"):
        whole = whole["schema"]
    spellings: dict[str, list[str]] = {}
    for alias, name in tool.spellings.items():
        spellings.setdefault(name, []).append(alias)
    return {
        name: {"as": spellings[name], "type": spec(_without_default(field["schema"]), definitions)}
        for name, field in whole["fields"].items()
    }


def _without_default(schema: Any) -> Any:
    return schema["schema"] if schema["type"] == "default" else schema


def _definitions(schema: Any) -> Mapping[str, Any]:
    return (
        {one["ref"]: one for one in schema.get("definitions", ())} if schema["type"] == "definitions" else {}
    )


def spec(schema: Any, definitions: Mapping[str, Any]) -> list[Any] | None:
    """A type as `known_types` takes it, or None."""
    kind = schema["type"]
    said = {key: value for key, value in schema.items() if key not in ("type", "ref", "metadata")}
    if kind in ("definitions", "definition-ref"):
        inner = schema["schema"] if kind == "definitions" else definitions[schema["schema_ref"]]
        return spec(inner, definitions)
    if kind == "function-after":
        return _path(schema) or _bounded(schema, definitions)
    if kind == "function-before" and schema["function"]["function"] is one_or_many:
        return spec(schema["schema"], definitions)
    return _simple(kind, said) or _compound(kind, said, definitions)


def _simple(kind: str, said: Mapping[str, Any]) -> list[Any] | None:
    if kind == "str" and said.keys() <= {"min_length", "max_length"}:
        return ["str", said.get("min_length"), said.get("max_length")]
    if kind in ("int", "float") and said.keys() <= {"ge", "le"}:
        return [kind, said.get("ge"), said.get("le")]
    if kind in ("bool", "any") and not said:
        return [kind, None, None]
    if (
        kind == "literal"
        and said.keys() == {"expected"}
        and all(type(one) is str for one in said["expected"])
    ):
        return ["choice", said["expected"]]
    return None


def _compound(kind: str, said: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Any] | None:
    if kind == "nullable" and said.keys() == {"schema"}:
        return _around("optional", spec(said["schema"], definitions))
    if kind == "list" and said.keys() <= {"items_schema", "min_length", "max_length"}:
        return _many("list", said, spec(said.get("items_schema", _ANY), definitions))
    if kind == "tuple" and said.keys() <= {"items_schema", "variadic_item_index", "min_length", "max_length"}:
        endless = said.get("variadic_item_index") == 0 and len(said["items_schema"]) == 1
        return _many("tuple", said, spec(said["items_schema"][0], definitions)) if endless else None
    if kind == "dict" and said.keys() <= {"keys_schema", "values_schema"}:
        easy = said.get("keys_schema", _ANY) in ({"type": "str"}, _ANY)
        return _around("map", spec(said.get("values_schema", _ANY), definitions)) if easy else None
    if kind == "typed-dict" and said["extra_behavior"] == "ignore" and not said["computed_fields"]:
        return _object(said["fields"], definitions)
    return None


_ANY = {"type": "any"}


def _around(kind: str, inner: list[Any] | None) -> list[Any] | None:
    return inner and [kind, inner]


def _many(kind: str, said: Mapping[str, Any], inner: list[Any] | None) -> list[Any] | None:
    return inner and [kind, said.get("min_length"), said.get("max_length"), inner]


def _bounded(schema: Any, definitions: Mapping[str, Any]) -> list[Any] | None:
    """A length that is looked at after a function of ours has made a list."""
    function = schema["function"]["function"]
    if getattr(function, "func", None) is not max_length_validator:
        return None
    inner = spec(schema["schema"], definitions)
    return inner and ["list", inner[1], function.keywords["max_length"], inner[3]]


def _path(schema: Any) -> list[Any] | None:
    function = schema["function"]["function"]
    owner = getattr(function, "__self__", None)
    if schema["schema"] != {"type": "str"} or not isinstance(owner, type) or not issubclass(owner, MountPath):
        return None
    assert function.__func__ is MountPath._taken.__func__  # type: ignore[attr-defined]
    return ["path", f"{owner.__module__}:{owner.__qualname__}"]


def _object(fields: Any, definitions: Mapping[str, Any]) -> list[Any] | None:
    inner = {name: spec(field["schema"], definitions) for name, field in fields.items()}
    needed = [name for name, field in fields.items() if field.get("required", True)]
    return ["object", inner, needed]


def main() -> None:
    for path, text in asyncio.run(files()).items():
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
