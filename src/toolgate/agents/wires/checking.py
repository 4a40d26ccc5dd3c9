"""Offered tools, and whether a call fits one: the name, the required arguments, none unknown, each of its type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolgate.agents.composition import is_reference
from toolgate.core.functions import wire_names

Schema = Mapping[str, Any]
DEEPEST = 40
"""Levels of a schema that are looked at; the gate checks everything once more."""


@dataclass(frozen=True)
class Offered:
    """A tool that the model was offered. Without a schema only its name is checked."""

    name: str
    description: str = ""
    schema: Schema | None = None
    spellings: Mapping[str, str] | None = None
    """Other names of its arguments, where they are known."""
    decision: str = ""

    @property
    def properties(self) -> Mapping[str, Any]:
        found = (self.schema or {}).get("properties")
        return found if isinstance(found, Mapping) else {}

    @property
    def required(self) -> list[str]:
        return [name for name in (self.schema or {}).get("required", ()) if isinstance(name, str)]

    def shortest(self) -> dict[str, Any]:
        """The least that fits: the required arguments."""
        return {
            name: sample(self.properties.get(name, {}), self.schema or {}, name) for name in self.required
        }


class OfferedTools:
    """The tools that a message may call. An empty offer knows nothing and checks no name."""

    def __init__(self, tools: Iterable[Any] | None) -> None:
        self.tools = {one.name: one for one in map(offered, tools or ())}

    @cached_property
    def _spelled(self) -> dict[str, str]:
        """Every other spelling that leads to one tool only."""
        found: dict[str, set[str]] = {}
        for name, short in wire_names(self.tools).items():
            for other in (short, name.replace(".", "/"), name.replace(".", "__"), f"archon.{name}"):
                found.setdefault(other, set()).add(name)
        return {other: next(iter(names)) for other, names in found.items() if len(names) == 1}

    def find(self, name: str) -> Offered | None:
        """By its name, or by a spelling that means no other."""
        return self.tools.get(name) or self.tools.get(self._spelled.get(name, ""))

    def near(self, name: str) -> list[str]:
        import difflib  # for a mistake only

        spelled = name[:128].replace("/", ".").replace("__", ".").lower()
        return difflib.get_close_matches(spelled, self.tools, n=3, cutoff=0.6)

    def shortest(self, name: str = "") -> tuple[str, dict[str, Any]]:
        """A correct call of the tool that was meant, or of the first there is."""
        known = self.find(name) or next((self.tools[one] for one in self.near(name)), None) if name else None
        known = known or next(iter(self.tools.values()), None)
        return (known.name, known.shortest()) if known else (name or "tool.name", {})


def offered(tool: Any) -> Offered:
    """A name, a ToolSpec, a Tool, or a tool as OpenAI's or Anthropic's API is given it."""
    if isinstance(tool, Offered):
        return tool
    if isinstance(tool, str):
        return Offered(tool)
    if isinstance(tool, Mapping):
        inner = tool.get("function")
        one = inner if isinstance(inner, Mapping) else tool
        schema = next((one[key] for key in ("input_schema", "parameters", "inputSchema") if key in one), None)
        return Offered(str(one.get("name", "")), str(one.get("description", "")), schema)
    return Offered(
        tool.name,
        tool.description,
        tool.input_schema,
        getattr(tool, "spellings", None),
        getattr(tool, "decision", ""),
    )


def misfit(tool: Offered, args: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, all of it in one sentence; empty if they fit."""
    if tool.schema is None:
        return ""
    given = {_own_name(tool, key): value for key, value in args.items()}
    if len(given) != len(args):
        return f"{tool.name} is given an argument twice, under two of its names"
    around = next((k for k, v in args.items() if k == "opts" and isinstance(v, Mapping)), "")
    if around and around not in tool.properties:
        return ""  # a wrapper that some documents write: the gate opens it
    return "; ".join(_problems(given, tool.schema, tool.schema, "", 0)[:8])


def _own_name(tool: Offered, key: str) -> str:
    if key in tool.properties:
        return key
    if tool.spellings and key in tool.spellings:
        return tool.spellings[key]
    snake = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: "_" + match[0].lower(), key)
    return snake if snake in tool.properties else key


