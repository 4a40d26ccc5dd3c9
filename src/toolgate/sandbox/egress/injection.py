"""Secrets that a program uses without holding them: what it sends is a placeholder, and the value is put in here."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import quote, quote_plus

from toolgate.core.errors import NotAllowed, Unavailable
from toolgate.sandbox.egress.http1 import Ask, Headers

MAX_BODY = 1 << 20
_TEXTUAL = re.compile(
    r"\s*(text/|application/([\w.-]+\+)?(json|xml|x-www-form-urlencoded|graphql|javascript)\b)", re.I
)
_BASIC = re.compile(rb"(basic\s+)([A-Za-z0-9+/=]+)\s*", re.I)
_UNSENDABLE = re.compile(r"[^\t\x20-\x7e\x80-\U0010ffff]")
# A compressed page cannot be searched, and a part of a page may have a part of a value.
_UNSEARCHABLE = frozenset({b"accept-encoding", b"range", b"if-range"})


class Redaction(Protocol):
    """Bytes in, bytes out, without the values; what may still become one is held back until it is clear."""

    def feed(self, data: bytes) -> bytes: ...

    def close(self) -> bytes: ...


class SecretSource(Protocol):
    @property
    def placeholders(self) -> Mapping[str, str]:
        """Placeholder → name. Placeholders are letters, digits, `-`, `_`, `.` and `~`, so no client encodes them."""
        ...

    def resolve(self, name: str, place: str) -> str | None:
        """The value, or None where this secret is not for this `host:port`. Must be quick."""
        ...

    def stream(self, names: Sequence[str]) -> Redaction: ...


@dataclass(frozen=True, slots=True)
class Filled:
    ask: Ask
    body: bytes | None
    """None where it is sent on as it comes."""
    names: tuple[str, ...] = ()


class Injector:
    def __init__(self, secrets: SecretSource | None) -> None:
        self._secrets = secrets
        self._names = dict(secrets.placeholders) if secrets else {}
        alternatives = "|".join(re.escape(each) for each in sorted(self._names, key=len, reverse=True))
        self._pattern = re.compile(alternatives.encode()) if alternatives else None
        self.used: dict[str, None] = {}
        """Names that were put into any request so far. A host may send back later what it was sent before."""

    @property
    def longest(self) -> int:
        return max((len(each) for each in self._names), default=0)

    def found(self, data: bytes) -> bool:
        return self._pattern is not None and self._pattern.search(data) is not None

    def wants_body(self, ask: Ask) -> bool:
        """Whether a placeholder in the body would be replaced: it is small, of known length, text and not packed."""
        kind = ask.header(b"content-type")
        plain = not ask.header(b"content-encoding") and (not kind or _TEXTUAL.match(kind) is not None)
        return bool(self._pattern and ask.length and ask.length <= MAX_BODY and plain)

    def meant_for(self, place: str) -> bool:
        """Whether any secret of this program is for this `host:port`."""
        return self._secrets is not None and any(
            self._secrets.resolve(name, place) is not None for name in self._names.values()
        )

    def fill(self, ask: Ask, body: bytes | None, safe: bool) -> Filled:
        """The request with values for placeholders. `safe` is a way there on which nobody can listen."""
        if self._pattern is None:
            return Filled(ask, body)
        filling = _Filling(self._pattern, self._value_for(ask.target.place, safe))
        path = filling.put(ask.target.path.encode("ascii"), lambda value: quote(value, safe="")).decode(
            "ascii"
        )
        headers = tuple((name, filling.header(name, value)) for name, value in ask.headers)
        if body is not None:
            body = filling.put(body, _escaping(ask.header(b"content-type")))
        names = tuple(dict.fromkeys(self._names[each] for each in filling.used))
        self.used.update(dict.fromkeys(names))
        filled = replace(ask, target=replace(ask.target, path=path), headers=headers)
        return Filled(filled, body, names)

    def guarded(self, headers: Headers) -> Headers:
        """Headers of a request whose answer must be searched."""
        if not self.used:
            return headers
        kept = tuple(header for header in headers if header[0] not in _UNSEARCHABLE)
        return (*kept, (b"accept-encoding", b"identity"))

    def redaction(self) -> Redaction | None:
        """For one answer or one header of it; None while no secret was sent anywhere."""
        return self._secrets.stream(tuple(self.used)) if self._secrets and self.used else None

    def redacted(self, headers: Headers) -> Headers:
        """Headers of an answer, without the values. A name that has one in it goes with its header."""
        if not self.used:
            return headers
        return tuple((name, self._clean(value)) for name, value in headers if self._clean(name) == name)

    def _clean(self, data: bytes) -> bytes:
        stream = self.redaction()
        return data if stream is None else stream.feed(data) + stream.close()

    def _value_for(self, place: str, safe: bool) -> Callable[[str], str]:
        def value(placeholder: str) -> str:
            assert self._secrets is not None
            name = self._names[placeholder]
            found = self._secrets.resolve(name, place)
            if found is None:
                raise NotAllowed(
                    f"the secret {name} is not for {place}", "send it to a host it is allowed for"
                )
            if not safe:
                raise NotAllowed(f"the secret {name} is not sent over plain http to {place}", "use https://")
            return found

        return value


class _Filling:
    """One request being filled; it remembers which placeholders it met."""

    def __init__(self, pattern: re.Pattern[bytes], value: Callable[[str], str]) -> None:
        self._pattern = pattern
        self._value = value
        self.used: dict[str, None] = {}

    def put(self, data: bytes, escape: Callable[[str], str]) -> bytes:
        def one(match: re.Match[bytes]) -> bytes:
            placeholder = match[0].decode()
            self.used[placeholder] = None
            return escape(self._value(placeholder)).encode()

        return self._pattern.sub(one, data)

    def header(self, name: bytes, value: bytes) -> bytes:
        basic = _BASIC.fullmatch(value) if name == b"authorization" else None
        if basic is None:
            return self.put(value, _one_line)
        try:
            user = base64.b64decode(basic[2], validate=True)
        except binascii.Error:
            return value
        filled = self.put(user, str)
        return value if filled == user else basic[1] + base64.b64encode(filled)


def _one_line(value: str) -> str:
    if _UNSENDABLE.search(value):
        raise Unavailable(
            "the secret has a line break or a control character: no header can carry it", "set it again"
        )
    return value


def _escaping(kind: str) -> Callable[[str], str]:
    if "json" in kind.lower():
        return lambda value: json.dumps(value)[1:-1]
    if "x-www-form-urlencoded" in kind.lower():
        return quote_plus
    return str
