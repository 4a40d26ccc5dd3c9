from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from toolgate.core.change import content_hash
from toolgate.core.errors import Failed, NotFound
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images

from .making import change, on_disk


def hash_of(content: bytes) -> str:
    digest = content_hash(content)
    assert digest is not None
    return digest


def test_an_image_is_kept_once_under_its_hash_and_only_for_its_owner(images: Images, state: Path) -> None:
    images.put([b"hello", b"hello", b""])
    images.put([b"hello"])
    digest = hash_of(b"hello").removeprefix("sha256:")
    kept = on_disk(state / "images")
    assert kept[f"{digest[:2]}/{digest[2:]}"] == b"hello"
    assert len(kept) == 2
    assert {(state / "images" / name).stat().st_mode & 0o777 for name in kept} == {0o600}
    assert images.get(hash_of(b"hello")) == b"hello"
    assert images.get(hash_of(b"")) == b""


def test_a_damaged_image_is_an_error_and_keeping_it_again_repairs_it(images: Images, state: Path) -> None:
    images.put([b"hello"])
    (name,) = on_disk(state / "images")
    (state / "images" / name).write_bytes(b"hellO")
    with pytest.raises(Failed, match="damaged"):
        images.get(hash_of(b"hello"))
    assert not images.has(hash_of(b"hello"))
    images.put([b"hello"])
    assert images.get(hash_of(b"hello")) == b"hello"


def test_an_image_that_is_not_kept_is_not_found(images: Images) -> None:
    with pytest.raises(NotFound):
        images.get(hash_of(b"never seen"))


@pytest.mark.parametrize("name", ["sha256:../../etc/passwd", "md5:" + "0" * 64, "", "sha256:" + "A" * 64])
def test_a_name_that_is_no_hash_opens_nothing(images: Images, name: str) -> None:
    with pytest.raises(Failed, match="does not name an image"):
        images.get(name)


async def test_a_kept_change_loads_from_its_manifest(files: WorkspaceFiles) -> None:
    made = change(a=(b"1", b"2"), b=(None, b"\xff"), c=(b"3", None))
    await files.keep(made)
    assert await files.load(made.manifest) == made


async def test_a_change_without_its_images_does_not_load(files: WorkspaceFiles) -> None:
    with pytest.raises(NotFound):
        await files.load(change(a=(b"1", b"2")).manifest)


@pytest.mark.parametrize("kind", ["pipe", "link", "device", "huge", "directory"])
def test_what_stands_in_the_place_of_an_image_is_neither_waited_for_nor_followed(
    tmp_path: Path, kind: str
) -> None:
    images = Images(tmp_path / "images")
    images.put([b"content"])
    digest = hash_of(b"content")
    file = tmp_path / "images" / digest[7:9] / digest[9:]
    file.unlink()
    (tmp_path / "elsewhere").write_bytes(b"content")
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    elif kind == "huge":
        with file.open("wb") as stream:
            stream.truncate(1 << 40)
    else:
        file.symlink_to(tmp_path / "elsewhere" if kind == "link" else "/dev/zero")
    with pytest.raises(Failed, match="damaged"):
        images.get(digest)
    assert not images.has(digest)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of handles come from /proc")
def test_the_name_of_a_folder_is_synced_before_an_image_in_it_counts_as_kept(
    images: Images, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def syncing(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", syncing)

    def put(content: bytes) -> list[str]:
        synced.clear()
        images.put([content])
        return [Path(each).name for each in synced[-2:]]

    folder = hash_of(b"hello").removeprefix("sha256:")[:2]
    assert put(b"hello") == [folder, "images"]
    assert put(b"hello") == [folder]  # it was there, and so was its folder
    shutil.rmtree(state / "images" / folder)
    assert put(b"hello") == [folder, "images"]
    (state / "images" / folder / hash_of(b"hello").removeprefix("sha256:")[2:]).unlink()
    assert put(b"hello")[-1] == folder
    assert images.get(hash_of(b"hello")) == b"hello"
    other = Images(state / "images")  # another process, which cannot know what was synced
    synced.clear()
    other.put([b"hello"])
    assert [Path(each).name for each in synced] == [folder, "images"]
