"""Extractive summaries: the sentences that say most of what several texts say, in their own words. No model is asked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from toolgate.features.memory.items import likeness
from toolgate.recall.text import STOP_WORDS

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]*)*[.!?]*")
MOST_SENTENCES = 4000
_ALIKE = 0.6


def extract(texts: Sequence[str], count: int) -> list[str]:
    """Up to so many sentences, in the order in which they stand."""
    sentences = [one for text in texts for one in sentences_of(text)][:MOST_SENTENCES]
    words = [_content_words(one) for one in sentences]
    often = Counter(word for found in words for word in found)
    scored = sorted(range(len(sentences)), key=lambda at: (-_score(words[at], often), at))
    chosen: list[int] = []
    for at in scored:
        if len(chosen) == count:
            break
        if words[at] and all(likeness(words[at], words[other]) < _ALIKE for other in chosen):
            chosen.append(at)
    return [sentences[at] for at in sorted(chosen)]


def sentences_of(text: str) -> list[str]:
    found = (one.strip().lstrip("-*• ").strip() for one in _SENTENCE.findall(text))
    return [one for one in found if len(one) > 2]


def _content_words(sentence: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", sentence.casefold())) - STOP_WORDS


def _score(words: frozenset[str], often: Counter[str]) -> float:
    """What its words weigh in all texts together; the root keeps long sentences from winning by their length."""
    return sum(math.log1p(often[word]) for word in words) / math.sqrt(len(words)) if words else 0.0
