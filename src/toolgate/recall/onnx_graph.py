"""ONNX graph of a small BERT encoder, written from its tensors as plain protocol-buffer bytes.

onnxruntime reads ONNX but cannot write it, and the package that can would be needed for this alone. Word embeddings
are looked up outside: they are most of the weights, and a text needs a few rows of them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

OPSET = 17
IR_VERSION = 8
FLOAT, INT32 = 1, 6
CONTRIB = "com.microsoft"
"""onnxruntime's own operators: attention and its neighbours in one step each."""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    if isinstance(value, float):
        held = _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1)
    elif isinstance(value, int):
        held = _int(3, value) + _int(20, 2)
    else:
        held = b"".join(_int(8, each) for each in value) + _int(20, 7)
    return _bytes(1, name) + held


def _shaped(name: str, kind: int, dims: Sequence[str | int]) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, each) if isinstance(each, str) else _int(1, each)) for each in dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, shape)))


class OnnxGraph:
    """Nodes and constants, in the order of their making."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._made = 0

    def constant(self, array: Any) -> str:
        self._made += 1
        name = f"c{self._made}"
        kind = {"float32": 1, "int64": 7, "int32": 6}[str(array.dtype)]
        dims = b"".join(_int(1, size) for size in array.shape)
        self._parts.append(
            _bytes(5, dims + _int(2, kind) + _bytes(8, name) + _bytes(9, array.tobytes(order="C")))
        )
        return name

    def node(
        self, operator: str, inputs: Sequence[str], domain: str = "", out: str = "", **attributes: Any
    ) -> str:
        self._made += 1
        out = out or f"n{self._made}"
        said = b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
        names = b"".join(_bytes(1, name) for name in inputs)
        self._parts.append(
            _bytes(
                1,
                names + _bytes(2, out) + _bytes(4, operator) + said + (_bytes(7, domain) if domain else b""),
            )
        )
        return out

    def model(self, inputs: Sequence[bytes], outputs: Sequence[bytes]) -> bytes:
        body = b"".join(self._parts) + _bytes(2, "encoder")
        body += b"".join(_bytes(11, each) for each in inputs) + b"".join(_bytes(12, each) for each in outputs)
        opsets = _bytes(8, _bytes(1, "") + _int(2, OPSET)) + _bytes(8, _bytes(1, CONTRIB) + _int(2, 1))
        return _int(1, IR_VERSION) + opsets + _bytes(7, body)


def encoder(tensors: Mapping[str, Any], layers: int, heads: int, hidden: int, epsilon: float) -> bytes:
    """From `embedded` (the sum of word, place and type, before its normalisation) and `mask` to `embedding`: the
    state of the first token, of length 1. Names of tensors are those of the container: see `models.py`."""
    import numpy as np

    graph = OnnxGraph()

    def normal(x: str, name: str) -> str:
        scale, shift = (graph.constant(tensors[f"{name}.{part}"]) for part in "wb")
        return graph.node("LayerNormalization", [x, scale, shift], axis=-1, epsilon=epsilon)

    def linear(x: str, name: str) -> str:
        weight = graph.constant(np.ascontiguousarray(tensors[f"{name}.w"].T))
        return graph.node("Add", [graph.node("MatMul", [x, weight]), graph.constant(tensors[f"{name}.b"])])

    first = graph.constant(np.zeros(1, np.int64))
    x = normal("embedded", "emb_ln")
    for layer in range(layers):
        weight = graph.constant(np.ascontiguousarray(tensors[f"l{layer}.qkv.w"].T))
        bias = graph.constant(tensors[f"l{layer}.qkv.b"])
        seen = graph.node("Attention", [x, weight, bias, "mask"], CONTRIB, num_heads=heads)
        if layer == layers - 1:  # nothing after this looks at other tokens
            seen, x = (graph.node("Gather", [each, first], axis=1) for each in (seen, x))
        x = normal(graph.node("Add", [linear(seen, f"l{layer}.ao"), x]), f"l{layer}.aln")
        inner = graph.node("Gelu", [linear(x, f"l{layer}.f1")], CONTRIB)
        x = normal(graph.node("Add", [linear(inner, f"l{layer}.f2"), x]), f"l{layer}.fln")
    state = graph.node("Reshape", [x, graph.constant(np.array([-1, hidden], np.int64))])
    length = graph.node("ReduceL2", [state], axes=[-1], keepdims=1)
    graph.node("Div", [state, length], out="embedding")
    return graph.model(
        [_shaped("embedded", FLOAT, ["b", "l", hidden]), _shaped("mask", INT32, ["b", "l"])],
        [_shaped("embedding", FLOAT, ["b", hidden])],
    )
