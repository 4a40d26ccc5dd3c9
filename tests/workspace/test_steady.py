"""Files that are written while they are read are read as they were at one moment, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolgate.core.errors import Conflict
from toolgate.workspace import reading


@contextmanager
def opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def meddling(monkeypatch: pytest.MonkeyPatch, file: Path, contents: list[bytes]) -> None:
    """After each read of a whole, somebody writes the next of these into the file."""
    read_all = reading.read_all

    def meddled(handle: int, shown: str, limit: int) -> bytes:
        found = read_all(handle, shown, limit)
        if contents:
            with file.open("r+b") as stream:
                stream.write(contents.pop(0))
        return found

    monkeypatch.setattr(reading, "read_all", meddled)


def test_a_file_that_comes_to_rest_is_read_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"first")
    meddling(monkeypatch, file, [b"secnd"])
    with opened(file) as handle:
        content, status = reading.read_steady(handle, "f", 100)
    assert content == b"secnd"
    assert reading.identity(status) == reading.identity(file.stat())


def test_a_file_that_never_rests_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"00000")
    meddling(monkeypatch, file, [b"%05d" % number for number in range(1, 100)])
    with opened(file) as handle, pytest.raises(Conflict, match="being written all the time"):
        reading.read_steady(handle, "f", 100)


def test_a_write_that_no_time_stamp_shows_is_found_by_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system whose stamps are coarse: same size, same times, other bytes."""
    file = tmp_path / "f"
    file.write_bytes(b"first")
    monkeypatch.setattr(reading, "identity", lambda status: (0,))
    meddling(monkeypatch, file, [b"secnd"])
    with opened(file) as handle:
        assert reading.read_steady(handle, "f", 100)[0] == b"secnd"


def test_a_write_into_an_old_file_is_found_by_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has rested for long is read only once."""
    file = tmp_path / "f"
    file.write_bytes(b"first")
    monkeypatch.setattr(reading, "_YOUNG_NS", -(1 << 62))
    meddling(monkeypatch, file, [b"longer than it was"])
    with opened(file) as handle:
        assert reading.read_steady(handle, "f", 100)[0] == b"longer than it was"
