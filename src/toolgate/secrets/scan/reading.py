"""One content, looked through by every rule that is for it, in the order of where things stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from toolgate.core.ports import Vault
from toolgate.secrets.scan.assigned import assigned, private_keys, url_passwords
from toolgate.secrets.scan.hidden import hidden
from toolgate.secrets.scan.payloads import magic, payloads
from toolgate.secrets.scan.rules import CONTROLS, MANY, Hit, Seen, Source, plain
from toolgate.secrets.scan.tokens import TOKENS

_SAMPLE = 64 << 10
_MANY_CONTROLS = 0.02


def binary(content: bytes) -> bool:
    """No text: NULs, and many other control characters among its first bytes. NULs alone do not hide a text."""
    head = content[:_SAMPLE]
    if b"\0" not in head:
        return False
    return len(head) - len(head.translate(None, CONTROLS)) > max(_MANY_CONTROLS * len(head), 8)


def look(content: bytes, vault: Vault | None, *, name: bool = False) -> Seen:
    """Everything in a content, old or new; of binary ones only what is told by its form, and our own values."""
    text = plain(content)
    source = Source.of(text)
    hits: list[Hit] = []
    if not name:
        hits += magic(content)
    for rule in TOKENS:
        hits += islice(rule.hits(source), MANY)
    hits += islice(private_keys(source), MANY)
    if not binary(text):  # where words and lines mean something
        for find in (assigned, url_passwords):
            hits += islice(find(source), MANY)
        hits += hidden(source)
    if not name:
        hits += payloads(source)
    hits += _ours(text, vault)
    counts = Counter(hit.rule for hit in hits)
    crowded = frozenset(rule for rule, count in counts.items() if count >= MANY)
    return Seen(_apart(sorted(hits, key=lambda hit: (hit.start, hit.rule == "assigned-secret"))), crowded)


def _ours(text: bytes, vault: Vault | None) -> Iterator[Hit]:
    for name, start, end in islice(vault.within(text), MANY) if vault is not None else ():
        lines = tuple(line for line in text[start:end].split(b"\n") if line)
        yield Hit("secret", "vault", start, end, f"the value of {name}", lines)


def _apart(hits: list[Hit]) -> list[Hit]:
    """One secret is one finding: where two rules see the same, the one that knows its form counts."""
    kept: list[Hit] = []
    reached = -1
    for hit in hits:
        if hit.kind != "secret" or hit.rule == "vault":
            kept.append(hit)
        elif hit.start >= reached:
            kept.append(hit)
            reached = hit.end
    return kept
