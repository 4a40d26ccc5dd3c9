"""A tool's arguments from a command line: JSON, a file, stdin, name=value or name=@file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core import wire
from toolgate.core.errors import CallError, InvalidArgs
from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.tool import Tool


@dataclass
class GivenArguments:
    """As they were written: whether `404` is a text or a number is for the tool to say."""

    args: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    def fit(self, tool: Tool | None = None) -> dict[str, Any]:
        return self.args | {name: _value(text, _spec(tool, name)) for name, text in self.written.items()}


def read(text: str, named: Iterable[str] = ()) -> GivenArguments:
    """`text` is JSON, `-` for stdin or `@file`; `named` adds single arguments."""
    given = GivenArguments(_object(text) if text else {})
    for item in named:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidArgs(f"{item!r} is not name=value", "write --arg path=docs/a.md")
        if name in given.args or name in given.written:
            raise InvalidArgs(f"the argument {name!r} is given twice", "give it once")
        if value.startswith("@"):
            given.args[name] = value[1:] if value.startswith("@@") else _text(value[1:])
        else:
            given.written[name] = value
    return given


def _object(text: str) -> dict[str, Any]:
    try:
        return wire.loads_object(_source(text))
    except InvalidArgs as error:
        name, equals, _ = text.partition("=")
        if not (equals and name.isidentifier()):
            raise
        raise InvalidArgs(error.message, f"single arguments are written `--arg {name}=…`") from None


def _source(text: str) -> str | bytes:
    if text == "-":
        return sys.stdin.buffer.read(wire.MAX_BYTES + 1)
    if not text.startswith("@"):
        return text
    return _bytes(text[1:])


def _text(name: str) -> str:
    """A file as one text: a program, a patch, a page."""
    try:
        return _bytes(name).decode()
    except UnicodeDecodeError:
        raise InvalidArgs(f"{name!r} is not UTF-8 text", "give @file a text file") from None


def _bytes(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(wire.MAX_BYTES + 1)
    except OSError as error:
        raise InvalidArgs(
            f"{name!r} cannot be read: {error.strerror}",
            "give @file a readable file; a text that begins with @ is written name=@@text",
        ) from None


def _value(text: str, spec: Mapping[str, Any]) -> Any:
    """As the text it is where the tool takes one, else as JSON if it is JSON. A list stays one for a tool that takes both."""
    try:
        value = wire.loads(text)
    except CallError:
        return text
    kinds = set(_kinds(spec, spec.get("$defs", {}), set()))
    shape = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else ""
    return text if "string" in kinds and shape not in kinds else value


def _spec(tool: Tool | None, name: str) -> Mapping[str, Any]:
    """What the tool's schema says of the argument, under whichever of its spellings."""
    if tool is None:
        return {}
    schema, meant = tool.input_schema, tool.spellings.get(name, name)
    for spelled, spec in _mapped(schema.get("properties")).items():
        if tool.spellings.get(spelled, spelled) == meant:
            return {**_mapped(spec), "$defs": _mapped(schema.get("$defs"))}
    return {}


def _mapped(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _kinds(spec: Any, definitions: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """Which types a schema takes. Those of servers may be broken or lead in circles."""
    if not isinstance(spec, Mapping):
        return
    kind = spec.get("type")
    yield from (kind,) if isinstance(kind, str) else filter(_is_text, _listed(kind))
    if any(map(_is_text, (*_listed(spec.get("enum")), spec.get("const")))):
        yield "string"
    for word in ("anyOf", "oneOf", "allOf"):
        for each in _listed(spec.get(word)):
            yield from _kinds(each, definitions, seen)
    named = str(spec.get("$ref", "")).removeprefix("#/$defs/")
    if named not in seen:
        seen.add(named)
        yield from _kinds(definitions.get(named), definitions, seen)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