def _problems(value: Any, schema: Any, root: Schema, place: str, level: int) -> list[str]:
    if not isinstance(schema, Mapping) or level > DEEPEST or (level and is_reference(value)):
        return []  # a reference is filled later, and the gate checks what it became
    if isinstance(schema.get("$ref"), str):
        return _problems(value, _referred(schema["$ref"], root), root, place, level + 1)
    found = _of_branches(value, schema, root, place, level) or _of_value(value, schema, place)
    if found:
        return found
    if isinstance(value, dict):
        return _of_object(value, schema, root, place, level)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            found += _problems(item, schema["items"], root, f"{place}[{index}]", level + 1)
            if len(found) > 8:
                break
    return found


def _of_branches(value: Any, schema: Schema, root: Schema, place: str, level: int) -> list[str]:
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            tries = [_problems(value, one, root, place, level + 1) for one in schema[key]]
            if tries and all(tries):
                # the branch of the value's own type says most
                return next((one for one in tries if "must be" not in one[0]), tries[0])
    return [text for one in schema.get("allOf", ()) for text in _problems(value, one, root, place, level + 1)]


def _of_value(value: Any, schema: Schema, place: str) -> list[str]:
    types = schema.get("type")
    listed = [types] if isinstance(types, str) else types
    if isinstance(listed, list) and not any(is_type(value, str(one)) for one in listed):
        wanted = " or ".join(_article(str(one)) for one in listed)
        return [f"{place or 'the arguments'} must be {wanted}, not {_kind(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{place} must be one of {_short(schema['enum'])}, not {_short(value)}"]
    if "const" in schema and value != schema["const"]:
        return [f"{place} must be {_short(schema['const'])}, not {_short(value)}"]
    return []


def _of_object(value: dict[str, Any], schema: Schema, root: Schema, place: str, level: int) -> list[str]:
    inner = schema.get("properties") or {}
    dot = f"{place}." if place else ""
    found = [f"{dot}{name} is required" for name in schema.get("required", ()) if name not in value]
    more = schema.get("additionalProperties", True)
    for key, item in value.items():
        if key in inner:
            found += _problems(item, inner[key], root, f"{dot}{key}", level + 1)
        elif more is False:
            found.append(f"there is no argument {(dot + key)[:80]!r}")
        elif isinstance(more, Mapping):
            found += _problems(item, more, root, f"{dot}{key}", level + 1)
    return found


def is_type(value: Any, name: str) -> bool:
    """Whether a JSON value has a type of JSON Schema. A number is no text, and true is no number."""
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    kinds: dict[str, type] = {"string": str, "array": list, "object": dict}
    return isinstance(value, kinds[name]) if name in kinds else True


def sample(schema: Any, root: Schema, name: str, level: int = 0) -> Any:
    """A value that fits, as plain as can be."""
    if not isinstance(schema, Mapping) or level > 8:
        return "…"
    if isinstance(schema.get("$ref"), str):
        return sample(_referred(schema["$ref"], root), root, name, level + 1)
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return sample(schema[key][0], root, name, level + 1)
    return _plain(schema, root, name, level)


def _plain(schema: Schema, root: Schema, name: str, level: int) -> Any:
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        inner = schema.get("properties") or {}
        return {one: sample(inner.get(one, {}), root, one, level + 1) for one in schema.get("required", ())}
    if kind == "array":
        return [sample(schema.get("items", {}), root, name, level + 1)]
    if kind in ("integer", "number"):
        least = schema.get("minimum", 1)
        return max(1, least) if isinstance(least, int | float) else 1
    return {"boolean": True, "null": None}.get(str(kind), _text(name))


def _text(name: str) -> str:
    return "src/app.py" if name in ("path", "file") else "…"


def _referred(reference: str, root: Schema) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _article(kind: str) -> str:
    return ("an " if kind[0] in "aeio" else "a ") + kind


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = ((bool, "a boolean"), (int | float, "a number"), (str, "a string"), (list, "an array"))
    return next((name for kind, name in names if isinstance(value, kind)), "an object")


def _short(value: Any) -> str:
    spelled = json.dumps(value, ensure_ascii=False, default=str)
    return spelled if len(spelled) <= 120 else spelled[:119] + "…"
