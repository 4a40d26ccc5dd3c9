"""Embedder over OpenAI's HTTP interface, for those who have a server or a service of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from toolgate.core.errors import SetupError, Unavailable

BATCH = 64
WAIT_S = 60.0
ANSWER_MOST = 64_000_000


class HttpEmbedder:
    """`POST {address}/embeddings` with `model` and `input`. The dimension is checked with every answer."""

    noise = 0.2

    def __init__(self, address: str, name: str, dimension: int, key: str = "") -> None:
        if urlsplit(address).scheme not in ("http", "https") or dimension < 1:
            raise SetupError(
                f"embeddings cannot be asked of {address!r} with dimension {dimension}",
                "give an http or https address and a dimension above 0",
            )
        self._address = address.rstrip("/")
        self._name = name
        self._key = key
        self._dimension = dimension

    @property
    def model(self) -> str:
        return f"http/{urlsplit(self._address).netloc}/{self._name}@{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        rows: list[Any] = []
        for at in range(0, len(texts), BATCH):
            rows += await asyncio.to_thread(self._ask, list(texts[at : at + BATCH]))
        made = np.array(rows, np.float32).reshape(len(texts), self._dimension)
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)

    def _ask(self, texts: list[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._name, "input": texts, "encoding_format": "float"}
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = Request(f"{self._address}/embeddings", json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with urlopen(request, timeout=WAIT_S) as answer:  # noqa: S310 - http or https: checked when it was made
                data = json.loads(answer.read(ANSWER_MOST))["data"]
            found = [each["embedding"] for each in sorted(data, key=lambda each: each["index"])]
        except (URLError, OSError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(
                f"{self._address} gives no embeddings: {error}", "see whether it runs, and its model and key"
            ) from error
        if len(found) != len(texts) or any(len(row) != self._dimension for row in found):
            sizes = sorted({len(row) for row in found})
            raise Unavailable(
                f"{self._name} gave {len(found)} vectors of dimension {sizes} for {len(texts)} texts",
                f"{self._dimension} is configured: set the dimension of that model",
            )
        return found
