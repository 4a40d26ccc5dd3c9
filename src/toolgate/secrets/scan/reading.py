"""One content, looked through by every rule that is for it, in the order of where things stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from toolgate.core.ports import Vault
from toolgate.secrets.scan.assigned import UNSURE, by_name, by_run, compared
from toolgate.secrets.scan.commands import commands
from toolgate.secrets.scan.hidden import hidden
from toolgate.secrets.scan.keyblocks import key_blocks, kubernetes_secrets
from toolgate.secrets.scan.payloads import magic, payloads
from toolgate.secrets.scan.rules import CONTROLS, MANY, UNJUDGED, Hit, Seen, Source, at_most, plain
from toolgate.secrets.scan.tokens import runs, tokens
from toolgate.secrets.scan.urls import addresses
from toolgate.secrets.scan.wrapped import wrapped

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
    long_runs = list(runs(text))
    hits += at_most(tokens(text, long_runs))
    known = {hit.start for hit in hits}
    hits += at_most(wrapped(text, long_runs, known))
    hits += at_most(key_blocks(source))
    if not binary(text):  # where words and lines mean something
        hits += at_most(by_run(source, long_runs, known))
        hits += at_most(by_name(source, {hit.start for hit in hits}))
        for find in (compared, addresses, commands, kubernetes_secrets):
            hits += at_most(find(source))
        hits += hidden(source)
    if not name:
        hits += payloads(source)
    hits += _ours(text, vault)
    counts = Counter(hit.rule for hit in hits)
    crowded = frozenset(rule for rule, count in counts.items() if count >= MANY or rule == UNJUDGED)
    return Seen(_apart(sorted(hits, key=lambda hit: (hit.start, hit.rule in UNSURE))), crowded)


def _ours(text: bytes, vault: Vault | None) -> Iterator[Hit]:
    for name, start, end in islice(vault.within(text), MANY) if vault is not None else ():
        lines = tuple(line for line in text[start:end].split(b"\n") if line)
        yield Hit("secret", "vault", start, end, f"the value of {name}", lines)


def _apart(hits: list[Hit]) -> list[Hit]:
    """One secret is one finding: where two rules see the same, the one that knows its form counts."""
    kept: list[Hit] = []
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
