"""Rooms without I/O: who speaks next, what is new, and the board of hypotheses, all from the posts so far.

The same posts always give the same speaker, board and ending, so a room is resumed and replayed from what was recorded.
A model may hint at who should speak; the rule decides. Agreement ends nothing: a check does, or the budget.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgate.core.names import HUMAN

NEW_ENOUGH = 0.25
"""How much of a message must be in no earlier one."""
ON_TOPIC = 0.05
_CLOSE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
"""Scripts of Chinese, Japanese and Korean: two characters that follow each other count as a word."""
_WORD = re.compile(rf"[^\W{_CLOSE}]{{3,}}|(?=([{_CLOSE}]{{2}}))")
STEM = 5
"""Letters of a word that its other forms share, more or less: `total`, `totals`."""
_COMMON = frozenset(
    [
        "the",
        "and",
        "that",
        "this",
        "with",
        "for",
        "not",
        "are",
        "was",
        "has",
        "have",
        "from",
        "but",
        "you",
        "all",
        "can",
        "its",
        "into",
        "which",
        "there",
    ]
)

Post = Mapping[str, Any]
"""`number`, `persona`, `kind` (`message`, `pass`, `check`, `verdict`) and what `room.post` recorded."""


def words(text: str) -> frozenset[str]:
    return frozenset(found[1] or found[0] for found in _WORD.finditer(text.lower())) - _COMMON


def novelty(text: str, earlier: Sequence[str]) -> float:
    """The part of its words that no single earlier message has."""
    own = words(text)
    if not own:
        return 0.0
    return min((len(own - words(one)) / len(own) for one in earlier), default=1.0)


def relevance(text: str, topic: str, earlier: Sequence[str]) -> float:
    """The part of its words that the topic or somebody before has used."""
    own, known = words(text), {word[:STEM] for word in words(topic).union(*map(words, earlier))}
    return sum(word[:STEM] in known for word in own) / len(own) if own else 0.0


@dataclass(slots=True)
class Hypothesis:
    id: str
    text: str
    by: str
    support: dict[str, int] = field(default_factory=dict)
    """Proven claims for it, by persona."""
    against: dict[str, int] = field(default_factory=dict)

    @property
    def weight(self) -> int:
        return sum(self.support.values()) - sum(self.against.values())

    def as_dict(self) -> dict[str, Any]:
        return {"id": self.id, "text": self.text, "by": self.by, "support": self.support, "against": self.against,
                "weight": self.weight}  # fmt: skip


def board(posts: Sequence[Post]) -> list[Hypothesis]:
    """The hypotheses, the one with the most proven support first."""
    found: dict[str, Hypothesis] = {}
    for post in posts:
        if text := post.get("hypothesis"):
            ident = f"h{len(found) + 1}"
            found[ident] = Hypothesis(ident, text, post["persona"])
        proven = sum(1 for claim in post.get("claims", ()) if claim.get("event"))
        for name, side in (("supports", "support"), ("contradicts", "against")):
            for ident in _named(post, name, found):
                counts = getattr(found[ident], side)
                counts[post["persona"]] = counts.get(post["persona"], 0) + proven
    return sorted(found.values(), key=lambda one: (-one.weight, one.id))


def _named(post: Post, name: str, found: Mapping[str, Hypothesis]) -> list[str]:
    named = [ident for ident in post.get(name, ()) if ident in found]
    if name == "supports" and post.get("hypothesis"):
        named.append(f"h{len(found)}")  # whoever has one brings what speaks for it
    return list(dict.fromkeys(named))


def speaker(members: Sequence[str], posts: Sequence[Post]) -> str:
    """Whose turn it is: in each round everybody once, in order; a hint moves somebody forward within the round."""
    spoken = [
        post["persona"]
        for post in posts
        if post["kind"] in ("message", "pass") and post["persona"] in members
    ]
    done = set(spoken[len(spoken) - len(spoken) % len(members) :]) if members else set()
    left = [member for member in members if member not in done]
    hints = [post.get("next", "") for post in posts if post["kind"] == "message"]
    return hints[-1] if hints and hints[-1] in left else left[0]


def turns(members: Sequence[str], posts: Sequence[Post]) -> int:
    return sum(1 for post in posts if post["kind"] in ("message", "pass") and post["persona"] in members)


def _by_human(post: Post) -> bool:
    return (post["persona"], post["kind"]) == (HUMAN, "message")


def new_and_fitting(text: str, topic: str, posts: Sequence[Post]) -> tuple[float, float]:
    said = [str(post.get("text", "")) for post in posts if post["kind"] == "message"]
    named = [*said, *(one.text for one in board(posts))]
    return round(novelty(text, said), 2), round(relevance(text, topic, named), 2)


@dataclass(frozen=True, slots=True)
class RoomEnding:
    state: str
    """`verified`, `unverified`, `disagreement`, `undecided`, `limit` or `budget`."""
    reason: str


def ending(members: Sequence[str], posts: Sequence[Post], rounds: int, checked: bool) -> RoomEnding | None:
    """Whether the room is over. `checked`: it has a check, and only that says that somebody is right."""
    checks = [post for post in posts if post["kind"] == "check"]
    if checks and checks[-1]["passed"] and any(not post["passed"] for post in checks):
        return RoomEnding("verified", f"the check passes now: {checks[-1]['text'][:300]}")
    human = max((at for at, post in enumerate(posts) if _by_human(post)), default=-1)
    spoken = [  # since the human spoke last: that is something new for everybody
        post["kind"]
        for post in posts[human + 1 :]
        if post["kind"] in ("message", "pass") and post["persona"] in members
    ]
    silent = len(spoken) >= len(members) and set(spoken[-len(members) :]) == {"pass"}
    if not silent and len(spoken) < rounds * len(members):
        return None
    listed = [one for one in board(posts) if one.weight > 0]
    why = "nobody has anything new" if silent else f"{rounds} rounds are over"
    if len(listed) > 1:
        told = "; ".join(f"{one.text[:120]} ({one.weight})" for one in listed[:3])
        return RoomEnding("disagreement", f"{why}, and several explanations stand: {told}")
    if not listed:
        return RoomEnding("undecided", f"{why}, and nothing was shown for any explanation")
    if checked:
        return RoomEnding("limit", f"{why}, and the check says no to this: {listed[0].text[:300]}")
    return RoomEnding("unverified", f"{why}; nobody checked what was found: {listed[0].text[:300]}")
