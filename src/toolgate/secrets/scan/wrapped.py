"""Tokens and keys that stand in base64: as in a settings file, a cookie or a Kubernetes Secret.

Only what is text when it is decoded is looked at, once each, so this takes no longer than reading it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterator

from toolgate.secrets.scan.keyblocks import private_keys
from toolgate.secrets.scan.rules import SecretHit, back
from toolgate.secrets.scan.tokens import runs, tokens

_ENCODED = re.compile(rb"[A-Za-z0-9+/_-]{28,8000}")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def wrapped(
    text: bytes, long_runs: list[tuple[int, int]], known: Collection[int] = ()
) -> Iterator[SecretHit]:
    reached = 0
    for start, end in long_runs:
        if start < reached:
            continue
        begin = back(text, start, min(64, start - reached), _LETTERS)
        match = _ENCODED.match(text, begin) if begin not in known else None
        if match is None:
            continue
        reached = max(end, match.end())
        inner = _decoded(match[0])
        for hit in _inside(inner) if inner else ():
            excerpt = f"in base64: {hit.excerpt}"
            yield SecretHit("secret", hit.rule, begin, match.end(), excerpt, (match[0],))
            break


def _decoded(value: bytes) -> bytes:
    """Nothing, unless it is text."""
    try:
        head = base64.b64decode(value[:28].translate(_URL_SAFE))
        if not head.isascii() or b"\0" in head:
            return b""
        inner = base64.b64decode(value.translate(_URL_SAFE) + b"=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return b""
    return inner if inner.isascii() else b""


def _inside(inner: bytes) -> Iterator[SecretHit]:
    yield from private_keys(inner)
    yield from tokens(inner, list(runs(inner)))
