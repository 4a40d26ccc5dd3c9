"""Compact JSON: a short command spells it without orjson, and byte for byte as orjson does."""

from __future__ import annotations

import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.core import canonical

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text('\x00\x1f\x7f"\\/\n\t\b\f\r<&\u2028é√'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_it_is_spelled_as_by_orjson_or_left_to_it(value: object) -> None:
    if canonical._is_simple([value]):
        assert canonical._encode_compact(value).encode() == orjson.dumps(value)


def test_most_of_what_is_short_is_spelled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "orjson")
    value = {
        "path": "a.md",
        "created": True,
        "bytes": 12,
        "before": None,
        "lines": ["a", 1.5, 0.0],
        "more": {"x": []},
    }
    assert canonical.compact(value) == orjson.dumps(value).decode()
    assert "orjson" not in sys.modules


@pytest.mark.parametrize("value", ["\x7f", {"\x7f": 1}, ["\x1f\x00\b\f"], 1e15, 1e-3, -0.0, 0.1, True, None])
def test_what_is_rarely_met_is_spelled_as_by_orjson(value: object) -> None:
    assert not canonical._is_simple([value]) or canonical._encode_compact(value).encode() == orjson.dumps(
        value
    )


@pytest.mark.parametrize("key", [1, True, None, 1.5])
def test_a_key_that_is_no_text_is_left_to_orjson(key: object) -> None:
    assert not canonical._is_simple([{"a": [{key: "a"}]}])


@pytest.mark.parametrize("value", [{1: "a"}, "\ud800", 2**64, object()])
def test_what_orjson_refuses_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical.compact(value)
