"""Images stay within their budget, and what is needed stays whatever the budget says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolgate.core.change import Change, content_hash
from toolgate.core.errors import TooLarge
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images

from .making import change, on_disk

PUTTER = Path(__file__).with_name("image_putter.py")


def hash_of(content: bytes) -> str:
    return content_hash(content) or ""


def ten(letter: str) -> bytes:
    return letter.encode() * 10


def put_in_order(images: Images, letters: str) -> None:
    for number, letter in enumerate(letters):
        images.put([ten(letter)])
        digest = hash_of(ten(letter)).removeprefix("sha256:")
        os.utime(images._directory / digest[:2] / digest[2:], (number, number))


def kept(images: Images) -> str:
    return "".join(letter for letter in "abcdef" if images.has(hash_of(ten(letter))))


def test_the_image_put_longest_ago_goes_first_and_a_needed_one_stays(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=30)
    put_in_order(images, "abcde")
    images.put([ten("b")])  # wanted again
    assert images.drop(frozenset({hash_of(ten("a"))})) == 20
    assert kept(images) == "abe"
    assert images.usage().bytes == 30
    assert images.drop(frozenset()) == 0


def test_needed_images_stay_even_where_they_are_over_the_budget(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=20)
    put_in_order(images, "abc")
    assert images.drop(frozenset(map(hash_of, map(ten, "abc")))) == 0
    assert kept(images) == "abc"


def test_a_change_that_alone_is_over_the_budget_is_refused_and_a_content_counts_once(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", total=1000, change=25)
    images.check(change(a=(ten("a"), ten("b")), c=(ten("a"), None), d=(None, ten("b"))))
    with pytest.raises(TooLarge, match="30 bytes to keep for undo, and the limit is 25"):
        images.check(change(a=(ten("a"), ten("b")), c=(None, ten("c"))))
    small = Images(tmp_path / "images", total=10, change=25)
    with pytest.raises(TooLarge, match="the limit is 10"):
        small.check(change(a=(ten("a"), ten("b"))))


async def test_nobody_puts_an_image_while_it_is_found_out_which_are_needed(
    files: WorkspaceFiles, images: Images
) -> None:
    """Else an image that is put again between asking and dropping would be dropped under a running call."""
    images.total = 15
    put_in_order(images, "a")
    other = threading.Thread(target=images.put, args=([ten("a")],))

    async def needed() -> frozenset[str]:
        other.start()
        other.join(0.05)
        assert other.is_alive(), "it has to wait"
        return frozenset()

    files.needed = needed
    await files.keep(change(b=(None, ten("b"))))
    other.join(10)
    assert kept(images) == "ab", "put again after the dropping"


async def test_keeping_makes_room_by_itself(files: WorkspaceFiles, images: Images) -> None:
    images.total = 35
    asked: list[Change] = []

    async def needed() -> frozenset[str]:
        return frozenset({one.after_hash or "" for one in asked[-1].files})

    files.needed = needed
    for letter in "abcdef":
        asked.append(change(x=(None, ten(letter))))
        await files.keep(asked[-1])
    assert images.usage().bytes <= 35
    assert "f" in kept(images)


def test_processes_that_put_and_drop_and_are_killed_leave_only_whole_images(tmp_path: Path) -> None:
    directory = tmp_path / "images"
    putters = [
        subprocess.Popen(
            [sys.executable, str(PUTTER), str(directory)], stdout=subprocess.PIPE, env=dict(os.environ)
        )
        for _ in range(2)
    ]
    try:
        for process in putters:
            assert process.stdout is not None
            for _ in range(15):
                assert process.stdout.readline() == b"put\n"
    finally:
        for process in putters:
            process.kill()
            process.wait(10)
            assert process.stdout is not None
            process.stdout.close()
    (directory / "ab").mkdir(exist_ok=True)
    (directory / "ab" / ".toolgate-tmp-half").write_bytes(b"half")
    images = Images(directory, total=1 << 20)
    os.close(images.hold())  # the locks of the dead are gone
    images.drop(frozenset())
    found = on_disk(directory)
    assert found
    for name, content in found.items():
        assert hash_of(content) == "sha256:" + name.replace("/", ""), "whole, and under its own hash"
    assert images.usage().bytes <= 1 << 20
