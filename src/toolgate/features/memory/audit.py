"""Audit of a memory: what could go, and why. It proposes and changes nothing; applying is calls through the gate.

Everything here is a rule that can be read: equal and nearly equal texts, facts that exclude one another, what nobody ever
recalled, what was stored from its own recall, and texts that say nothing.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from toolgate.core.clock import SECOND
from toolgate.features.memory import recalls, verdicts
from toolgate.features.memory.items import TRUST, MemoryItem, likeness, words_of
from toolgate.features.memory.memory import Memory
from toolgate.features.memory.reader import JudgedItem
from toolgate.features.memory.store import ItemFilter

KINDS = ("junk", "duplicate", "near-duplicate", "echo", "contradiction", "expired", "never-recalled")
NEAR, OPPOSED = 0.85, 0.7
"""Of the words of two texts, how many both have: to say the same, and to be about the same."""
OFTEN = 20
"""So many equal ones are not news but a loop, true or not; so many that differ in numbers alone are a log."""
SERIES = 4
"""So many that differ in numbers alone are a series, and contradict nothing."""
MOST = 200_000
LONGEST = 8000
"""Characters of a text that is compared with others word by word; longer ones are compared as wholes."""
_PAGE = 1000
_thread = ThreadPoolExecutor(1, "audit")
"""Comparing takes as long as it takes: beside everybody else, and one audit after the other."""
_DAY = 86_400 * SECOND
_NEGATIONS = frozenset({"not", "no", "never", "none", "cannot", "t", "without"})
"""As single words: `isn't` is the words `isn` and `t`."""
_VERBS = frozenset(["is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "will", "would", "isn", "aren", "wasn", "weren", "don", "doesn", "didn", "hasn", "haven", "hadn", "won", "wouldn", "be", "any", "longer"])  # fmt: skip
"""Which a negation brings with it or changes."""
_JUNK = (
    ("says nothing", re.compile(r"[\W_]*|(ok(ay)?|yes|no|yep|sure|thanks?( you)?|hi|hello|hey|bye|done|test|n/?a|none|null|undefined|nan|lorem ipsum.*)[\W_]*", re.I | re.S)),
    ("a phrase of a model about itself", re.compile(r"\bas an (ai|artificial intelligence)( language)? model\b|\bi('m| am) (just )?an ai\b|\bi (cannot|can't|am unable to) (assist|help) with\b|^(sure|certainly|of course)[,!] here('s| is| are)\b", re.I)),
    ("a heartbeat or status line", re.compile(r"\b(heartbeat|health ?check|cron (job )?(ran|tick)|no (new )?(messages|updates|changes)|nothing to report|still waiting|polling)\b", re.I)),
    ("an error that a program printed", re.compile(r"^(traceback \(most recent|error:|exception:|\S*error\b.{0,20}\bat line\b|http/?\d? ?[45]\d\d\b|timed? ?out\b)", re.I)),
    ("output of a program", re.compile(r'^\s*[\[{]\s*"[^"]+"\s*:|^(\s*at \S+\(|<(!doctype|html|div)\b)', re.I)),
    ("a question, and no answer", re.compile(r"(who|what|when|where|why|how|which|whose|can|could|do|does|did|is|are|was|will|would|should|have|has)\b[^.!?\n]{1,300}\?+", re.I)),
    ("what was asked, not what is so", re.compile(r"^(the )?user (asked|asks|is asking|wants to know|wanted to know|inquired)\b", re.I)),
    ("one character again and again", re.compile(r"(.)\1{19,}", re.S)),
)  # fmt: skip


_QUESTION = "a question, and no answer"
_WHOLE = ("says nothing", _QUESTION)
"""Rules that the whole text must fit."""


@dataclass(frozen=True)
class AuditProposal:
    kind: str
    why: str
    forget: tuple[str, ...] = ()
    """What `memory.forget` would take, if somebody agrees."""
    keep: str = ""
    contradicts: tuple[str, str] | None = None
    """Two that could be linked with `memory.update {contradicts}`, or one of them corrected."""
    sample: str = ""

    def shown(self, longest: int = 20) -> dict[str, Any]:
        told: dict[str, Any] = {
            "kind": self.kind,
            "why": self.why,
            "sample": self.sample[:200],
            "keep": self.keep,
        }
        if self.forget:
            told |= {"items": len(self.forget), "forget": list(self.forget[:longest])}
        if self.contradicts:
            told["contradicts"] = list(self.contradicts)
        return {name: value for name, value in told.items() if value not in ("", None)}


@dataclass(frozen=True)
class AuditReport:
    examined: int
    proposals: list[AuditProposal]
    versions: dict[str, int]
    """Of everything that was looked at: what is forgotten must still be what was judged."""

    def to_forget(self, kinds: Collection[str]) -> dict[str, int]:
        """What the proposals of these kinds would forget, with the version of each."""
        ids = [ident for one in self.proposals if one.kind in kinds for ident in one.forget]
        return {ident: self.versions[ident] for ident in ids}

    def counts(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for one in self.proposals:
            found[one.kind] += len(one.forget) or 1
        return dict(found)


async def audit(
    memory: Memory, scope: str, kinds: Sequence[str] = KINDS, unused_days: int = 180
) -> AuditReport:
    """Each item is in at most one proposal to forget it, under the first kind that fits."""
    found = await _everything(memory, scope)
    used = await recalls.counts((await memory.records()).tables, [one.item.id for one in found])
    proposals = await asyncio.get_running_loop().run_in_executor(
        _thread, _proposals, found, kinds, _Best(used), memory.now, unused_days
    )
    return AuditReport(len(found), proposals, {one.item.id: one.item.version for one in found})


def _proposals(
    found: Sequence[JudgedItem], kinds: Sequence[str], best: _Best, now: int, days: int
) -> list[AuditProposal]:
    items = [one.item for one in found if one.verdict.word != verdicts.SUPERSEDED]
    proposals: list[AuditProposal] = []
    for kind in (kind for kind in KINDS if kind in kinds):
        gone = {ident for one in proposals for ident in one.forget}
        left = [one for one in items if one.id not in gone]
        proposals += sorted(_FINDERS[kind](left, best, now, days), key=lambda one: -len(one.forget))
    return proposals


async def _everything(memory: Memory, scope: str) -> list[JudgedItem]:
    store, found = await memory.records(), list[JudgedItem]()
    wanted = ItemFilter(scope=scope, limit=_PAGE, oldest_first=True)
    while page := await store.find(wanted):
        found += await memory.judged(page, memory.now)
        if len(page) < _PAGE or len(found) >= MOST:
            break
        wanted = replace(wanted, after=(page[-1].at, page[-1].id))
    return found


class _Best:
    """Which of several to keep: the most trusted, then the most used, then the oldest."""

    def __init__(self, used: dict[str, int]) -> None:
        self.used = used

    def of(self, items: Iterable[MemoryItem]) -> MemoryItem:
        return min(
            items,
            key=lambda one: (-TRUST.index(one.trust), -self.used.get(one.id, 0), one.created_at, one.id),
        )


def _junk(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    found: dict[str, list[MemoryItem]] = defaultdict(list)
    for one in items:
        for why, rule in _JUNK:
            if one.trust == "high" or (why == _QUESTION and one.type == "open-loop"):
                continue
            if (rule.fullmatch if why in _WHOLE else rule.search)(one.content.strip()):
                found[why].append(one)
                break
    taken = {one.id for group in found.values() for one in group}
    for group in _series([one for one in items if one.id not in taken and one.trust != "high"]).values():
        if len(group) >= OFTEN:
            found[f"{len(group)} that differ in numbers alone, as lines of a log do"] += group
    return [
        AuditProposal("junk", why, tuple(one.id for one in group), sample=group[0].content)
        for why, group in found.items()
    ]


def _series(items: list[MemoryItem]) -> dict[tuple[str, str], list[MemoryItem]]:
    """Texts that are equal but for the numbers in them, where they have any."""
    groups: dict[tuple[str, str], list[MemoryItem]] = defaultdict(list)
    for one in items:
        masked, numbers = re.subn(r"\d+", "#", one.content)
        if numbers:
            groups[one.type, masked].append(one)
    return groups


def _same(one: MemoryItem) -> tuple[str, str, str, str]:
    return (one.store, one.type, one.period, re.sub(r"\W+", " ", one.content.casefold()).strip())


def _duplicates(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    groups: dict[Any, list[MemoryItem]] = defaultdict(list)
    for one in items:
        groups[_same(one)].append(one)
    return [_doubled("duplicate", group, best) for group in groups.values() if len(group) > 1]


def _doubled(kind: str, group: list[MemoryItem], best: _Best) -> AuditProposal:
    kept = best.of(group)
    words = "equal" if kind == "duplicate" else "nearly equal"
    why = f"{len(group)} {words} ones"
    if len(group) >= OFTEN and not any(one.trust == "high" for one in group):
        why += "; that often it comes from a loop: check that it is true at all"
    return AuditProposal(
        kind, why, tuple(one.id for one in group if one.id != kept.id), kept.id, sample=kept.content
    )


def _near(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    """Groups around one text each; those that differ in a number or a negation are not the same."""
    near: dict[str, dict[str, MemoryItem]] = defaultdict(dict)
    by_id = {one.id: one for one in items}
    for one, other in _pairs(items, NEAR):
        if not _differs(one, other):
            near[one.id][other.id], near[other.id][one.id] = other, one
    taken, found = set[str](), list[AuditProposal]()
    for head in sorted(near, key=lambda ident: (-len(near[ident]), ident)):
        group = [one for one in near[head].values() if one.id not in taken]
        if head not in taken and group:
            taken |= {head, *(one.id for one in group)}
            found.append(_doubled("near-duplicate", [by_id[head], *group], best))
    return found


def _pairs(items: list[MemoryItem], least: float) -> Iterable[tuple[MemoryItem, MemoryItem]]:
    """Pairs of one kind with mostly the same words, by their rarest words: two sets of which so much is common share one
    of their few rarest members. Words that are in very many texts lead to no pair."""
    items = [one for one in items if len(one.content) <= LONGEST]
    words = {one.id: words_of(one.content) for one in items}
    often = Counter(word for found in words.values() for word in found)
    shelves: dict[str, list[MemoryItem]] = defaultdict(list)
    for one in sorted(items, key=lambda each: (each.created_at, each.id)):
        mine = words[one.id]
        if len(mine) < 4:
            continue
        rare = sorted(mine, key=lambda word: (often[word], word))[
            : len(mine) - math.ceil(least * len(mine)) + 1
        ]
        seen: set[str] = set()
        for word in rare:
            for other in shelves[word][:500]:
                if other.id not in seen and (other.store, other.type, other.period) == (
                    one.store,
                    one.type,
                    one.period,
                ):
                    seen.add(other.id)
                    if likeness(mine, words[other.id]) >= least:
                        yield other, one
            shelves[word].append(one)


def _differs(one: MemoryItem, other: MemoryItem) -> bool:
    words = words_of(one.content) ^ words_of(other.content)
    return any(word in _NEGATIONS or any(sign.isdigit() for sign in word) for word in words)


def _opposed(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether numbers or a negation are all that they differ in."""
    words = words_of(one.content) ^ words_of(other.content)
    telling = {word for word in words if word in _NEGATIONS or any(sign.isdigit() for sign in word)}
    return bool(telling) and words - telling <= _VERBS


