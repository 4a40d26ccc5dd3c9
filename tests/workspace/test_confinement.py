from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from toolgate.core.errors import BlockedPath, CallError, NotFound, OutsideMount, SetupError, TooLarge
from toolgate.core.paths import MountPath
from toolgate.workspace import confine
from toolgate.workspace.confine import Opener, Root, open_by_walking, open_directory, open_file, open_parent
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.mounts import Mounts

from .making import at, change, on_disk


async def test_a_file_inside_is_read(files: WorkspaceFiles, project: Path) -> None:
    (project / "a").mkdir()
    (project / "a/f").write_text("hello")
    assert await files.read(at("a/f")) == b"hello"


async def test_a_missing_file_reads_as_none_also_below_a_missing_directory_or_a_file(
    files: WorkspaceFiles, project: Path
) -> None:
    (project / "f").write_text("x")
    for path in ("gone", "no/such/thing", "f/below"):
        assert await files.read(at(path)) is None
        assert await files.hashes([at(path)]) == [None]


async def test_a_file_over_the_limit_is_refused_and_one_at_the_limit_is_not(
    files: WorkspaceFiles, project: Path
) -> None:
    (project / "fits").write_bytes(b"x" * 4096)
    (project / "big").write_bytes(b"x" * 4097)
    assert await files.read(at("fits")) == b"x" * 4096
    with pytest.raises(TooLarge, match="big"):
        await files.read(at("big"))


@pytest.mark.parametrize(
    "path",
    ["project:../outside/secret", "project:/etc/passwd", "project:a/../../outside/secret", "project:.."],
)
async def test_a_path_made_without_its_checks_still_cannot_lead_out(
    files: WorkspaceFiles, outside: Path, path: str
) -> None:
    with pytest.raises(OutsideMount):
        await files.read(MountPath(path))


@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "a/../../outside/secret", ".."])
def test_the_primitive_alone_refuses_to_lead_out(
    mounts: Mounts, project: Path, outside: Path, path: str
) -> None:
    (project / "a").mkdir()
    (mount,) = mounts
    with pytest.raises(OutsideMount):
        open_file(mount.root, path, path)


@pytest.mark.parametrize("path", ["bad\0name", "\ud800"])
def test_characters_that_no_name_can_hold_are_refused(mounts: Mounts, path: str) -> None:
    (mount,) = mounts
    with pytest.raises(OutsideMount, match="cannot be a path"):
        open_file(mount.root, path, path)


async def test_links_that_stay_inside_are_followed_when_reading(files: WorkspaceFiles, project: Path) -> None:
    (project / "a/b").mkdir(parents=True)
    (project / "a/b/f").write_text("hello")
    (project / "direct").symlink_to("a/b/f")
    (project / "a/b/up").symlink_to("../../a/./b//f")
    (project / "folder").symlink_to("a/b/")
    (project / "chain").symlink_to("folder/up")
    for path in ("direct", "a/b/up", "folder/f", "chain"):
        assert await files.read(at(path)) == b"hello"


async def test_a_link_leading_out_says_the_same_whether_or_not_something_is_there(
    files: WorkspaceFiles, project: Path, outside: Path
) -> None:
    said = set()
    for target in (outside / "secret", outside / "nothing", "../outside/secret", "../outside/nothing/deep"):
        (project / "link").symlink_to(target)
        with pytest.raises(OutsideMount) as refused:
            await files.read(at("link"))
        said.add((refused.value.message, refused.value.fix))
        (project / "link").unlink()
    assert len(said) == 1


async def test_a_directory_link_leading_out_is_refused(
    files: WorkspaceFiles, project: Path, outside: Path
) -> None:
    (project / "folder").symlink_to(outside)
    (outside / "page").write_text("page")
    with pytest.raises(OutsideMount):
        await files.read(at("folder/page"))
    with pytest.raises(BlockedPath):
        await files.apply(change(folder__new=(None, b"x")))
    assert on_disk(outside) == {"page": b"page", "secret": b"secret"}


