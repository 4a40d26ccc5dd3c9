"""Canonical JSON (RFC 8785) and the digests made of it.

One value has exactly one spelling, so that what was shown, what was approved and what ran can be compared by
hash. Values that have no single spelling (NaN, integers beyond 2^53, lone surrogates, non-string keys) are
refused. orjson writes the common case; whatever it might spell differently is spelled here. So are the few values of a
command that ends at once: loading orjson takes longer than spelling them.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from toolgate.core.errors import InvalidArgs
from toolgate.core.late_pattern import late_pattern
from toolgate.core.wire import is_words

MAX_DEPTH = 64
"""For input at the door; what is inside may be as deep as Python allows."""
MAX_PLACE = 200
"""Characters of the place that an error names."""
_MAX_INT = 2**53 - 1
_SHORT = 10**15
_SHORT_TEXT = 4096
_FEW = 32
"""Values that are spelled here, before it pays to load orjson."""
_NUMBER = late_pattern(r"[:\[,]-?\d+(?:[.eE]|\d{15})|^-?\d")
"""A float or a long integer, or a text that looks like one: spelled with care."""
_MANY = 1000
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_encode_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def canonical(value: Any) -> str:
    """The one JSON spelling of `value`."""
    if _dumps is None and not _load():
        _check(value, 200)
        return _spell(value)
    assert _dumps is not None
    try:
        spelled = _dumps(value)
    except (TypeError, ValueError):
        spelled = b""
    text = spelled.decode() if spelled.isascii() else ""
    if text and (_is_plain(value) or not _has_odd_number(value, text)):
        if "null" in text:
            _check(value, 200)  # orjson writes null for NaN
        return text
    _check(value, 200)
    return _spell(value)


_dumps: Callable[[Any], bytes] | None = None
_spelled = 0


def _load() -> bool:
    """Whether orjson is there by now: somebody else has loaded it, or there is much to spell."""
    global _dumps, _spelled
    _spelled += 1
    if "orjson" not in sys.modules and _spelled < _FEW:
        return False
    import orjson

    options = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS
    _dumps = partial(orjson.dumps, option=options | orjson.OPT_PASSTHROUGH_DATETIME)
    return True


def compact(value: Any) -> str:
    """JSON as orjson spells it, keys in their order; a short command's few values are spelled without loading it.
    Raises TypeError for what orjson refuses."""
    if "orjson" not in sys.modules and _is_simple([value]):
        return _encode_compact(value)
    import orjson

    return orjson.dumps(value).decode()


def _is_simple(waiting: list[Any]) -> bool:
    """Whether the standard library spells it in the same way, and there is little of it."""
    for _ in range(_MANY):
        if not waiting:
            return True
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            if any(type(key) is not str for key in value):
                return False
            waiting += [*value, *value.values()]
        elif kind is list:
            waiting += value
        elif kind is str:
            if not value.isascii() or len(value) > _SHORT_TEXT:
                return False
        elif value is not None and kind is not bool and not (kind in (int, float) and _is_short(value)):
            return False
    return False


def _is_short(number: float) -> bool:
    return -_SHORT < number < _SHORT and (type(number) is int or number == 0 or abs(number) > 1e-3)


def _is_plain(value: Any) -> bool:
    """Whether it is seen at once that no number in it has two spellings: most arguments are a few words."""
    if type(value) is not dict:
        return False
    for item in value.values():
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int and -_SHORT < item < _SHORT:
            continue
        if not is_words(item):
            return False
    return True


def _has_odd_number(value: Any, text: str) -> bool:
    """A short text is searched in a moment; searching megabytes would stop every thread, a walk stops none."""
    if len(text) <= _SHORT_TEXT:
        return _NUMBER.search(text) is not None
    waiting = [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind is float or (kind is int and not -_SHORT < one < _SHORT):
            return True
        if kind is dict:
            waiting.extend(one.values())
        elif (kind is list or kind is tuple) and not is_words(one):
            waiting.extend(one)
    return False


def screen(value: Any) -> None:
    """Refuse what has no canonical form or is nested too deeply, before anything else looks at it."""
    _check(value if type(value) is dict else dict(value), MAX_DEPTH)


def digest(value: Any) -> str:
    """SHA-256 over the canonical spelling, as `sha256:<hex>`."""
    return sha256(canonical(value))


def sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class _Flaw(Exception):
    """What has no canonical form; the place is put together only on the way out, as every step of it costs."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix
        self.steps: list[str] = []

    @property
    def where(self) -> str:
        place = "".join(reversed(self.steps)).removeprefix(".")
        return place if len(place) <= MAX_PLACE else f"{place[:MAX_PLACE]}…"


def _check(value: Any, limit: int) -> None:
    """Refuse what has no canonical form, saying where it is."""
    try:
        _walk(value, 0, limit)
    except _Flaw as flaw:
        raise InvalidArgs(f"{flaw.where or 'value'}: {flaw.what}", flaw.fix) from None


def _walk(value: Any, depth: int, limit: int) -> None:
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _check_text(value)
    elif kind is bool or value is None:
        pass
    elif kind is int:
        if not -_MAX_INT <= value <= _MAX_INT:
            shown = value if value.bit_length() < 1000 else f"a number of {value.bit_length():,} bits"
            raise _Flaw(f"{shown} is beyond ±2^53 and has no exact JSON form", "pass it as a string")
    elif kind is dict:
        _walk_object(value, depth, limit)
    elif kind is list or kind is tuple:
        _check_depth(depth, limit)
        index = 0
        try:
            for index, item in enumerate(value):  # noqa: B007 - said below
                _walk(item, depth + 1, limit)
        except _Flaw as flaw:
            flaw.steps.append(f"[{index}]")
            raise
    elif kind is float:
        if not math.isfinite(value):
            raise _Flaw(f"{value} is not a JSON number", "pass a finite number")
    else:
        raise _Flaw(
            f"{kind.__name__} is not a JSON value",
            "use objects, lists, strings, numbers, true, false or null",
        )


def _walk_object(value: dict[Any, Any], depth: int, limit: int) -> None:
    _check_depth(depth, limit)
    key = ""
    for key, item in value.items():
        if type(key) is not str:
            raise _Flaw(f"key {key!r:.80} is not a string", "use string keys")
        if not key.isascii():
            _check_text(key)
        try:
            _walk(item, depth + 1, limit)
        except _Flaw as flaw:
            flaw.steps.append(f".{key[:MAX_PLACE]}")
            raise


def _check_depth(depth: int, limit: int) -> None:
    if depth >= limit:
        raise _Flaw(f"nested deeper than {limit} levels", "flatten the value")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _Flaw(
            f"a lone surrogate at position {error.start} is not valid Unicode", "send valid UTF-8"
        ) from None


def _spell(value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_encode(key)}:{_spell(value[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_spell, value)) + "]"
    if isinstance(value, float):
        return _spell_float(value)
    return _encode(value)


def _spell_float(value: float) -> str:
    """As ECMAScript's Number::toString, which RFC 8785 prescribes: Python's digits, other punctuation."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(
        exponent or 0
    )  # the decimal point stands after this many digits of whole+fraction
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
