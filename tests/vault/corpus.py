"""Thirty secrets of every kind that people keep, and how programs write them. Knows nothing of toolgate's own forms."""

from __future__ import annotations

import base64
import binascii
import html
import json
import random
import string
import textwrap
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_dice = random.Random(20)


def _random(alphabet: str, size: int) -> str:
    return "".join(_dice.choices(alphabet, k=size))


_LETTERS = string.ascii_letters + string.digits
VALUES: dict[str, str] = {
    "GITHUB": "ghp_" + _random(_LETTERS, 36),
    "GITLAB": "glpat-" + _random(_LETTERS + "-_", 20),
    "SLACK": "xoxb-" + _random(string.digits, 12) + "-" + _random(_LETTERS, 24),
    "STRIPE": "sk_live_" + _random(_LETTERS, 24),
    "AWS_SECRET": _random(_LETTERS + "/+", 40),
    "JWT": ".".join(("eyJhbGciOiJIUzI1NiJ9", _random(_LETTERS, 60), _random(_LETTERS + "-_", 43))),
    "UUID": "3f2b8c1e-9d47-4a6b-8e21-5c0f7d9a1b34",
    "HEX": _random("0123456789abcdef", 64),
    "DIGITS": _random("123456789", 12),
    "EIGHT": "k7#Qz!2p",
    "EIGHT_PLAIN": "hunter2x",
    "WORDS": "correct-horse-battery-staple",
    "PHRASE": "an owl counts seven grey boats at dawn",
    "QUOTES": 'it\'s "quoted" <b>&amp; more</b>',
    "BACKSLASHES": "C:\\keys\\new\\table\\0x",
    "PERCENT": "100%25 sure %41%42 + 2/3=?",
    "URL": "postgres://app:pa%24s/w?rd@db.internal:5432/main",
    "BASE64": base64.b64encode(_random(_LETTERS, 30).encode()).decode(),
    "UMLAUTS": "schlüssel-für-größe-ß",
    "FRENCH": "clé-privée-éàü-2024",
    "CHINESE": "密码是一个很长的秘密字符串",
    "EMOJI": "key🔑with🚪doors🏠9",
    "PUNCTUATION": "!@#$%^&*()_+-=[]{}|;:,.<>?",
    "TABS": "two\twords\tand\ttabs",
    "PEM": "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(textwrap.wrap(_random(_LETTERS + "+/", 256), 64))
    + "\n-----END PRIVATE KEY-----",
    "JSON": '{"user": "app", "password": "s3cr3t-v4lue"}',
    "LONG": _random(_LETTERS, 500),
    "REPEATING": "abababababab9",
    "SPACED": "a1 b2 c3 d4 e5 f6",
    "CAPITALS": "QWERTZUIOPASDFGH",
}
assert len(VALUES) == 30


def written(value: str) -> Iterator[tuple[str, str]]:
    """Label and text, for every form that must not get out."""
    raw = value.encode()
    coded = base64.b64encode(raw).decode()
    yield "plain", value
    yield "in a sentence", f"the token is {value}, keep it"
    yield "quote", quote(value)
    yield "quote safe", quote(value, safe="")
    yield "quote_plus", quote_plus(value)
    yield (
        "quote lower",
        "".join(part.lower() if part.startswith("%") else part for part in _percents(quote(value, safe=""))),
    )
    yield "percent", "".join(f"%{byte:02X}" for byte in raw)
    yield "percent lower", "".join(f"%{byte:02x}" for byte in raw)
    yield "base64", coded
    yield "base64 bare", coded.rstrip("=")
    yield "base64 mime", base64.encodebytes(raw).decode()
    for before in ("", "u", "us", "use"):
        text = f"{before}{value}:after".encode()
        yield f"base64 inside {before}", base64.b64encode(text).decode()
        yield f"base64url inside {before}", base64.urlsafe_b64encode(text).decode()
    for separator in ("", ":", " ", "-"):
        yield f"hex {separator!r}", binascii.hexlify(raw, *([separator] if separator else [])).decode()
        yield f"HEX {separator!r}", raw.hex(*([separator] if separator else [])).upper()
    yield "json", json.dumps(value)
    yield "json utf-8", json.dumps(value, ensure_ascii=False)
    yield "json slashes", json.dumps(value).replace("/", "\\/")
    yield "json \\u", "".join(f"\\u{unit:04x}" for unit in _utf16(value))
    yield "JSON \\U", "".join(f"\\u{unit:04X}" for unit in _utf16(value))
    yield "json twice", json.dumps(json.dumps([value]))
    yield "html", html.escape(value)
    yield "html no quotes", html.escape(value, quote=False)
    yield "html decimal", "".join(f"&#{ord(char)};" for char in value)
    yield "html hex", "".join(f"&#x{ord(char):X};" for char in value)
    yield "repr", repr(value)
    yield "ascii", ascii(value)
    yield "repr bytes", repr(raw)
    yield "\\x", "".join(f"\\x{byte:02x}" for byte in raw)
    yield "reversed", value[::-1]
    yield "url of json", quote(json.dumps({"key": value}), safe="")
    for label, text in (("plain", value), ("base64", coded), ("hex", raw.hex())):
        for width in (1, 3, 8, 20):
            for gap in ("\n", "\r\n", " ", "\n\t"):
                yield f"{label} every {width} {gap!r}", gap.join(textwrap_exact(text, width))


def textwrap_exact(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def _percents(text: str) -> Iterator[str]:
    while "%" in text:
        before, _, text = text.partition("%")
        yield before
        yield "%" + text[:2]
        text = text[2:]
    yield text


def _utf16(value: str) -> list[int]:
    coded = value.encode("utf-16-be")
    return [coded[at] << 8 | coded[at + 1] for at in range(0, len(coded), 2)]


def bare(text: str) -> str:
    """Without anything that only separates: what a reader could put together again."""
    return "".join(text.split())
