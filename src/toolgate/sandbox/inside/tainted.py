"""A secret as a Python program holds it: a string that shows a mask to whatever looks at its characters.

The characters of a `Tainted` *are* the mask, so that print, repr, `%s`, join, json.dumps, logging, files and C code see
nothing else. The value comes out where it is asked for by name: `+`, f-strings and `format`, `encode`, comparison.
Stand-alone: it runs inside the sandbox and imports nothing of ours.
"""

from __future__ import annotations

import base64
import io
import json
import urllib.parse
from collections.abc import Iterable
from typing import Any

MASK = "[REDACTED]"
LONG_ENOUGH = 8
"""Shorter values would mangle ordinary text."""

_forms: dict[str, None] = {}
"""Values and how they look encoded, in the order they became known."""


class Tainted(str):
    """Usable in requests, masked where it is printed."""

    __slots__ = ("_value",)
    _value: str

    def __new__(cls, value: str) -> Tainted:
        made = super().__new__(cls, MASK)
        made._value = value
        _know(value)
        return made

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return self._value.encode(encoding, errors)

    def __format__(self, spec: str) -> str:
        return format(self._value, spec)

    def __add__(self, other: str) -> Tainted:
        return Tainted(self._value + plain(other))

    def __radd__(self, other: str) -> Tainted:
        return Tainted(plain(other) + self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._value == plain(other)

    def __hash__(self) -> int:
        return hash(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __getitem__(self, key: Any) -> Tainted:
        return Tainted(self._value[key])

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str) and plain(part) in self._value

    def __str__(self) -> Tainted:
        return self

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> Any:
        return str, (MASK,)

    def strip(self, chars: str | None = None) -> Tainted:
        return Tainted(self._value.strip(chars))

    def startswith(self, *args: Any) -> bool:
        return self._value.startswith(*args)

    def endswith(self, *args: Any) -> bool:
        return self._value.endswith(*args)


def plain(text: str) -> str:
    return text._value if isinstance(text, Tainted) else text


def _know(value: str) -> None:
    if len(value) < LONG_ENOUGH:
        return
    raw = value.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(raw).decode()
    quoted = urllib.parse.quote(raw, safe="")
    for form in (value, json.dumps(value)[1:-1], repr(value)[1:-1], quoted, encoded, encoded.rstrip("=")):
        _forms[form] = None


def redact(text: str) -> str:
    for form in list(_forms):
        if form in text:
            text = text.replace(form, MASK)
    return text


class Masking(io.TextIOBase):
    """A text stream that masks known values in what passes through to another."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        self._inner.write(redact(str.__str__(text) if isinstance(text, Tainted) else text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._inner.flush()

    def fileno(self) -> int:
        return int(self._inner.fileno())

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    @property
    def buffer(self) -> Any:
        return self._inner.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._inner.encoding)

    @property
    def errors(self) -> str:  # type: ignore[override]
        return str(self._inner.errors)
