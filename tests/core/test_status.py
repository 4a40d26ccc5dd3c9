"""The quick look at a file says what `os.stat` says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.core import status
from toolgate.core.status import FileLook


def by_stat(path: Path) -> tuple[object, ...]:
    found = os.stat(path)
    device = os.major(found.st_dev), os.minor(found.st_dev)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, device


@pytest.mark.parametrize("name", ["plain", "ein é name", "\udcff", "a" * 200])
def test_a_look_says_what_stat_says(tmp_path: Path, name: str) -> None:
    file, link = tmp_path / name, tmp_path / "link"
    file.write_bytes(b"x" * 4097)
    os.utime(file, ns=(1, 1_700_000_000_123_456_789))
    link.symlink_to(file)
    for path in (file, link, tmp_path, Path("/dev/null"), Path("/proc/self")):
        assert tuple(FileLook(path)()) == by_stat(path)


def test_a_look_sees_each_change(tmp_path: Path) -> None:
    file = tmp_path / "policy"
    file.write_text("one")
    look = FileLook(file)
    seen = [look()]
    for size in range(4, 40):
        file.write_text("x" * size)
        seen.append(look())
    other = tmp_path / "other"
    other.write_text("x" * 39)
    os.replace(other, file)
    seen.append(look())
    assert len(set(seen)) == len(seen)


def test_what_is_not_there_is_said_as_stat_says_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, error in (
        (tmp_path / "none", FileNotFoundError),
        (tmp_path / "file" / "below", NotADirectoryError),
        (Path("a\0b"), ValueError),
    ):
        with pytest.raises(error):
            FileLook(path)()


def test_without_statx_it_is_stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_known", (None, None))
    assert tuple(FileLook(tmp_path)()) == by_stat(tmp_path)
