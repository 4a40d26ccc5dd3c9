"""A tool's arguments from a command line: JSON, a file, stdin, name=value or name=@file."""

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
        args[name] = _text(value[1:]) if value.startswith("@") else _value(value)
    return args


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
            "give @file a readable file; a text that begins with @ is written as JSON: 'name=\"@text\"'",
        ) from None


def _value(text: str) -> Any:
    """As JSON if it is JSON, else as the text it is."""
    try:
        return wire.loads(text)
    except CallError:
        return text
