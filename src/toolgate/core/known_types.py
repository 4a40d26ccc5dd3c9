"""Known types: what a tool takes and returns, read from its feature's `tool_types.json` instead of worked out by pydantic.

Loading pydantic takes longer than a call. Only plain values are taken here; whatever is not at once seen to fit, wrong or
merely unusual, goes to pydantic, which has the last word and the messages. `make types` writes the files, and a test
fails where one is not what pydantic says.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
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
        read: Mapping[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return read


def _take(said: Type | None, value: Any, places: Places | None) -> Any:
    """The value, or a copy of it, where it is of this type and of no other that pydantic would turn into it."""
    if said is None:
        raise NotPlain
    kind = said[0]
    if kind == "str":
        return _measured(said, _text(value), len(_text(value)))
    if kind in _EXACT:
        return _measured(said, value, value) if type(value) is _EXACT[kind] else _refuse()
    if kind == "optional":
        return None if value is None else _take(said[1], value, places)
    if kind == "choice":
        return value if type(value) is str and value in said[1] else _refuse()
    if kind == "path":
        return _path(said[1]).given(_text(value), places)
    if kind in _MANY:
        items = [_take(said[3], one, places) for one in value] if type(value) is list else _refuse()
        return _measured(said, _MANY[kind](items), len(items))
    if kind == "map":
        return {_text(key): _take(said[1], one, places) for key, one in _object(value).items()}
    if kind == "object":
        return _fields(said, _object(value), places)
    return _plain(value) if kind == "any" else _refuse()


_EXACT = {"int": int, "bool": bool, "float": float}
_MANY = {"list": list, "tuple": tuple}


def _refuse() -> Any:
    raise NotPlain


def _measured(said: Any, value: Any, size: Any) -> Any:
    _, low, high, *_ = said
    if (low is not None and size < low) or (high is not None and size > high) or size != size:
        raise NotPlain
    return value


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
    return value if type(value) is dict else _refuse()


def _fields(said: Any, value: dict[Any, Any], places: Places | None) -> dict[str, Any]:
    _, fields, needed = said
    if not value.keys() >= set(needed):
        raise NotPlain
    return {key: _take(fields.get(key), one, places) for key, one in value.items()}


def _plain(value: Any) -> Any:
    """Any JSON, of whatever type."""
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is list:
        return [_plain(one) for one in value]
    if kind is dict:
        return {_text(key): _plain(one) for key, one in value.items()}
    plain = value is None or kind is bool or kind is int or (kind is float and math.isfinite(value))
    return value if plain else _refuse()


@cache
def _path(where: str) -> type[MountPath]:
    module, _, name = where.partition(":")
    found: type[MountPath] = getattr(import_module(module), name)
    return found
