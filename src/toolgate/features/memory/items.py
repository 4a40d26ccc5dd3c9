"""MemoryItem: one thing that is remembered, with where it comes from; what a caller is shown of it; and what comes of storing
and purging some."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from toolgate.core.clock import iso
from toolgate.core.errors import InvalidArgs
from toolgate.features.memory.periods import SUMMARY_TYPES

Store = Literal["user_memory", "summaries"]
Category = Literal[
    "fact", "preference", "life-goal", "project", "open-loop", "relationship", "health", "work", "personal-context"
]  # fmt: skip
SummaryType = Literal[
    "conversation-summary", "daily-summary", "weekly-summary", "monthly-summary", "quarterly-summary", "yearly-summary"
]  # fmt: skip
Trust = Literal["high", "medium", "low"]
CATEGORIES: tuple[str, ...] = get_args(Category)
TRUST: tuple[str, ...] = ("low", "medium", "high")
assert get_args(SummaryType) == SUMMARY_TYPES
_LISTS = frozenset({"tags", "evidence", "flags", "supersedes", "contradicts", "sources"})


@dataclass(frozen=True, kw_only=True)
class MemoryItem:
    id: str
    scope: str
    version: int = 1
    state: str = "kept"
    """`kept`, `forgotten`, `undone` (its storing was taken back) or `purged` (only that it was there is left)."""
    store: str = "user_memory"
    type: str = "fact"
    content: str
    digest: str = ""
    subject: str = ""
    tags: tuple[str, ...] = ()
    priority: int | None = None
    period: str = ""
    conversation: str = ""
    place: int | None = None
    at: int = 0
    """When it was said; for a summary when its period begins. Filters by time go by it."""
    created_at: int = 0
    changed_at: int = 0
    persona: str = ""
    call: str = ""
    """The call that made this version: its events in the ledger say the rest."""
    op: str = "store"
    reason: str = ""
    evidence: tuple[Mapping[str, str], ...] = ()
    """Each a `ref` and, of a file of the project, the `sha256` that it had."""
    trust: str = "medium"
    method: str = ""
    """How a summary was made."""
    flags: tuple[str, ...] = ()
    """What the rules noticed: `instructions`, `echo`."""
    valid_from: int | None = None
    valid_to: int | None = None
    expires_at: int | None = None
    supersedes: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> MemoryItem:
        found: dict[str, Any] = {
            name: tuple(json.loads(row[name])) if name in _LISTS else row[name] for name in NAMES
        }
        return cls(**found)

    def row(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in NAMES}
        return {name: json.dumps(list(value)) if name in _LISTS else value for name, value in found.items()}

    def shown(self) -> dict[str, Any]:
        """As the tools give it, in the words of the document; what is empty is left out."""
        told: dict[str, Any] = {
            "id": self.id, "store": self.store, "type": self.type, "content": self.content, "tags": list(self.tags),
            "subject": self.subject, "pursuing_priority": self.priority, "period_key": self.period,
            "chat_id": self.conversation, "created_at": iso(self.created_at), "version": self.version,
            "trust": self.trust, "method": self.method, "flags": list(self.flags),
            "valid_from": _iso(self.valid_from), "valid_to": _iso(self.valid_to), "expires_at": _iso(self.expires_at),
            "supersedes": list(self.supersedes), "contradicts": list(self.contradicts), "sources": list(self.sources),
        }  # fmt: skip
        return {name: value for name, value in told.items() if value not in (None, "", [])}

    def provenance(self) -> dict[str, Any]:
        """Who, by which call, when, why and on which grounds."""
        return {
            "version": self.version, "state": self.state, "op": self.op, "persona": self.persona, "call": self.call,
            "at": iso(self.changed_at), "reason": self.reason, "evidence": [dict(one) for one in self.evidence],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NewMemory:
    """What is to be stored, as the caller gives it."""

    content: str
    store: str = "user_memory"
    type: str = "fact"
    tags: tuple[str, ...] = ()
    subject: str = ""
    same_subject: str = "keep"
    priority: int | None = None
    period: str = ""
    conversation: str = ""
    place: int | None = None
    trust: str = ""
    evidence: tuple[str, ...] = ()
    valid_from: str = ""
    valid_to: str = ""
    expires_at: str = ""
    supersedes: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    method: str = ""
    said_at: str = ""


class StoredMemory(NamedTuple):
    item: MemoryItem
    new: bool
    """False if there was an equal one, which it is."""
    alike: list[str]
    """Other current items on the same subject, about which the caller said nothing."""


class ImportCount(NamedTuple):
    """What an import brought, and what was there before."""

    new: int
    old: int


class PurgedMemories(NamedTuple):
    ids: list[str]
    derived: list[str]
    """Those of them that were made of the others."""
    quoting: list[str]
    """Others that hold the whole text of one of them."""


NAMES = tuple(one.name for one in fields(MemoryItem))


def _iso(micros: int | None) -> str | None:
    return None if micros is None else iso(micros)


def dated(item: MemoryItem) -> MemoryItem:
    if item.valid_from is not None and item.valid_to is not None and item.valid_to < item.valid_from:
        raise InvalidArgs("`valid_to` is before `valid_from`", "turn them around")
    return item


def digest_of(content: str, place: int | None = None) -> str:
    """Equal texts of one conversation are one item, unless they are said to stand at different places in it."""
    said = " ".join(content.split()) if place is None else f"{place}:{content}"
    return hashlib.sha256(said.encode()).hexdigest()


_WORDS = re.compile(r"\w+")


def words_of(text: str) -> frozenset[str]:
    """What two texts are compared by."""
    return frozenset(_WORDS.findall(text.casefold()))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Of the words of both, how many are in both (Jaccard)."""
    return len(one & other) / len(one | other) if one or other else 0.0


_INSTRUCTIONS = re.compile(
    r"\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|earlier|all|your|any)\b.{0,40}"
    r"\b(instruction|prompt|rule|message|guideline|polic)"
    r"|\byou (must|should|will|shall|are now|have to)\b.{0,80}\b(tool|call|send|run|execute|delete|obey|reveal|always|never)\b"
    r"|\b(system|developer) (prompt|message)\b"
    r"|</?(system|assistant|instructions?|tool_result|tool_call|invoke)\b[^<>]*>|<\|im_(start|end)\|>|\[/?INST\]"
    r"|\b(do not|don't|never) (tell|inform|ask|mention to|show) (the )?(user|human|owner)\b"
    r"|\bsupersedes? (all|every|any) (other )?(memor|fact|item)",
    re.IGNORECASE | re.DOTALL,
)


def has_instructions(text: str) -> bool:
    """Whether a text reads as if it told its reader what to do. A rule of thumb that only ever lowers trust: whatever
    it misses is data all the same."""
    return _INSTRUCTIONS.search(text) is not None
