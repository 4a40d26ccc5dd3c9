"""Score fusion: one flat, weighted sum of both arms, and what a query names, quotes, counts and dates.

Both arms are brought to 0..1 within a query before they are added, because their raw scores have nothing in common.
What is reported is that sum times how well the query was met at all, so that the best of bad hits stays low.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from toolgate.recall.query import Query, only_asks, says_time
from toolgate.recall.store import Frequencies, Passage
from toolgate.recall.text import speaker


class Weights(NamedTuple):
    """Chosen on the tuning halves of the labelled sets: `python -m bench recall`."""

    vector: float = 0.5
    """Not more: what has all the words of a query must not lose to what only means something like it."""
    name: float = 0.12
    speaker: float = 0.25
    """Whom the query names says it; then whoever else only mentions that name has half of `name`."""
    phrase: float = 0.25
    number: float = 0.08
    period: float = 0.12
    time_words: float = 0.05
    only_asks: float = -0.15
    neighbour: float = 0.3
    floor: float = 0.6
    """The share of the query's words that a best hit must have before it counts in full: where words say little, meaning
    decides."""


WEIGHTS = Weights()
REACH = 2
"""How far from a hit its neighbours are looked for."""


class Scored(NamedTuple):
    passage: Passage
    score: float
    semantic: float | None
    lexical: float | None
    boosts: dict[str, float]
    neighbour_of: str = ""


class Arms(NamedTuple):
    """What both arms said about passages, by number."""

    lexical: Mapping[int, float]
    semantic: Mapping[int, float]
    counted: Frequencies
    noise: float = 0.0
    """The cosine of texts that have nothing to do with each other, in this model."""


def rank(
    query: Query, passages: Sequence[Passage], beside: Sequence[Passage], arms: Arms, weights: Weights = WEIGHTS,
) -> list[Scored]:  # fmt: skip
    """Items, best first, each by its best passage. Those of `beside` that are not among the passages are ranked by
    their neighbours alone."""
    share = arms.counted.share_of_one(query.terms)
    base = fuse(query, [passage.number for passage in passages], arms, weights)
    scored: dict[str, Scored] = {}
    names, numbers = _Words(query.names), _Words(query.numbers)
    for passage in passages:
        boosts = _boosts(query, passage, names, numbers, weights)
        words = arms.lexical.get(passage.number)
        made = Scored(
            passage, base[passage.number] + sum(boosts.values()), arms.semantic.get(passage.number),
            min(1.0, words * share) if words is not None else None, boosts,
        )  # fmt: skip
        if passage.id not in scored or made.score > scored[passage.id].score:
            scored[passage.id] = made
    _add_neighbours(scored, beside, query, weights)
    met = _met(scored.values(), arms.noise)
    ordered = sorted(scored.values(), key=lambda each: (-each.score, each.passage.id))
    return [each._replace(score=max(each.score, 0.0) * met / _most(weights)) for each in ordered]


def _most(weights: Weights) -> float:
    return 1.0 + weights.neighbour


def fuse(query: Query, numbers: Iterable[int], arms: Arms, weights: Weights = WEIGHTS) -> dict[int, float]:
    """What both arms make of these passages, before anybody has read them."""
    share = arms.counted.share_of_one(query.terms)
    top = max(arms.lexical.values(), default=0.0)
    top = max(top, weights.floor / share) if share else 0.0
    cosines = arms.semantic.values()
    low, high = min(cosines, default=0.0), max(cosines, default=0.0)
    fused = {}
    for number in numbers:
        words = arms.lexical.get(number, 0.0) / top if top else 0.0
        cosine = arms.semantic.get(number)
        meaning = words  # where there is no vector, nothing is known against it
        if cosine is not None:
            meaning = (cosine - low) / max(high - low, 1e-9)
        fused[number] = weights.vector * meaning + (1 - weights.vector) * words
    return fused


class _Words:
    """Names or numbers of a query, looked for as whole words; its pattern is made once for all passages."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word.casefold() for word in words]
        self._whole = (
            re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, self._words))})(?!\w)") if words else None
        )

    def stand_in(self, text: str) -> bool:
        if self._whole is None or not any(word in text for word in self._words):
            return False
        return self._whole.search(text) is not None


def _boosts(
    query: Query, passage: Passage, names: _Words, numbers: _Words, weights: Weights
) -> dict[str, float]:
    found: dict[str, float] = {}
    if query.phrases or query.names or query.numbers:
        text = passage.text.casefold()
        if any(phrase in text for phrase in query.phrases):
            found["phrase"] = weights.phrase
        if numbers.stand_in(text):
            found["number"] = weights.number
        who = speaker(passage.text).casefold() if query.names else ""
        if who and names.stand_in(who):
            found["speaker"] = weights.speaker
        if names.stand_in(text):
            found["name"] = weights.name / 2 if who else weights.name
    if query.periods and passage.at is not None and any(p.contains(passage.at) for p in query.periods):
        found["period"] = weights.period
    if query.asks_when and says_time(passage.text):
        found["time_words"] = weights.time_words
    if passage.conversation and only_asks(passage.text):
        found["only_asks"] = weights.only_asks
    return {reason: value for reason, value in found.items() if value}


def _add_neighbours(
    scored: dict[str, Scored], beside: Sequence[Passage], query: Query, weights: Weights
) -> None:
    """Half as much for each step away; only of the best on either side, or a long answer would be its own crowd."""
    places = {
        (each.passage.conversation, each.passage.place): each
        for each in scored.values()
        if each.passage.conversation and each.passage.place is not None
    }
    own = {place: each.score for place, each in places.items()}
    everybody = {each.passage.id: each.passage for each in scored.values()} | {
        passage.id: passage for passage in beside if passage.id not in scored
    }
    for id_, passage in everybody.items():
        if not passage.conversation or passage.place is None:
            continue
        near = [
            (own[passage.conversation, passage.place + step] / abs(step), places[passage.conversation, passage.place + step])
            for step in range(-REACH, REACH + 1)
            if step and (passage.conversation, passage.place + step) in own
        ]  # fmt: skip
        if not near:
            continue
        best, because = max(near, key=lambda pair: (pair[0], pair[1].passage.id))
        gain = weights.neighbour * max(best, 0.0)
        before = scored.get(id_)
        if before is not None:
            scored[id_] = before._replace(
                score=before.score + gain, boosts=before.boosts | {"neighbour": gain}
            )
        else:
            scored[id_] = Scored(passage, gain, None, None, {"neighbour": gain}, because.passage.id)


def _met(scored: Iterable[Scored], noise: float) -> float:
    """How well the best hit meets the query at all, from 0 to 1: by its words, or by its meaning beyond chance."""
    best = 0.0
    for each in scored:
        cosine = ((each.semantic or 0.0) - noise) / (1 - noise)
        best = max(best, each.lexical or 0.0, cosine)
    return min(best, 1.0)
