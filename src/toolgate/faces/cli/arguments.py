"""A tool's arguments from a command line: JSON, a file, stdin, or name=value."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolgate.core import wire
from toolgate.core.errors import CallError, InvalidArgs


def read(text: str, named: Iterable[str] = ()) -> dict[str, Any]:
    """`text` is JSON, `-` for stdin or `@file`; `named` adds single arguments."""
    args = wire.loads_object(_source(text)) if text else {}
    for item in named:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidArgs(f"{item!r} is not name=value", "write --arg path=docs/a.md")
        if name in args:
            raise InvalidArgs(f"the argument {name!r} is given twice", "give it once")
        args[name] = _value(value)
    return args


def _source(text: str) -> str | bytes:
    if text == "-":
        return sys.stdin.buffer.read(wire.MAX_BYTES + 1)
    if not text.startswith("@"):
        return text
    try:
        with Path(text[1:]).open("rb") as file:
            return file.read(wire.MAX_BYTES + 1)
    except OSError as error:
        raise InvalidArgs(
            f"{text[1:]!r} cannot be read: {error.strerror}", "give @file a readable file"
        ) from None


def _value(text: str) -> Any:
    """As JSON if it is JSON, else as the text it is."""
    try:
        return wire.loads(text)
    except CallError:
        return text
