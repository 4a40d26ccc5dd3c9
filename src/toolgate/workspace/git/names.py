"""File names as git prints them: quoted like C strings where they have anything unusual in them."""

from __future__ import annotations

import re

_SHORT = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_LONG = {value: name for name, value in _SHORT.items()}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


def unquote(name: bytes) -> str:
    """A name from `--raw`, with bytes that are no UTF-8 as surrogates, as the file system gives them too."""
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        name = _ESCAPE.sub(_plain, name[1:-1])
    return name.decode("utf-8", "surrogateescape")


def quote(name: str) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    if not any(byte < 32 or byte > 126 or byte in (34, 92) for byte in raw):
        return raw
    return b'"' + b"".join(map(_escaped, raw)) + b'"'


def shown(name: str) -> str:
    """A name that any encoding can hold; broken bytes are spelled out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _plain(found: re.Match[bytes]) -> bytes:
    code = found[1].decode("latin-1")
    return bytes((_SHORT.get(code, ord(code)) if len(code) == 1 else int(code, 8) & 255,))


def _escaped(byte: int) -> bytes:
    if byte in _LONG:
        return b"\\" + _LONG[byte].encode()
    return bytes((byte,)) if 32 <= byte <= 126 else b"\\%03o" % byte
