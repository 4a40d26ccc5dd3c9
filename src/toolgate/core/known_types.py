"""Known types: what a tool takes and returns, read from its feature's `tool_types.json` instead of worked out by pydantic.

Loading pydantic takes longer than a call. Only plain values are taken here; whatever is not at once seen to fit, wrong or
merely unusual, goes to pydantic, which has the last word and the messages. `make types` writes the files, and a test
fails where one is not what pydantic says.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from toolgate.core.paths import MountPath, Places

FILE = "tool_types.json"
Type = list[Any]
"""A kind and what it says: `["str", 1, 80]`, `["optional", ["path", "module:Class"]]`, `["object", {…}, […]]`."""


class NotPlain(Exception):
    """Left to pydantic."""


class KnownTypes:
    """The types of one tool."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.definition: str = found["definition"]
        self.input_schema: dict[str, Any] = found["input"]
        self.output_schema: dict[str, Any] | None = found["output"]
        self.args: Mapping[str, Mapping[str, Any]] = found["args"]
        self.spellings = {alias: name for name, one in self.args.items() for alias in one["as"]}
        self._result: Type | None = found["result"]

    def take(
        self, raw: Mapping[str, Any], defaults: Mapping[str, Any], places: Places | None
    ) -> SimpleNamespace:
        """The arguments as a model of pydantic's would hold them."""
        given = {self.spellings.get(name): value for name, value in raw.items()}
        if len(given) != len(raw) or None in given:  # said twice, or unknown
            raise NotPlain
        taken: dict[str, Any] = {}
        for name, one in self.args.items():
            if name in given:
                taken[name] = _take(one["type"], given[name], places)
            elif name in defaults:
                taken[name] = _copied(defaults[name])
            else:
                raise NotPlain
        return SimpleNamespace(**taken)

    def dump(self, value: Any) -> Any:
        """What the tool returned, as JSON."""
        if self._result is None:
            raise NotPlain
        return _take(self._result, value, None)


def _copied(default: Any) -> Any:
    if type(default) is dict:
        return {key: _copied(one) for key, one in default.items()}
    return [_copied(one) for one in default] if type(default) is list else default


def dump_args(args: SimpleNamespace) -> dict[str, Any]:
    return {name: _as_json(value) for name, value in vars(args).items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, MountPath):
        return str(value)
    return [_as_json(one) for one in value] if type(value) in (list, tuple) else value


def find(feature: str, tool: str, about: str) -> KnownTypes | None:
    """None where nothing is known of it, or of another version of it: `about` is the digest of all that is no type."""
    try:
        found = _read(feature)[tool]
        return KnownTypes(found) if found["about"] == about else None
    except (AttributeError, KeyError, TypeError):  # not of our making: pydantic works it out
        return None


@cache
def _read(feature: str) -> Mapping[str, Any]:
    path = Path(sys.modules[feature].__file__ or "").with_name(FILE)
    try:
        read: Mapping[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return read


def _take(said: Type | None, value: Any, places: Places | None) -> Any:
    """The value, or a copy of it, where it is of this type and of no other that pydantic would turn into it."""
    if said is None:
        raise NotPlain
    return _KINDS[said[0]](said, value, places)


def _str(said: Type, value: Any, places: Places | None) -> str:
    _, low, high = said
    size = len(_text(value))
    if (low is not None and size < low) or (high is not None and size > high):
        raise NotPlain
    return value  # type: ignore[no-any-return]


def _number(said: Type, value: Any, places: Places | None) -> Any:
    kind, low, high = said
    plain = type(value) is int if kind == "int" else type(value) is float and value == value
    if not plain or (low is not None and value < low) or (high is not None and value > high):
        raise NotPlain
    return value


def _bool(said: Type, value: Any, places: Places | None) -> bool:
    if type(value) is not bool:
        raise NotPlain
    return value


def _optional(said: Type, value: Any, places: Places | None) -> Any:
    return None if value is None else _take(said[1], value, places)


def _choice(said: Type, value: Any, places: Places | None) -> str:
    if type(value) is not str or value not in said[1]:
        raise NotPlain
    return value


def _mount_path(said: Type, value: Any, places: Places | None) -> MountPath:
    return _path(said[1]).given(_text(value), places)


def _many(said: Type, value: Any, places: Places | None) -> Any:
    kind, low, high, inner = said
    if (
        type(value) is not list
        or (low is not None and len(value) < low)
        or (high is not None and len(value) > high)
    ):
        raise NotPlain
    items = [_take(inner, one, places) for one in value]
    return tuple(items) if kind == "tuple" else items


def _map(said: Type, value: Any, places: Places | None) -> dict[str, Any]:
    return {_text(key): _take(said[1], one, places) for key, one in _object(value).items()}


def _fields(said: Type, value: Any, places: Places | None) -> dict[str, Any]:
    _, fields, needed = said
    if not _object(value).keys() >= set(needed):
        raise NotPlain
    return {key: _take(fields.get(key), one, places) for key, one in value.items()}


def _any(said: Type, value: Any, places: Places | None) -> Any:
    """Any JSON, of whatever type."""
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is list:
        return [_any(said, one, places) for one in value]
    if kind is dict:
        return {_text(key): _any(said, one, places) for key, one in value.items()}
    if value is None or kind is bool or kind is int or (kind is float and math.isfinite(value)):
        return value
    raise NotPlain


_KINDS: Mapping[str, Callable[[Type, Any, Places | None], Any]] = {
    "str": _str, "int": _number, "float": _number, "bool": _bool, "optional": _optional, "choice": _choice,
    "path": _mount_path, "list": _many, "tuple": _many, "map": _map, "object": _fields, "any": _any,
}  # fmt: skip


def _text(value: Any) -> str:
    if type(value) is not str or not (value.isascii() or _encodable(value)):
        raise NotPlain
    return value


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _object(value: Any) -> dict[Any, Any]:
    if type(value) is not dict:
        raise NotPlain
    return value


@cache
def _path(where: str) -> type[MountPath]:
    module, _, name = where.partition(":")
    found: type[MountPath] = getattr(import_module(module), name)
    return found
