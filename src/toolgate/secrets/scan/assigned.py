"""Secrets that have no form of their own: what stands after a name like `password`, in a URL, or in a key block."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from toolgate.secrets.scan.rules import MANY, Hit, Source, following, shown, token

MIN_ENTROPY = 3.0
_WORD = re.compile(
    rb"example|sample|placeholder|change|dummy|fake|your|insert|redacted|masked|xxxx|\*\*\*|todo|none|null|undefined|"
    rb"secret|password|passwd|test|token|localhost|environ|getenv|config|setting|\.\.\.|<|>|\$|\{|\(|\[|%\(",
    re.IGNORECASE,
)
_COMMON = frozenset(
    {b"postgres", b"root", b"admin", b"user", b"guest", b"pass", b"mysql", b"redis", b"pw", b"p"}
)
_LOCAL = re.compile(
    rb"(?:localhost|127\.|\[?::1|0\.0\.0\.0|[a-z0-9.-]{0,60}example\.|[a-z0-9-]{1,60}(?:[/:\"'\s]|$))"
)
_HEADER = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(rb"[A-Za-z0-9+/=]{40}")
_PIECE = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_KEY_BYTES = 16_000


def entropy(value: bytes) -> float:
    """Bits in each character, by how often each occurs."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def random_looking(value: bytes) -> bool:
    """Letters and digits without a pattern, and none of the words that people write instead of a secret."""
    if len(set(value)) < 2**MIN_ENTROPY:
        return False  # it cannot have that entropy
    mixed = re.search(rb"[A-Za-z]", value) and re.search(rb"[0-9]", value)
    return bool(mixed) and _WORD.search(value) is None and entropy(value) >= MIN_ENTROPY


_NAMES = "password passwd secret token api_key apikey api-key access_key accesskey auth_key private_key passphrase credential"
ASSIGNED = token(
    "assigned-secret", _NAMES,
    rf"(?:{_NAMES.replace(' ', '|')})[a-z0-9_-]{{0,20}}+[\"'\]]{{0,2}}+\s{{0,4}}+(?:=>|:=|=|:)\s{{0,4}}+"
    r"[rbuf]{0,2}+[\"'`]([^\"'`\s]{10,200}+)[\"'`]",
    folded=True, check=random_looking,
)  # fmt: skip
"""`api_key = "…"`, quoted, in any language."""
ENVIRONMENT = token(
    "assigned-secret", _NAMES,
    rf"(?:{_NAMES.replace(' ', '|')})[a-z0-9_]{{0,20}}+(?:=|:\s{{1,4}}+)([^\"'`\s#,;()]{{12,200}}+)(?=\s|$)",
    folded=True, check=random_looking,
)  # fmt: skip
"""`API_KEY=…` and `api_key: …`, as settings files write it."""


def url_passwords(source: Source) -> Iterator[Hit]:
    """`scheme://user:password@host`, unless it is what everybody writes for a database on their own machine."""
    at = source.content.find(b"://")
    while at >= 0:
        match = _URL.match(source.content, at)
        if match is not None and _worth_hiding(source, match):
            start, end = match.span(2)
            excerpt = f"{shown(match[1])}:…({end - start} characters)"
            yield Hit("secret", "url-password", start, end, excerpt, (match[2],))
        at = following(source.content, b"://", at + 3)


_URL = re.compile(rb"://([^\s/:@\"'<>{}$]{0,64}+):([^\s/:@\"'<>{}$*]{4,128}+)@(?=[A-Za-z0-9\[])")


def _worth_hiding(source: Source, match: re.Match[bytes]) -> bool:
    value = match[2].lower()
    if value == match[1].lower() or value in _COMMON or _WORD.search(value):
        return False
    return _LOCAL.match(source.folded, match.end()) is None


def private_keys(source: Source) -> Iterator[Hit]:
    """A header with a body: the header alone is only talk about keys."""
    content = source.content
    at = content.find(b"-----BEGIN ")
    while at >= 0:
        header = _HEADER.match(content, at)
        if header is not None and _BODY.search(content, header.end(), header.end() + 400):
            end = content.find(b"-----END", header.end(), header.end() + _KEY_BYTES)
            end = min(len(content), header.end() + _KEY_BYTES) if end < 0 else end
            pieces = tuple(match[0] for match in _PIECE.finditer(content, header.end(), end))
            yield Hit("secret", "private-key", at, header.end(), shown(header[0]), pieces, at, end)
            at = end - 1  # a key is not looked for inside another
        at = following(content, b"-----BEGIN ", at + 1)


def assigned(source: Source) -> Iterator[Hit]:
    taken: set[int] = set()
    for rule in (ASSIGNED, ENVIRONMENT):
        for hit in rule.hits(source):
            if hit.start not in taken:
                if len(taken) < MANY:
                    taken.add(hit.start)
                yield hit
