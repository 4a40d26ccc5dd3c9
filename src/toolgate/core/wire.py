"""Reading JSON that came from outside: strict, bounded, with errors a caller can act on."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from toolgate.core.errors import InvalidArgs, TooLarge

MAX_BYTES = 8 * 1024 * 1024
MAX_VALUES = 100_000
"""In one message. Parsing as many takes some hundredths of a second, in which no thread gets a turn."""
_WORD = frozenset({str})


class Count:
    """How many values a JSON text can have, found out from its bytes as they come: nothing is made of them."""

    def __init__(self) -> None:
        self.values = 1
        self._in_text = False
        self._held = b""

    def feed(self, data: bytes) -> int:
        """What has come so far: every value but the first stands behind a comma or within a bracket."""
        data = self._held + data
        whole = data.rstrip(b"\\")
        odd = (len(data) - len(whole)) % 2
        self._held = data[-1:] if odd else b""
        bare = data[: len(data) - odd]
        if b"\\" in bare:
            bare = bare.replace(b"\\\\", b"").replace(b'\\"', b"")
        texts = bare.count(b'"')
        if texts > 4 * MAX_VALUES:
            self.values += texts // 2
            return self.values
        parts = bare.split(b'"')
        outside = b"".join(parts[self._in_text :: 2])
        self._in_text ^= texts % 2 == 1
        self.values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        return self.values


def check_size(raw: bytes, *, limit: int = MAX_BYTES, values: int = MAX_VALUES) -> None:
    """Refuse what would take long to parse, before it is parsed."""
    if len(raw) > limit:
        raise TooLarge(f"the JSON is {len(raw):,} bytes, the limit is {limit:,}", "send less at once")
    if len(raw) > values and Count().feed(raw) > values:
        raise TooLarge(f"the JSON has more than {values:,} values, which is the limit", "send less at once")


def loads(text: str | bytes, *, limit: int = MAX_BYTES) -> Any:
    """Parse JSON; duplicate keys, NaN, Infinity, bad UTF-8, over-deep and over-long input are errors."""
    if len(text) > limit:
        raise TooLarge(f"the JSON is {len(text):,} bytes, the limit is {limit:,}", "send less at once")
    try:
        return json.loads(text, object_pairs_hook=_object_without_duplicates, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidArgs("the JSON is nested too deeply", "flatten the value") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidArgs(f"this is not JSON: {error}", "send one JSON object in UTF-8") from None
    except ValueError:  # Python converts no integer of more than some thousand digits
        raise InvalidArgs("the JSON has a number with too many digits", "send it as a text") from None


def loads_object(text: str | bytes, *, limit: int = MAX_BYTES) -> dict[str, Any]:
    value = loads(text, limit=limit)
    if not isinstance(value, dict):
        raise InvalidArgs(
            f"arguments must be a JSON object, not {type(value).__name__}", 'send {"name": value, ...}'
        )
    return value


def in_ascii(text: str) -> str:
    """The same JSON in ASCII: what is not can only stand in its strings."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidArgs(f"the key {twice!r} appears twice in one object", "send each key once")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidArgs(f"{name} is not JSON", "send a finite number or null")


def is_words(value: object) -> bool:
    """A list of words: seen at a glance, it holds no number, no path and no name. Most lists that tools take are one."""
    return type(value) is list and _WORD.issuperset(map(type, value))