def _contradictions(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    """Never more than a proposal: only who knows can say which of two is true."""
    found: list[AuditProposal] = []
    subjects: dict[tuple[str, str], list[MemoryItem]] = defaultdict(list)
    for one in items:
        if one.subject and one.store == "user_memory":
            subjects[one.subject, one.type].append(one)
    for (subject, _), group in subjects.items():
        linked = {ident for one in group for ident in (*one.contradicts, *one.supersedes)}
        for one, other in pairwise(group):
            if other.id not in linked and one.id not in linked and _same(one) != _same(other):
                found.append(_against(one, other, f"both are current on {subject!r}"))
    series = {one.id for group in _series(items).values() if len(group) >= SERIES for one in group}
    for one, other in _pairs([one for one in items if one.id not in series], OPPOSED):
        if _opposed(one, other) and not {one.id, other.id} & {*one.contradicts, *other.contradicts}:
            found.append(_against(one, other, "they differ only in a number or a negation"))
    return found


def _against(one: MemoryItem, other: MemoryItem, why: str) -> AuditProposal:
    return AuditProposal(
        "contradiction",
        why,
        contradicts=(one.id, other.id),
        sample=f"{one.content[:95]} / {other.content[:95]}",
    )


def _echoes(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    kept = {one.id for one in items}
    return [
        AuditProposal(
            "echo",
            f"stored from its own recall of {one.sources[0]}",
            (one.id,),
            one.sources[0],
            sample=one.content,
        )
        for one in items
        if "echo" in one.flags and one.sources and one.sources[0] in kept
    ]


def _expired(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    gone = tuple(one.id for one in items if one.expires_at is not None and one.expires_at <= now)
    return [AuditProposal("expired", "kept until a date that has passed", gone)] if gone else []


def _unused(items: list[MemoryItem], best: _Best, now: int, days: int) -> list[AuditProposal]:
    """What a human said stays, and so do goals, however long ago."""
    old = now - days * _DAY
    gone = [
        one for one in items
        if one.store == "user_memory" and one.created_at < old and not best.used.get(one.id) and one.trust != "high"
        and not one.priority and one.type not in ("life-goal", "relationship", "health")
    ]  # fmt: skip
    if not gone:
        return []
    why = f"older than {days} days and never recalled"
    return [AuditProposal("never-recalled", why, tuple(one.id for one in gone), sample=gone[0].content)]


_FINDERS = {
    "junk": _junk, "duplicate": _duplicates, "near-duplicate": _near, "echo": _echoes,
    "contradiction": _contradictions, "expired": _expired, "never-recalled": _unused,
}  # fmt: skip
assert tuple(_FINDERS) == KINDS
