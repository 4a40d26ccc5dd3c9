"""Canonical JSON (RFC 8785) and the digests made of it.

One value has exactly one spelling, so that what was shown, what was approved and what ran can be compared by
hash. Values that have no single spelling (NaN, integers beyond 2^53, lone surrogates, non-string keys) are
refused here, at the door.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

from toolgate.core.errors import InvalidArgs

MAX_DEPTH = 64
_MAX_INT = 2**53 - 1
_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"), allow_nan=False
)
_encode = _encoder.encode


def _make_encode_plain() -> Callable[[Any], str]:
    """`JSONEncoder.encode` builds its C encoder anew for every value; this keeps one. Elsewhere than in CPython
    there is none, and the ordinary way is taken."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _encode
    chunks = make(None, _encoder.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
    return lambda value: "".join(chunks(value, 0))


_encode_plain = _make_encode_plain()


def canonical(value: Any) -> str:
    """The one JSON spelling of `value`."""
    if _plain(value, 0):
        return _encode_plain(value)
    return _encode(value) if _check(value, "", 0) else _spell(value)


def screen(value: Any) -> None:
    """Refuse what has no canonical form, before anything else looks at it."""
    known = value if type(value) is dict else dict(value)
    if not _plain(known, 0):
        _check(known, "", 0)


def digest(value: Any) -> str:
    """SHA-256 over the canonical spelling, as `sha256:<hex>`."""
    return sha256(canonical(value))


def sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any, depth: int) -> bool:
    """Whether this is an object or list of the usual kind: ASCII, no fractions, nothing to refuse.

    It says no to whatever needs a closer look; then `_check` finds out what it is, and where.
    """
    if depth >= MAX_DEPTH:
        return False
    if type(value) is dict:
        for key in value:
            if type(key) is not str or not key.isascii():
                return False
        value = value.values()
    elif type(value) is not list:
        return False
    for item in value:
        kind = type(item)
        if kind is str:
            if not item.isascii():
                return False
        elif kind is int:
            if not -_MAX_INT <= item <= _MAX_INT:
                return False
        elif kind is not bool and item is not None and not _plain(item, depth + 1):
            return False
    return True


def _check(value: Any, where: str, depth: int) -> bool:
    """Refuse what has no canonical form; say whether the C encoder's spelling is already canonical."""
    kind = type(value)
    if kind is str:
        _check_text(value, where)
        return True
    if kind is bool or value is None:
        return True
    if kind is int:
        if not -_MAX_INT <= value <= _MAX_INT:
            raise InvalidArgs(
                f"{where or 'value'}: {value} is beyond ±2^53 and has no exact JSON form",
                "pass it as a string",
            )
        return True
    if kind is dict:
        return _check_object(value, where, depth)
    if kind is list or kind is tuple:
        _check_depth(where, depth)
        plain = True
        for index, item in enumerate(value):
            plain &= _check(item, f"{where}[{index}]", depth + 1)
        return plain
    if kind is float:
        if not math.isfinite(value):
            raise InvalidArgs(f"{where or 'value'}: {value} is not a JSON number", "pass a finite number")
        return False
    raise InvalidArgs(
        f"{where or 'value'}: {kind.__name__} is not a JSON value",
        "use objects, lists, strings, numbers, true, false or null",
    )


def _check_object(value: dict[Any, Any], where: str, depth: int) -> bool:
    _check_depth(where, depth)
    plain = True
    for key, item in value.items():
        if type(key) is not str:
            raise InvalidArgs(f"{where or 'value'}: key {key!r} is not a string", "use string keys")
        if not key.isascii():
            _check_text(key, where)
            plain = False  # Python sorts by code point, RFC 8785 by UTF-16 unit
        plain &= _check(item, f"{where}.{key}" if where else key, depth + 1)
    return plain


def _check_depth(where: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise InvalidArgs(f"nested deeper than {MAX_DEPTH} levels at {where[:80]}", "flatten the value")


def _check_text(text: str, where: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgs(
            f"{where or 'value'}: a lone surrogate at position {error.start} is not valid Unicode",
            "send valid UTF-8",
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
