"""The key file: private, whole, and one for everybody who starts at once."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolgate.core.errors import LedgerBroken
from toolgate.ledger import keys


def test_those_who_make_the_key_file_at_once_all_use_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys" / "p.json"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: keys.load_or_create(path), range(32)))
    assert len({one.versions[1] for one in made}) == 1
    assert [file.name for file in path.parent.iterdir()] == ["p.json"]


def test_the_key_file_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    keys.load_or_create(tmp_path / "p.json")
    assert stat.S_IMODE((tmp_path / "p.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "{}", '{"hmac": {}, "ed25519": ""}', '{"hmac": {"1": "00"}, "ed25519": "00"}', "[]"]
)
def test_a_damaged_key_file_is_named_and_nothing_is_made_in_its_place(text: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(LedgerBroken, match="cannot be used"):
        keys.load_or_create(path)
    assert path.read_text() == text
