"""One content, looked through by every rule that is for it, in the order of where things stand.

Tokens and keys that stand in base64 (a settings file, a cookie, a Kubernetes Secret) are looked at once they are decoded,
once each, so this takes no longer than reading them.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice

from toolgate.core.late_pattern import late_pattern
from toolgate.core.ports import VaultValues
from toolgate.secrets.scan.assigned import UNSURE, by_name, by_run, compared
from toolgate.secrets.scan.credentials import addresses, commands
from toolgate.secrets.scan.payloads import hidden, magic, payloads
from toolgate.secrets.scan.rules import (
    CONTROLS,
    MANY,
    UNJUDGED,
    Scanned,
    SecretHit,
    Source,
    at_most,
    back,
    plain,
)
from toolgate.secrets.scan.tokens import key_blocks, kubernetes_secrets, private_keys, runs, tokens

_SAMPLE = 64 << 10
_MANY_CONTROLS = 0.02
_MARGIN = late_pattern(rb"^[ +-]", re.MULTILINE)
MASKED = b"[masked]"


def binary(content: bytes) -> bool:
    """No text: NULs, and many other control characters among its first bytes. NULs alone do not hide a text."""
    head = content[:_SAMPLE]
    if b"\0" not in head:
        return False
    return len(head) - len(head.translate(None, CONTROLS)) > max(_MANY_CONTROLS * len(head), 8)


def look(content: bytes, vault: VaultValues | None, *, name: bool = False) -> Scanned:
    """Everything in a content, old or new; of binary ones only what is told by its form, and our own values."""
    text = plain(content)
    source = Source.of(text)
    hits: list[SecretHit] = []
    if not name:
        hits += magic(content)
    lines = not binary(text)
    hits += _secrets(source, lines, at_most)
    if lines:
        hits += hidden(source)
    if not name:
        hits += payloads(source)
    hits += _ours(text, vault)
    counts = Counter(hit.rule for hit in hits)
    crowded = frozenset(rule for rule, count in counts.items() if count >= MANY or rule == UNJUDGED)
    return Scanned(_apart(sorted(hits, key=lambda hit: (hit.start, hit.rule in UNSURE))), crowded)


def _secrets(
    source: Source, lines: bool, taken: Callable[[Iterable[SecretHit]], Iterable[SecretHit]]
) -> list[SecretHit]:
    """What the rules find; where there are no lines, only what is told by its form."""
    text = source.content
    long_runs = list(runs(text))
    hits = [*taken(tokens(text, long_runs))]
    known = {hit.start for hit in hits}
    hits += taken(wrapped(text, long_runs, known))
    hits += taken(key_blocks(source))
    if lines:  # words and lines mean something
        hits += taken(by_run(source, long_runs, known))
        hits += taken(by_name(source, {hit.start for hit in hits}))
        for find in (compared, addresses, commands, kubernetes_secrets):
            hits += taken(find(source))
    return hits


def without_secrets(content: bytes, vault: VaultValues | None) -> bytes:
    """Every secret masked where it stands, however many there are; lines stay lines. For what is recorded of a text,
    also of one that stands in the margin of a diff. What has NULs is shown as no text."""
    if b"\0" in content:
        return content
    spans = [*_secret_spans(content, vault)]
    if content[:1] in (b"+", b"-") or b"\n+" in content or b"\n-" in content:
        margins = [match.start() for match in _MARGIN.finditer(content)]
        # where they would stand without one another
        moved = [at - number for number, at in enumerate(margins)]
        for start, end in _secret_spans(_MARGIN.sub(b"", content), vault):
            spans.append((start + bisect_right(moved, start), end + bisect_left(moved, end)))
    made, reached = [], 0
    for start, end in sorted(spans):
        if end > reached:
            if start >= reached:
                made += [content[reached:start], MASKED]
            reached = end
    return b"".join((*made, content[reached:])) if made else content


def _secret_spans(content: bytes, vault: VaultValues | None) -> Iterator[tuple[int, int]]:
    for hit in chain(_secrets(Source.of(content), True, list), _ours(content, vault, None)):
        if hit.rule == UNJUDGED:
            yield hit.start, len(content)  # nobody can tell what of the rest is a secret
        at, last = hit.span
        for value in hit.values if hit.kind == "secret" else ():
            start = content.find(value, at, max(last, hit.end))
            if start >= 0 and value:
                at = start + len(value)
                yield start, at


def _ours(text: bytes, vault: VaultValues | None, most: int | None = MANY) -> Iterator[SecretHit]:
    for name, start, end in islice(vault.within(text), most) if vault is not None else ():
        lines = tuple(line for line in text[start:end].split(b"\n") if line)
        yield SecretHit("secret", "vault", start, end, f"the value of {name}", lines)


def _apart(hits: list[SecretHit]) -> list[SecretHit]:
    """One secret is one finding: where two rules see the same, the one that knows its form counts."""
    kept: list[SecretHit] = []
    reached = -1
    last = -1
    for hit in hits:
        if hit.kind != "secret" or hit.rule in ("vault", UNJUDGED):
            kept.append(hit)
        elif hit.start >= reached:
            last, reached = len(kept), hit.end
            kept.append(hit)
        elif kept[last].rule in UNSURE and hit.rule not in UNSURE:
            kept[last], reached = hit, max(reached, hit.end)
    return kept


_ENCODED = late_pattern(rb"[A-Za-z0-9+/_-]{28,8000}")
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
