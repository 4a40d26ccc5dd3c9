"""One value, one spelling: the same as another implementation of RFC 8785 gives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.canonical import canonical
from toolgate.core.errors import InvalidArgs

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [0.0, -0.0, 1e21, 1e20, 1e-6, 1e-7, 5e-324, 1.7976931348623157e308, 123456789012345680.0, 1e16, 0.1]
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXT, inner, max_size=5)),
    max_leaves=20,
)


@given(VALUES)
@settings(max_examples=fewer(1500, 300), deadline=None, derandomize=True)
def test_it_spells_as_the_peer_does(value: Any) -> None:
    assert canonical(value).encode() == rfc8785.dumps(value)


@given(
    st.dictionaries(
        st.sampled_from(["\ue000", "\U00010000", "\uffff", "a", "é", "\U0010ffff", "\x7f", "\u2028"]),
        st.integers(0, 3),
    )
)
@settings(max_examples=fewer(200, 40), deadline=None, derandomize=True)
def test_keys_are_sorted_by_utf16_units(value: dict[str, int]) -> None:
    assert canonical(value).encode() == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, -(2**53), "\ud800", {"\udc00": 1}, {1: 2}, b"x", {1, 2}, range(2), [float("nan")],
     {"a": [None, float("nan")]}, {"x": 2**63}, [2**64]],
    ids=repr,
)  # fmt: skip
def test_what_has_no_single_spelling_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgs):
        canonical(value)


def test_a_short_command_spells_an_event_as_a_gate_does() -> None:
    """Where orjson is not loaded, as in `toolgate pause`, the same bytes are recorded, and so the same hashes."""
    script = """
import sys
from toolgate.core.canonical import canonical
from toolgate.core.event import Noted, Paused

texts = [
    {"b": [1, 2.5, -0.0, 1e21, 1e-7, None, True], "a": "\\u00e9\\u2028\\U0001f600", "1": {}}, ["x" * 5000], 10**15, "\\x7f\\n",
    {"\\U0001f600": 1, "\\ufb01": 2},
]
events = [
    Paused(persona="builder", reason="\\u00fcber \\U0001f600", by="me"),
    Noted(type="seen", data={"n": 1.0, "s": ["x"]}, file_path="a\\tb"),
]
before = [*map(canonical, texts), *(one.text() for one in events)]
assert "orjson" not in sys.modules
import orjson
after = [*map(canonical, texts), *(one.text() for one in events)]
assert before == after, (before, after)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
