from __future__ import annotations

import pytest

from toolgate.core.errors import LedgerBroken
from toolgate.ledger.chain import Standing, check_head, fault_of, make_head, running_of, seal
from toolgate.ledger.keys import Keys
from toolgate.storage.schema import EMPTY_HASH

KEYS = Keys.new()
ROW = seal((1, 7, "noted", "c_1", "me", "t.x", "", "", "", 1, '{"type":"é"}', EMPTY_HASH), KEYS)


NOTHING = Standing()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, ""),
        ({"seq": 2}, "event 1 is missing"),
        ({"seq": 0}, "event 0 stands where 1 should"),
        ({"prev": "f" * 64}, "it does not link to the event before it"),
        ({"tool": "t\nx"}, "a column has a line break"),
        ({"tool": "\ud800"}, "a column is not valid text"),
        ({"at": 8}, "its content does not match its hash"),
        ({"hash": "é"}, "its content does not match its hash"),
        ({"mac": "0" * 64}, "its seal does not match the key"),
        ({"mac": "é" * 64}, "its seal does not match the key"),
        ({"mac": b"x"}, "its seal does not match the key"),
    ],
)
def test_a_changed_column_is_named_and_never_a_crash(change: dict[str, object], fault: str) -> None:
    assert fault_of(ROW._replace(**change), 1, EMPTY_HASH, KEYS) == fault  # type: ignore[arg-type]


def test_a_row_sealed_with_a_key_we_lack_says_which() -> None:
    other = Keys({2: b"k" * 32}, b"s" * 32)
    assert "key version 1" in fault_of(ROW, 1, EMPTY_HASH, other)


@pytest.mark.parametrize("mac", ["0" * 128, "é" * 128, ""])
def test_a_head_with_a_foreign_seal_is_refused(mac: str) -> None:
    head = make_head(ROW, KEYS, "1", "")
    paused = Standing()
    paused.put("pauses", "ada", ("ada", 1))
    check_head(head, KEYS, "1", NOTHING)
    with pytest.raises(LedgerBroken, match="not what was sealed"):
        check_head(head._replace(mac=mac), KEYS, "1", NOTHING)
    with pytest.raises(LedgerBroken, match="not what was sealed"):
        check_head(head, KEYS, "1", paused)
    for running in ("", "2", "1,2"):
        with pytest.raises(LedgerBroken, match="not what was sealed"):
            check_head(head._replace(live=running), KEYS, running, NOTHING)
        with pytest.raises(LedgerBroken, match="not what was sealed"):
            check_head(head._replace(live=running), KEYS, "1", NOTHING)


@pytest.mark.parametrize("live", ["x", "1,,2", "1,", "-1", "١", " 1"])
def test_a_head_that_names_no_events_is_refused(live: str) -> None:
    with pytest.raises(LedgerBroken, match="which calls run"):
        running_of(make_head(ROW, KEYS, live, ""))