async def test_links_in_a_circle_end(files: WorkspaceFiles, project: Path) -> None:
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    with pytest.raises(OutsideMount):
        await files.read(at("a"))


async def test_nothing_is_written_through_a_link_even_inside(files: WorkspaceFiles, project: Path) -> None:
    (project / "real").mkdir()
    (project / "real/f").write_text("old")
    (project / "link").symlink_to("real/f")
    (project / "folder").symlink_to("real")
    for planned in (change(link=(b"old", b"new")), change(folder__f=(b"old", b"new"))):
        with pytest.raises(BlockedPath, match="symbolic link"):
            await files.apply(planned)
        with pytest.raises(BlockedPath, match="symbolic link"):
            await files.read(planned.files[0].path, to_change=True)
    assert (project / "real/f").read_text() == "old"


@pytest.mark.parametrize("path", ["self/root/etc/passwd", "self/cwd/pyproject.toml", "self/exe", "self/fd/0"])
def test_magic_links_of_proc_are_refused(opener: Opener, path: str) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("no /proc here")
    with Mounts({"project": Path("/proc")}, opener) as mounts:
        (mount,) = mounts
        with pytest.raises(OutsideMount):
            open_file(mount.root, path, path)


async def test_what_is_not_a_regular_file_is_refused_without_waiting(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project / "fifo")
    (project / "folder").mkdir()
    monkeypatch.chdir(project)  # a socket's address has to be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name in ("fifo", "folder", "socket", "."):
            with pytest.raises(BlockedPath):
                await files.read(at(name))
            if name == "folder":
                assert await files.hashes([at(name)]) == ["directory"]
            else:
                with pytest.raises(BlockedPath):
                    await files.hashes([at(name)])
            with pytest.raises(BlockedPath):
                await files.apply(change(**{name: (None, b"x")}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
async def test_a_device_is_refused(files: WorkspaceFiles, project: Path) -> None:
    try:
        os.mknod(project / "null", 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices in this container")
    with pytest.raises(BlockedPath):
        await files.read(at("null"))


async def test_a_hard_link_is_neither_read_nor_written(
    files: WorkspaceFiles, project: Path, outside: Path
) -> None:
    os.link(outside / "secret", project / "f")
    with pytest.raises(BlockedPath, match="hard link"):
        await files.read(at("f"))
    with pytest.raises(BlockedPath, match="hard link"):
        await files.read(at("f"), to_change=True)
    for after in (b"changed", None):
        with pytest.raises(BlockedPath, match="hard link"):
            await files.apply(change(f=(b"secret", after)))
    assert (outside / "secret").read_text() == "secret"


async def test_a_file_on_the_way_is_not_turned_into_a_directory(files: WorkspaceFiles, project: Path) -> None:
    (project / "f").write_text("x")
    with pytest.raises(BlockedPath, match="not a directory"):
        await files.apply(change(f__below=(None, b"y")))
    assert on_disk(project) == {"f": b"x"}


@pytest.mark.parametrize(
    "path", [".toolgate/db", "toolgate.yaml", "sub/.TOOLGATE/x", "Toolgate.yaml.", ".toolgate-tmp-x"]
)
async def test_what_belongs_to_toolgate_is_written_by_no_change(
    files: WorkspaceFiles, project: Path, path: str
) -> None:
    with pytest.raises(BlockedPath, match="toolgate itself"):
        await files.apply(change(**{path.replace("/", "__"): (None, b"x")}))
    with pytest.raises(BlockedPath, match="toolgate itself"):
        await files.read(at(path), to_change=True)
    assert on_disk(project) == {}


def test_a_name_swapped_for_a_link_while_it_is_opened_never_leads_out(
    mounts: Mounts, project: Path, outside: Path
) -> None:
    """A thread swaps a directory and a link to the outside as fast as it can; no read ever sees the secret."""
    (project / "good").mkdir()
    (project / "good/secret").write_text("harmless")
    (project / "bad").symlink_to(outside)
    (project / "here").symlink_to("good")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for target in ("good", "bad"):
                (project / "next").symlink_to(target)
                os.replace(project / "next", project / "here")

    (mount,) = mounts
    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = {"harmless": 0, "refused": 0}
    deadline = time.monotonic() + 1.0
    try:
        while time.monotonic() < deadline:
            try:
                handle = open_file(mount.root, "here/secret", "here/secret")
            except OutsideMount:
                seen["refused"] += 1
                continue
            seen[os.read(handle, 100).decode()] += 1  # a KeyError would be the secret
            os.close(handle)
    finally:
        over.set()
        swapper.join()
    assert seen["harmless"] > 0
    assert seen["refused"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="swaps names with renameat2")
async def test_a_directory_swapped_for_a_link_while_writing_never_leads_out(
    files: WorkspaceFiles, project: Path, outside: Path
) -> None:
    (project / "here").mkdir()
    (project / "link").symlink_to(outside)
    exchange = ctypes.CDLL(None).renameat2
    here, link = os.fsencode(project / "here"), os.fsencode(project / "link")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            exchange(-100, here, -100, link, 2)  # AT_FDCWD, RENAME_EXCHANGE: no moment without either

    swapper = threading.Thread(target=swap)
    swapper.start()
    deadline = time.monotonic() + 1.0
    outcomes = {"written": 0, "refused": 0}
    try:
        while time.monotonic() < deadline:
            name = f"here__f{outcomes['written']}"
            try:
                await files.apply(change(**{name: (None, b"x")}))
                outcomes["written"] += 1
            except CallError:
                outcomes["refused"] += 1
    finally:
        over.set()
        swapper.join()
    assert on_disk(outside) == {"secret": b"secret"}
    assert outcomes["refused"] > 0


def test_an_unknown_mount_is_refused_with_the_known_ones(mounts: Mounts) -> None:
    with pytest.raises(OutsideMount, match="garden") as refused:
        mounts.resolve(at("garden:x"))
    assert "project" in refused.value.fix


def test_a_mount_without_a_directory_or_with_a_strange_name_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be opened"):
        Mounts({"project": tmp_path / "gone"})
    with pytest.raises(SetupError, match="cannot name a mount"):
        Mounts({"../x": tmp_path})


def test_a_mount_is_held_by_its_handle_when_its_path_is_taken_over(
    mounts: Mounts, project: Path, outside: Path
) -> None:
    (project / "f").write_text("ours")
    project.rename(project.with_name("moved"))
    project.symlink_to(outside)
    (mount,) = mounts
    handle = open_file(mount.root, "f", "f")
    assert os.read(handle, 10) == b"ours"
    os.close(handle)
    with pytest.raises(NotFound):
        open_file(mount.root, "secret", "secret")


def test_no_handle_is_left_open(mounts: Mounts, project: Path) -> None:
    (project / "a/b").mkdir(parents=True)
    (project / "a/b/f").write_text("x")
    (project / "out").symlink_to("/etc")
    (project / "in").symlink_to("a/../a/b")
    (mount,) = mounts
    before = os.listdir("/proc/self/fd") if Path("/proc/self/fd").exists() else []
    os.close(open_file(mount.root, "in/f", "in/f"))
    os.close(open_directory(mount.root, "a/..", "a/.."))
    parent, name = open_parent(mount.root, "new/deep/f", "f", create=True)
    os.close(parent)
    assert name == "f"
    for path in ("out/passwd", "a", "a/gone", "a/b/f/x"):
        with pytest.raises((OutsideMount, BlockedPath, NotFound)):
            open_file(mount.root, path, path)
    after = os.listdir("/proc/self/fd") if before else []
    assert len(after) == len(before)


def test_a_kernel_without_openat2_gets_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(1, "seccomp says no")

    confine.available.cache_clear()
    monkeypatch.setattr(confine, "open_by_kernel", refuse)
    try:
        assert confine.best_opener() is open_by_walking
    finally:
        confine.available.cache_clear()


def test_a_root_is_only_a_handle_and_an_opener(project: Path, opener: Opener) -> None:
    handle = os.open(project, os.O_RDONLY)
    (project / "f").write_text("x")
    os.close(open_file(Root(handle, opener), "f", "f"))
    os.close(handle)
