"""Reading what a program left in a layer, whatever it made there."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.sandbox.job import Altered
from toolgate.sandbox.program_files import MAX_DEPTH, Layer


@contextmanager
def handle_of(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def read(path: Path, layer: Layer) -> tuple[Altered, ...]:
    with handle_of(path) as handle:
        return layer.read(handle)


def test_files_directories_and_removed_names_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"\x00\xff")
    os.chmod(tmp_path / "d" / "f", 0o4755)
    os.mknod(tmp_path / "gone", stat.S_IFCHR, 0)
    assert read(tmp_path, Layer(100, 100)) == (
        Altered("d", "directory", mode=0o755),
        Altered("d/f", "file", b"\x00\xff", 0o755),
        Altered("gone", "gone"),
    )


def test_what_is_no_file_is_never_opened(tmp_path: Path) -> None:
    os.symlink("/etc/passwd", tmp_path / "link")
    os.symlink("/", tmp_path / "root")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        found = read(tmp_path, Layer(100, 100))
    assert {each.kind for each in found} == {"other"}
    assert len(found) == 4


def test_too_large_too_many_and_too_deep_are_said_and_not_taken(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as stream:
        stream.truncate(1 << 40)
    (tmp_path / "a").write_bytes(b"x" * 60)
    (tmp_path / "b").write_bytes(b"x" * 60)
    layer = Layer(100, 100)
    assert [each.path for each in read(tmp_path, layer)] == ["a"]
    assert layer.dropped == ["b: it is too large", "hole: it is too large"]
    few = Layer(100, 1)
    assert [each.path for each in read(tmp_path, few)] == ["a"]
    assert few.dropped == ["changes after b: there are too many"]


def test_depth_is_bounded(tmp_path: Path) -> None:
    place = tmp_path
    for _ in range(MAX_DEPTH + 3):
        place = place / "d"
    place.mkdir(parents=True)
    layer = Layer(100, 1000)
    found = read(tmp_path, layer)
    assert len(found) == MAX_DEPTH
    assert len(layer.dropped) == 1
    assert layer.dropped[0].endswith("it lies too deep")


def test_a_name_that_is_not_text_is_said_and_not_taken(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("x")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY))
    layer = Layer(100, 100)
    assert [each.path for each in read(tmp_path, layer)] == ["good"]
    assert layer.dropped == ["��: its name is not text"]


def test_a_directory_that_hides_what_was_there_says_so_first(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    os.setxattr(tmp_path / "d", "user.overlay.opaque", b"y")
    assert read(tmp_path, Layer(100, 100)) == (Altered("d", "gone"), Altered("d", "directory", mode=0o755))
