"""A value as programs write it, to check that what should be masked is."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus


def spellings(value: str) -> Iterator[tuple[str, str]]:
    """A label and the text, for every form that redaction promises to find."""
    raw = value.encode()
    yield "plain", value
    yield from _url(value, raw)
    for before, after in (("", ""), ("x", "yz"), ("xy", "z")):
        around = (before + value + after).encode()
        yield f"base64 after {len(before)}", base64.b64encode(around).decode()
        yield f"base64url after {len(before)}", base64.urlsafe_b64encode(around).decode().rstrip("=")
    for separator in ("", ":", " "):
        coded = raw.hex(separator) if separator else raw.hex()
        yield f"hex {separator!r}", coded
        yield f"HEX {separator!r}", coded.upper()
    yield "JSON", json.dumps(value)
    yield "JSON, all escaped", "".join(f"\\u{unit:04x}" for unit in _units(value))
    yield "JSON in JSON", json.dumps(json.dumps({"value": value}))
    yield "HTML", html.escape(value)
    yield "HTML, all numbers", "".join(f"&#{ord(char)};" for char in value)
    yield "HTML, all hex", "".join(f"&#x{ord(char):x};" for char in value)
    yield "repr", repr(value)
    yield "repr of bytes", repr(raw)
    yield "Python, all escaped", "".join(f"\\x{byte:02x}" for byte in raw)
    yield "reversed", value[::-1]
    for label, text in (("plain", value), ("base64", base64.b64encode(raw).decode()), ("hex", raw.hex())):
        for width in (1, 4, 7):
            for between in ("\n", "\r\n", " ", "\n    "):
                yield f"{label} in pieces of {width}", _split(text, width, between)
    yield "URL in pieces", _split(_all_percent(raw), 5, "\n")


def _url(value: str, raw: bytes) -> Iterator[tuple[str, str]]:
    for label, text in (
        ("quote", quote(value)),
        ("quote all", quote(value, safe="")),
        ("form", quote_plus(value)),
    ):
        yield f"URL {label}", text
        yield f"URL {label}, small", _small(text)
    yield "URL, every byte", _all_percent(raw)
    yield "URL, every byte, small", _all_percent(raw).lower()


def _small(text: str) -> str:
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _all_percent(raw: bytes) -> str:
    return "".join(f"%{byte:02X}" for byte in raw)


def _units(value: str) -> Iterator[int]:
    coded = value.encode("utf-16-be")
    return (int.from_bytes(coded[at : at + 2], "big") for at in range(0, len(coded), 2))


def _split(text: str, width: int, between: str) -> str:
    return between.join(text[at : at + width] for at in range(0, len(text), width))


def shown_forms(value: str, redact: Callable[[str], object]) -> tuple[list[str], int]:
    """The forms that come through, and how many were tried."""
    tried = list(spellings(value))
    shown = []
    for label, text in tried:
        told = str(redact(f"before {text} after"))
        if "[secret:" not in told or text.strip("\"'b") in told:
            shown.append(label)
    return shown, len(tried)
