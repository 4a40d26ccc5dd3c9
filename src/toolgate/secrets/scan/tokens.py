"""Tokens and keys: secrets that can be told by their form, the prefixes that issuers give their tokens so that they can be
found, and the blocks in which keys are written (PEM, OpenPGP, SSH, PuTTY, JSON web keys, the data of a Kubernetes Secret).

Our own table and no library's: see docs/scan.md for what was tried and why. Hundreds of kinds are looked for in one pass: a
token has a long run of letters and digits, such runs are rare in ordinary text, and only in and just before them one
pattern of all prefixes is tried. The pattern of a kind is compiled when its prefix is first seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass
from toolgate.secrets.scan.judged import has_jwt_header, placeholder, real
from toolgate.secrets.scan.kinds import INSIDE, PREFIXED, pattern_of
from toolgate.secrets.scan.rules import SecretHit, Source, following, shown

RUN = 16
"""The shortest run of letters, digits, -, _ and ~ that is looked at."""
_WITHOUT_DIGIT = 30
"""A shorter run without a digit is a name."""
_UNMISTAKABLE = 9
"""A prefix so long may stand inside a word."""
_BEFORE = 28
"""How far before a run its prefix may begin."""
_TOKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-~"
_CLASSES = bytes(97 if byte in _TOKEN else 32 for byte in range(256))
_CHUNK = 20_000
"""Searching a text that is not longer needs no preparation, so many runs cost no more than many letters."""
_DIGIT = late_pattern(rb"[0-9]")
_DISCORD = late_pattern(
    rb"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])"
)

_QUOTES = (b'"', b"'", b"`")
_JOIN = late_pattern(
    rb"[\"'`][ \t]{0,4}(?:[+.&]|\.\.)?[ \t]{0,4}\\?(?:\r?\n[ \t]{0,40})?(?:[+.&][ \t]{0,4})?[rbf]?[\"'`]"
)
_PIECES = 400
_JWT = b"eyJ"
"""After its first part stands a dot: where none does, a run of nothing but this need not be read again from each."""
_DISCORD_BOT = "discord-bot-token"
"""Told by its three parts: the first is a number in base64."""


@dataclass(frozen=True, slots=True)
class TokenKind:
    name: str
    shape: str
    back: int = -1
    """How many characters before what was looked for it begins; -1: with it."""


@cache
def compiled(shape: str) -> re.Pattern[bytes]:
    return re.compile(f"(?:{pattern_of(shape)})(?![A-Za-z0-9])".encode())


@cache
def kinds() -> dict[bytes, tuple[TokenKind, ...]]:
    """The kinds of each prefix, with those of every prefix that it begins with."""
    found: dict[bytes, list[TokenKind]] = {}
    for row in filter(None, PREFIXED.split("\n")):
        name, prefixes, shape = row.split(" | ")
        for prefix in prefixes.encode().split():
            found.setdefault(prefix, []).append(TokenKind(name, shape))
    for row in filter(None, INSIDE.split("\n")):
        name, anchors, back, shape = row.split(" | ")
        for anchor in anchors.encode().split():
            found.setdefault(anchor, []).append(TokenKind(name, shape, int(back)))
    return {
        prefix: tuple(kind for size in range(len(prefix), 0, -1) for kind in found.get(prefix[:size], ()))
        for prefix in found
    }


def _any_of(words: list[bytes]) -> bytes:
    """A pattern for the longest of these words, in which no letter is compared twice."""
    heads: dict[bytes, list[bytes]] = {}
    for word in words:
        heads.setdefault(word[:1], []).append(word[1:])
    ends = heads.pop(b"", None) is not None
    sides = [re.escape(head) + _any_of(rest) for head, rest in sorted(heads.items())]
    if not sides:
        return b""
    return b"(?:" + b"|".join(sides) + b")" + (b"?" if ends else b"")


def _alone(prefix: bytes) -> bool:
    """It counts only where no word goes on: it is short, or the same letter over and over."""
    return all(kind.back < 0 for kind in kinds()[prefix]) and (
        len(prefix) < _UNMISTAKABLE or len(set(prefix)) == 1
    )


_WORD_BEGINS = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbfv0])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2}))"


def _prefixes() -> bytes:
    inside = _any_of(sorted(prefix for prefix in kinds() if not _alone(prefix)))
    return inside + b"|" + _WORD_BEGINS + _any_of(sorted(filter(_alone, kinds())))


_PREFIX = late_pattern(_prefixes)


def runs(text: bytes) -> Iterator[tuple[int, int]]:
    """Where long runs of letters, digits, -, _ and ~ begin and end, but for names: short ones without a digit."""
    classes = text.translate(_CLASSES)
    needle, size, at = b"a" * RUN, len(text), 0
    while at < size:
        start = classes.find(needle, at, at + _CHUNK)
        if start < 0:
            at += _CHUNK - RUN + 1
            continue
        at = classes.find(b" ", start)
        at = size if at < 0 else at
        if at - start >= _WITHOUT_DIGIT or _DIGIT.search(text, start, at):
            yield start, at


@cache
def _longest() -> int:
    return max(map(len, kinds()))


def _next_prefix(text: bytes, at: int, end: int) -> re.Match[bytes] | None:
    """In pieces: one search through megabytes would keep every other thread from running until it is over."""
    for low in range(at, end, _CHUNK):
        found = _PREFIX.search(text, low, min(low + _CHUNK + _longest(), end))
        if found is not None and found.start() < low + _CHUNK:
            return found
    return None


def tokens(text: bytes, long_runs: list[tuple[int, int]]) -> Iterator[SecretHit]:
    reached = 0
    for start, end in long_runs:
        at, tried = max(reached, start - _BEFORE), False
        if text[end : end + 1] == b"." and (bot := _DISCORD.match(text, start)):
            at = bot.end()
            yield SecretHit("secret", _DISCORD_BOT, start, at, f"…({at - start} characters)", (bot[0],))
        dotted = text[end : end + 1] in (b".", b"=")
        while at < end:
            prefix = _next_prefix(text, at, end)
            if prefix is None:
                break
            if prefix[0] == _JWT and not dotted:
                at = prefix.end()
                continue
            hit = _hit(text, prefix.start(), prefix[0])
            if hit is None and not tried and text[end : end + 1] in _QUOTES:
                tried = True
                hit = _joined(text, prefix.start(), end)
            at = prefix.start() + 1
            if hit is not None:
                at = max(at, hit.end)
                yield hit
        reached = max(reached, at, end)


def _joined(text: bytes, at: int, end: int) -> SecretHit | None:
    """A token that is written in pieces: `"ghp_…" + "…"`. Tried once for each run, on a piece of text."""
    piece = text[at : end + _PIECES]
    joins = [join.span() for join in _JOIN.finditer(piece, end - at)] if end - at < _PIECES else []
    if not joins or joins[0][0] != end - at:
        return None
    whole = _JOIN.sub(b"", piece)
    prefix = _PREFIX.match(whole)
    hit = _hit(whole, 0, prefix[0]) if prefix is not None else None
    if hit is None:
        return None
    stop, left = 0, hit.end
    for first, last in joins:
        if left <= first - stop:
            break
        left, stop = left - (first - stop), last
    values = tuple(part for part in _JOIN.split(piece[: stop + left]) if part)
    return SecretHit("secret", hit.rule, at, at + stop + left, hit.excerpt, values)


@cache
def _tried(prefix: bytes) -> tuple[tuple[TokenKind, re.Pattern[bytes], int], ...]:
    """The kinds of a prefix, what they must match, and how far from where the prefix begins."""
    return tuple(
        (kind, compiled(kind.shape), -kind.back if kind.back >= 0 else len(prefix))
        for kind in kinds()[prefix]
    )


def _hit(text: bytes, at: int, prefix: bytes) -> SecretHit | None:
    for kind, pattern, first in _tried(prefix):
        match = pattern.match(text, at + first) if at + first >= 0 else None
        if match is None:
            continue
        start = match.start() if kind.back >= 0 else at
        value = text[start : match.end()]
        if kind.name == "jwt" and not has_jwt_header(value):
            continue
        if real(value[0 if kind.back >= 0 else len(prefix) :]):
            shown = "" if kind.back >= 0 else prefix.decode()
            return SecretHit(
                "secret",
                kind.name,
                start,
                match.end(),
                f"{shown}…({match.end() - start} characters)",
                (value,),
            )
    return None


_HEADER = late_pattern(rb"BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BODY = late_pattern(rb"[A-Za-z0-9+/=]{40}")
_PIECE = late_pattern(rb"[A-Za-z0-9+/=]{16,}")
_KEY_BYTES = 16_000
_PUTTY_BODY = late_pattern(rb"Private-Lines: \d{1,4}\r?\n((?:[A-Za-z0-9+/=]{1,80}\r?\n?){1,100})")
_JWK_PRIVATE = late_pattern(rb"\"(?:d|k)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,1500})\"")
_AROUND = 3000
_SECRET_KIND = late_pattern(rb"kind:[ \t]{0,4}[\"']?secret[\"']?[ \t]{0,4}(?:\r?\n|$)")
_DATA = late_pattern(rb"(?:^|\n)[ \t]{0,8}data:[ \t]{0,4}\r?\n((?:[ \t]{1,12}[^\n]{0,2000}\n?){1,40})")
_ENTRY = late_pattern(
    rb"[ \t]{1,12}[\"']?([\w.-]{1,64})[\"']?:[ \t]{0,4}(?:[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,16})?[\"']?([A-Za-z0-9+/]{10,2000}={0,2})[\"']?[ \t]{0,4}(?:\r?\n|$)"
)


def key_blocks(source: Source) -> Iterator[SecretHit]:
    yield from private_keys(source.content)
    yield from _putty(source.content)
    yield from _web_keys(source.content)


def private_keys(content: bytes) -> Iterator[SecretHit]:
    """A header with a body: the header alone is only talk about keys."""
    at = content.find(b"BEGIN ")
    while at >= 0:
        header = (
            _HEADER.match(content, at) if content[max(0, at - 5) : at].endswith((b"----", b"---- ")) else None
        )
        if header is not None and _BODY.search(content, header.end(), header.end() + 400):
            start, body = max(0, at - 5), header.end()
            end = content.find(b"---END", body, body + _KEY_BYTES)
            end = min(len(content), body + _KEY_BYTES) if end < 0 else end
            yield _block("private-key", content, (start, body), (body, end))
            at = end - 1  # a key is not looked for inside another
        at = following(content, b"BEGIN ", at + 1)


def _block(rule: str, content: bytes, head: tuple[int, int], body: tuple[int, int]) -> SecretHit:
    pieces = tuple(match[0] for match in _PIECE.finditer(content, *body))
    start, end = head
    return SecretHit("secret", rule, start, end, shown(content[start:end]), pieces, start, body[1])


def _putty(content: bytes) -> Iterator[SecretHit]:
    at = content.find(b"PuTTY-User-Key-File-")
    while at >= 0:
        body = _PUTTY_BODY.search(content, at, at + _KEY_BYTES)
        if body is not None:
            yield _block("putty-private-key", content, (at, at + 22), body.span(1))
        at = following(
            content, b"PuTTY-User-Key-File-", body.end() if body is not None else at + _KEY_BYTES // 2
        )


def _web_keys(content: bytes) -> Iterator[SecretHit]:
    """A JSON web key with its private part (`d`), or a shared one (`k`)."""
    at = content.find(b'"kty"')
    reached = 0
    while at >= 0:
        private = _JWK_PRIVATE.search(content, max(reached, at - _AROUND), at + _AROUND)
        if private is not None:
            reached = private.end()
            start, end = private.span(1)
            yield SecretHit(
                "secret", "json-web-key", start, end, f"…({end - start} characters)", (private[1],)
            )
        at = following(content, b'"kty"', at + _AROUND // 2 if private is None else max(reached, at + 5))


def kubernetes_secrets(source: Source) -> Iterator[SecretHit]:
    """The values of `data:` in the document that says `kind: Secret`."""
    at = source.folded.find(b"kind:")
    reached = 0
    while at >= 0:
        step = 5
        if _SECRET_KIND.match(source.folded, at):
            low = max(reached, source.folded.rfind(b"\n---", max(0, at - _AROUND), at), at - _AROUND)
            high = source.folded.find(b"\n---", at, at + _AROUND)
            high = at + _AROUND if high < 0 else high
            block = _DATA.search(source.content, low, high)
            for entry in _ENTRY.finditer(source.content, *block.span(1)) if block is not None else ():
                start, end = entry.span(2)
                if not placeholder(entry[2]):
                    excerpt = f"{shown(entry[1])}: …({end - start} characters)"
                    yield SecretHit("secret", "kubernetes-secret", start, end, excerpt, (entry[2],))
            reached = block.end() if block is not None else reached
            step = 5 if block is not None else _AROUND // 2
        at = following(source.folded, b"kind:", max(reached, at + step))
