"""Embedders for tests that need vectors but no model: equal words, near vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolgate.core.errors import Unavailable
from toolgate.recall.engine import Item
from toolgate.recall.text import terms

TOPICS = "harbour boats bread cheese maths physics garden roses trains rails music drums snow skis".split()  # noqa: SIM905
MEANING = {"feline": "cat", "kitten": "cat", "automobile": "car", "vehicle": "car"}


class WordEmbedder:
    """The sum of a random direction for each word; some words mean the same."""

    noise = 0.0

    def __init__(self, model: str = "test/words@1", dimension: int = 64) -> None:
        self.model = model
        self.dimension = dimension
        self.texts = 0
        self.broken = False

    async def embed(self, texts: Sequence[str]) -> Any:
        if self.broken:
            raise Unavailable("the model is gone", "bring it back")
        self.texts += len(texts)
        rows = np.stack([sum(map(self._word, terms(text) or [""])) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _word(self, word: str) -> Any:
        seed = hashlib.sha256(f"{self.model} {MEANING.get(word, word)}".encode()).digest()
        return np.random.default_rng(int.from_bytes(seed[:8], "little")).normal(size=self.dimension)


def crowd(count: int, scope: str = "me") -> list[Item]:
    return [
        Item(f"{scope}-{n}", scope, f"{TOPICS[n % 14]} {TOPICS[(n * 5 + n // 14) % 14]} number{n}", kind=str(n % 100))
        for n in range(count)
    ]  # fmt: skip
