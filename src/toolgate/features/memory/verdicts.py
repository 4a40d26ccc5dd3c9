"""Verdicts: whether what is remembered holds now, and how far to trust it. Pure functions of what is recorded.

*superseded*: another item says that it takes its place. That stays so when the other one is forgotten: what is no
longer remembered does not make the older fact true again. It ends when the storing of the other is undone, or its
link is taken away. *disputed*: another one contradicts it, or would supersede it with too little trust. *stale*: a
date has passed, or a file that it cites is another now. Otherwise *current*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from toolgate.core.clock import iso
from toolgate.features.memory.items import TRUST, MemoryItem

CURRENT, SUPERSEDED, STALE, DISPUTED = "current", "superseded", "stale", "disputed"


class MemoryLink(NamedTuple):
    """`source` supersedes or contradicts `target`; with what is known of the other end."""

    source: str
    kind: str
    target: str
    state: str
    trust: str
    valid_from: int | None
    retired: bool
    """The other end is superseded itself, so it disputes nothing any more."""


class ItemVerdict(NamedTuple):
    word: str
    why: str = ""
    by: tuple[str, ...] = ()
    """The items that make it so."""


def verdict_of(
    item: MemoryItem, links: Sequence[MemoryLink], changed: Mapping[str, str], now: int
) -> ItemVerdict:
    """`links` are those of the item in both directions, seen from the other end; `changed` says which files are others
    now and how."""
    against: list[str] = []
    weak: list[str] = []
    strong: list[str] = []
    for link in links:
        other = link.source if link.target == item.id else link.target
        if link.kind == "supersedes" and link.target == item.id and link.state != "undone":
            if link.valid_from is not None and link.valid_from > now:
                continue  # it will take its place, and has not yet
            (against if may_supersede(link.trust, item.trust) else weak).append(other)
        elif _falls_short(item, link, now):
            strong.append(other)
    if against:
        return ItemVerdict(SUPERSEDED, f"superseded by {', '.join(sorted(against))}", tuple(sorted(against)))
    disputes = [
        link.source if link.target == item.id else link.target
        for link in links
        if link.kind == "contradicts" and link.state == "kept" and not link.retired
    ]
    if disputes or weak or strong:
        by = tuple(sorted({*disputes, *weak, *strong}))
        how = "contradicts" if disputes else _UNEQUAL[bool(weak)]
        return ItemVerdict(DISPUTED, f"disputed: {', '.join(by)} {how}", by)
    if (why := _past(item, now)) or (why := _moved(item, changed)):
        return ItemVerdict(STALE, why)
    return ItemVerdict(CURRENT)


def _falls_short(item: MemoryItem, link: MemoryLink, now: int) -> bool:
    """Whether the item is to supersede one that is trusted more and still there."""
    stands = (
        link.kind == "supersedes" and link.source == item.id and link.state == "kept" and not link.retired
    )
    begun = item.valid_from is None or item.valid_from <= now
    return stands and begun and not may_supersede(item.trust, link.trust)


_UNEQUAL = {
    True: "is to supersede it, and is trusted less",
    False: "is trusted more, and it is to supersede that",
}


def _past(item: MemoryItem, now: int) -> str:
    if item.expires_at is not None and item.expires_at <= now:
        return f"expired at {iso(item.expires_at)}"
    if item.valid_to is not None and item.valid_to <= now:
        return f"was valid until {iso(item.valid_to)}"
    if item.valid_from is not None and item.valid_from > now:
        return f"is valid only from {iso(item.valid_from)}"
    return ""


def _moved(item: MemoryItem, changed: Mapping[str, str]) -> str:
    for one in item.evidence:
        ref = one["ref"]
        if "sha256" in one and ref in changed and changed[ref] != one["sha256"]:
            return f"{ref} has changed since" if changed[ref] else f"{ref} is gone"
    return ""


def is_hidden(item: MemoryItem, verdict: ItemVerdict, now: int) -> bool:
    """Shown only on request: what was superseded, and what was to be kept until a date that has passed."""
    return verdict.word == SUPERSEDED or (item.expires_at is not None and item.expires_at <= now)


def may_supersede(source: str, target: str) -> bool:
    """Nothing puts aside what is trusted more, as a human's words are more than a persona's; both are shown instead."""
    return TRUST.index(source) >= TRUST.index(target)


def least(levels: Iterable[str]) -> str:
    """What is derived is trusted as far as the least of what it is made of."""
    return min(levels, key=TRUST.index)
