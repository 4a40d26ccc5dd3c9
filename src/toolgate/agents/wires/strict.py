"""Strict JSON of a model's arguments: one meaning or an error that says what to write instead. Nothing is repaired."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, NoReturn

from toolgate.core.canonical import MAX_DEPTH
from toolgate.core.errors import CallError, InvalidArgs
from toolgate.core.wire import check_size

MOST_BYTES = 8 * 1024 * 1024
LARGEST = 2**53 - 1
NOWHERE = -1
MARGIN = 16
"""Characters at the end of a window in which a word or an escape may have been cut."""
_RUNS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{]+|[\]}]+', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotStrict(ValueError):
    """It is no JSON that means exactly one thing."""


def decode(text: str) -> Any:
    """The value of a JSON text."""
    _check_size(text)
    try:
        value = _decoder_for(text).decode(text)
    except CallError as error:
        raise NotStrict(error.message) from None
    except json.JSONDecodeError as error:
        raise NotStrict(_explain(text, error)) from None
    except RecursionError:
        raise NotStrict("the JSON is nested too deeply") from None
    _check_text(text)
    return value


def decode_from(text: str, start: int) -> tuple[Any, int] | int | None:
    """The value that begins at `start` and where it ends; or where it stops being JSON, or NOWHERE if it is JSON that is
    refused; None if the text ends before.

    It is read through a growing window: Python counts the lines up to each mistake, which would be all of the text.
    """
    size = 128
    while True:
        window = text[start : start + size]
        try:
            value, stop = _decoder_for(window).raw_decode(window)
            _check_size(window[:stop])
            _check_text(window[:stop])
            return value, start + stop
        except json.JSONDecodeError as error:
            if error.pos < len(window) - MARGIN and not error.msg.startswith("Unterminated"):
                return start + error.pos
        except (CallError, NotStrict, RecursionError):
            return NOWHERE
        if start + size >= len(text):
            return None
        size *= 8


def _check_size(text: str) -> None:
    if len(text) > MOST_BYTES:
        raise NotStrict(f"the JSON has {len(text):,} characters, the limit is {MOST_BYTES:,}")
    if len(text) > 10_000:
        try:
            check_size(text.encode("utf-8", "surrogatepass"), limit=4 * MOST_BYTES)
        except CallError as error:
            raise NotStrict(error.message) from None
    if (text.count("[") + text.count("{")) > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise NotStrict(f"the JSON is nested deeper than {MAX_DEPTH} levels")


def _check_text(text: str) -> None:
    """Half a character, as itself or as an escape, cannot be stored or shown."""
    if "\\ud" in text or "\\uD" in text or not text.isascii():
        check_text(json.dumps(json.loads(text), ensure_ascii=False) if "\\u" in text.lower() else text)


def check_text(text: str) -> None:
    if _SURROGATE.search(text):
        raise NotStrict("a string holds half of a character (a lone surrogate)")


def _depth(text: str) -> int:
    deepest = level = 0
    for match in _RUNS.finditer(text):
        first = match[0][0]
        if first in "[{":
            level += len(match[0])
            deepest = max(deepest, level)
        elif first in "]}":
            level -= len(match[0])
    return deepest


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidArgs(f"the key {twice[:80]!r} appears twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise InvalidArgs(f"{name} is not JSON; use a finite number or null")


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > LARGEST:
        raise InvalidArgs(
            f"the number {digits[:24]}{'…' * (len(digits) > 24)} is too large to be exact; send it as a string"
        )
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise InvalidArgs(f"the number {digits[:24]} is too large; send it as a string")
    return value


_LONG_NUMBER = re.compile(r"[0-9](?:[0-9]{15}|[eE][+-]?[0-9]{3})")
_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)
_careful = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_float
)


def _decoder_for(text: str) -> json.JSONDecoder:
    """Numbers are looked at one by one only where one may be too large: that takes as long as all the rest."""
    return _careful if _LONG_NUMBER.search(text) else _decoder


_AT = (
    (re.compile(r"[“”„«»‘’]"), "it has typographic quotes (“ ”); JSON strings need plain double quotes"),
    (re.compile(r"'"), "it has single quotes; JSON strings need double quotes"),
    (re.compile(r"&(?:quot|amp|lt|gt|#\d+);"), "it is HTML-escaped; write plain characters"),
    (re.compile(r"//|/\*|#"), "it has a comment, which JSON does not know"),
    (re.compile(r"(?:True|False|None|undefined)\b"), "it has a word of another language; JSON says true, false or null"),
    (re.compile(r"[A-Za-z_]\w*\s*:"), "a key has no quotes; JSON keys need double quotes"),
)  # fmt: skip


def _explain(text: str, error: json.JSONDecodeError) -> str:
    """The mistake in words, with its place."""
    at = error.pos
    place = f"at character {at + 1}"
    if not text.strip():
        return "it is empty"
    if at >= len(text.rstrip()) or "Unterminated" in error.msg:
        return f"the JSON ends too early, {place}"
    if "control character" in error.msg:
        return f"a string has a raw line break or control character {place}; write \\n"
    if error.msg.startswith("Extra data"):
        return f"there is more after the JSON, {place}"
    doubled = text[at] in "}]," and text[:at].rstrip()[-1:] in (",", "[", "{")
    if doubled or "trailing comma" in error.msg:
        return f"there is a comma too many {place}"
    for pattern, words in _AT:
        if pattern.match(text, at):
            return f"{words} ({place})"
    return f"it is not JSON {place}: {error.msg.lower()}"
