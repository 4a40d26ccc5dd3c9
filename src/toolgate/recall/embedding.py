"""Embedders: the local ones on onnxruntime, and those that speak OpenAI's HTTP interface.

A local one reads its weights as data and runs as fp32, so that a vector does not depend on what else is in its batch.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolgate.core.errors import SetupError, Unavailable
from toolgate.recall.models import DEFAULT, GRANITE, KnownModel, files_of, known

BATCH_TOKENS = 1024
"""Tokens of one run of the model, with its padding: more would leave the processor's cache."""
MAGIC = b"HMSEMB01"


def _needed() -> tuple[Any, Any, Any]:
    try:
        import numpy
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise SetupError(
            f"search by meaning needs the package {error.name}, which is not installed", "pip install 'toolgate[recall]'"
        ) from None  # fmt: skip
    return numpy, onnxruntime, tokenizers


def models_dir(state: Path) -> Path:
    """Where pulled models are, below a user's state directory."""
    return state / "models"


def best_embedder(name: str, state: Path) -> LocalEmbedder | None:
    """The model of that name; for `auto` the default one if it is here, and for `none` none."""
    if name == "none":
        return None
    try:
        return local_embedder(DEFAULT if name == "auto" else name, models_dir(state))
    except (SetupError, Unavailable):
        if name != "auto":
            raise
        return None


def local_embedder(name: str, directory: Path) -> LocalEmbedder:
    """The model of that name. Its weights are loaded when the first text is embedded."""
    model = known(name)
    _needed()
    return LocalEmbedder(model, files_of(model, directory))


class LocalEmbedder:
    def __init__(self, model: KnownModel, files: dict[str, Path]) -> None:
        self._known = model
        self._files = files
        self._loaded: _Granite | _MiniLM | None = None
        self._turn = threading.Lock()

    @property
    def model(self) -> str:
        return self._known.version

    @property
    def dimension(self) -> int:
        return self._known.dimension

    @property
    def noise(self) -> float:
        return self._known.noise

    def tokenizer(self) -> Any:
        return self._load().tokenizer

    async def embed(self, texts: Sequence[str]) -> Any:
        return await asyncio.to_thread(self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> Any:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        with self._turn:
            return self._load_held().run(texts)

    def _load(self) -> _Granite | _MiniLM:
        with self._turn:
            return self._load_held()

    def _load_held(self) -> _Granite | _MiniLM:
        if self._loaded is None:
            kind = _Granite if self._known is GRANITE else _MiniLM
            try:
                self._loaded = kind(self._known, self._files)
            except (OSError, ValueError, KeyError) as error:
                raise Unavailable(
                    f"{self._known.title} cannot be loaded: {error}", "see `toolgate models status`"
                ) from error
        return self._loaded


def _session(ort: Any, graph: bytes | str) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = max(1, min(4, os.cpu_count() or 1))
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a busy machine has better uses
    options.log_severity_level = 3
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Texts of like length together, at most so many tokens with their padding."""
    order = sorted(range(len(lengths)), key=lambda at: lengths[at])
    found: list[list[int]] = []
    for at in order:
        if found and lengths[at] * (len(found[-1]) + 1) <= BATCH_TOKENS:
            found[-1].append(at)
        else:
            found.append([at])
    return found


class _Granite:
    """A RoBERTa encoder: the first token's state, places counted from 2."""

    def __init__(self, model: KnownModel, files: dict[str, Path]) -> None:
        np, ort, tokenizers = _needed()
        from toolgate.recall.onnx_graph import encoder

        data = memoryview(files[model.files[0].name].read_bytes())
        if data[:8] != MAGIC:
            raise ValueError("it does not begin as such a file does")
        (length,) = struct.unpack("<Q", data[8:16])
        header = json.loads(bytes(data[16 : 16 + length]))
        at = 16 + length + header["tokenizer_len"]
        self.tokenizer = tokenizers.Tokenizer.from_str(bytes(data[16 + length : at]).decode())
        self.tokenizer.enable_truncation(model.tokens)
        tensors: dict[str, Any] = {}
        for tensor in header["tensors"]:
            tensors[tensor["name"]] = self._tensor(np, tensor, data[at : at + tensor["len"]])
            at += tensor["len"]
        self._words, self._scales = tensors.pop("word_emb")
        arch = header["arch"]
        self._places = tensors["pos_emb"][arch["position_offset"] :] + tensors["type_emb"][0]
        self._hidden = arch["hidden"]
        plain = {
            name: _scaled(np, *value) if isinstance(value, tuple) else value
            for name, value in tensors.items()
        }
        graph = encoder(plain, arch["layers"], arch["heads"], arch["hidden"], float(arch["layer_norm_eps"]))
        self._session = _session(ort, graph)

    @staticmethod
    def _tensor(np: Any, tensor: dict[str, Any], data: memoryview) -> Any:
        shape = tensor["shape"]
        if tensor["dtype"] == "f32":
            return np.frombuffer(data, "<f4").reshape(shape)
        count = int(np.prod(shape))
        whole = np.frombuffer(data[:count], np.int8).reshape(shape)
        scales = np.frombuffer(data[count:], "<f4").reshape(shape[0], -1)
        return whole, scales

    def run(self, texts: Sequence[str]) -> Any:
        import numpy as np

        tokens = [each.ids for each in self.tokenizer.encode_batch_fast(list(texts))]
        out = np.empty((len(texts), self._hidden), np.float32)
        for batch in _batches([len(ids) for ids in tokens]):
            longest = max(len(tokens[at]) for at in batch)
            ids = np.ones((len(batch), longest), np.int64)
            mask = np.zeros((len(batch), longest), np.int32)
            for row, at in enumerate(batch):
                ids[row, : len(tokens[at])] = tokens[at]
                mask[row, : len(tokens[at])] = 1
            embedded = _scaled(np, self._words[ids], self._scales[ids]) + self._places[:longest]
            out[batch] = self._session.run(["embedding"], {"embedded": embedded, "mask": mask})[0]
        return out


def _scaled(np: Any, whole: Any, scales: Any) -> Any:
    groups = scales.shape[-1]
    parts = whole.reshape(*whole.shape[:-1], groups, -1).astype(np.float32) * scales[..., None]
    return parts.reshape(whole.shape)


class _MiniLM:
    """An int8 graph as it was published: the mean of all states. It is run text by text, because what such a graph
    gives depends on what it is padded with."""

    def __init__(self, model: KnownModel, files: dict[str, Path]) -> None:
        _, ort, tokenizers = _needed()
        self.tokenizer = tokenizers.Tokenizer.from_file(str(files["tokenizer.json"]))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(model.tokens)
        self._session = _session(ort, files["minilm.onnx"].read_bytes())

    def run(self, texts: Sequence[str]) -> Any:
        import numpy as np

        rows = []
        for each in self.tokenizer.encode_batch_fast(list(texts)):
            ids = np.array([each.ids], np.int64)
            feed = {
                "input_ids": ids,
                "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids),
            }
            mean = self._session.run(None, feed)[0][0].mean(axis=0)
            rows.append(mean / max(float(np.linalg.norm(mean)), 1e-12))
        return np.stack(rows).astype(np.float32)
