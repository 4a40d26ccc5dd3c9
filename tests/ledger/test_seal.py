"""The seal of a row is an ordinary HMAC, so that anybody who has the key can check it with any tool."""

from __future__ import annotations

import hmac

from hypothesis import given
from hypothesis import strategies as st

from toolgate.ledger.keys import Keys


@given(st.binary(min_size=1, max_size=200), st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_a_seal_is_the_hmac_of_the_standard_library(key: bytes, text: str) -> None:
    assert Keys({1: key}, b"s" * 32).mac(1, text) == hmac.digest(key, text.encode(), "sha256").hex()


def test_an_unknown_version_seals_nothing() -> None:
    assert Keys({1: b"k" * 32}, b"s" * 32).mac(2, "x") == ""
