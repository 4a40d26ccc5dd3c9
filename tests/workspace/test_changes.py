from __future__ import annotations

import asyncio
import os
import struct
import threading
import time
from pathlib import Path

import pytest

from toolgate.core.change import Change, FileChange
from toolgate.core.errors import Conflict, Failed, InvalidArgs, Unavailable, UnknownOutcome
from toolgate.workspace import files as workspace_files
from toolgate.workspace import staged, write
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.images import Images
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.staged import Staged, only_writer

from .making import at, change, on_disk, put


async def test_a_change_creates_modifies_and_deletes_in_one_go(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"old": b"1", "gone": b"2"})
    await files.apply(change(old=(b"1", b"one"), gone=(b"2", None), new__deep__file=(None, b"3")))
    assert on_disk(project) == {"old": b"one", "new/deep/file": b"3"}


async def test_an_applied_change_is_undone_by_its_inverse(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"old": b"1", "gone": b"2"})
    made = change(old=(b"1", b"one"), gone=(b"2", None), new=(None, b""))
    await files.apply(made)
    await files.apply(made.inverse())
    assert on_disk(project) == {"old": b"1", "gone": b"2"}


@pytest.mark.parametrize("now", [b"third", None])
async def test_a_conflict_names_the_file_and_leaves_everything_untouched(
    files: WorkspaceFiles, project: Path, now: bytes | None
) -> None:
    put(project, {"a": b"1", "b": now})
    before = on_disk(project)
    with pytest.raises(Conflict, match="'b'"):
        await files.apply(change(a=(b"1", b"2"), b=(b"1", b"2"), deep__new=(None, b"3")))
    assert on_disk(project) == before
    assert not (project / "deep").exists()


async def test_a_file_that_should_not_exist_yet_is_a_conflict(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"a": b"theirs"})
    with pytest.raises(Conflict):
        await files.apply(change(a=(None, b"ours")))
    assert on_disk(project) == {"a": b"theirs"}


async def test_applying_twice_is_a_conflict_but_rolling_forward_twice_is_not(
    files: WorkspaceFiles, project: Path
) -> None:
    put(project, {"a": b"1"})
    made = change(a=(b"1", b"2"))
    await files.apply(made)
    with pytest.raises(Conflict):
        await files.apply(made)
    await files.roll(made, "after")
    assert on_disk(project) == {"a": b"2"}


async def test_one_file_named_twice_is_refused(files: WorkspaceFiles, project: Path) -> None:
    twice = FileChange(at("a"), None, b"1")
    with pytest.raises(InvalidArgs, match="twice"):
        await files.apply(Change((twice, twice)))
    assert on_disk(project) == {}


async def test_mode_is_kept_and_a_private_file_stays_private(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"run": b"1", "private": b"1", "special": b"1"})
    (project / "run").chmod(0o755)
    (project / "private").chmod(0o600)
    (project / "special").chmod(0o4755)
    await files.apply(change(run=(b"1", b"2"), private=(b"1", b"2"), special=(b"1", b"2")))
    modes = {name: (project / name).stat().st_mode & 0o7777 for name in ("run", "private", "special")}
    assert modes == {"run": 0o755, "private": 0o600, "special": 0o755}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def access_list(*entries: tuple[int, int, int]) -> bytes:
    """As the kernel reads it: tag, bits, who."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


USER, SOMEBODY, GROUP, MASK, OTHERS, NOBODY = 0x01, 0x02, 0x04, 0x10, 0x20, 0xFFFFFFFF


@pytest.mark.parametrize("mode", [None, 0o750])
async def test_an_access_list_is_kept_so_that_its_mask_lets_nobody_else_in(
    files: WorkspaceFiles, project: Path, mode: int | None
) -> None:
    put(project, {"a": b"1"})
    file = project / "a"
    kept = access_list((USER, 6, NOBODY), (SOMEBODY, 4, 1234), (GROUP, 0, NOBODY), (MASK, 4, NOBODY), (OTHERS, 0, NOBODY))  # fmt: skip
    set_attribute(file, "system.posix_acl_access", kept)
    set_attribute(file, "user.note", b"mine")
    await files.apply(Change((FileChange(at("a"), b"1", b"2", None, mode),)))
    group = os.getxattr(file, "system.posix_acl_access")[4 + 2 * 8 :][:4]
    assert struct.unpack("<HH", group) == (GROUP, 0)
    assert os.getxattr(file, "user.note") == b"mine"
    assert file.stat().st_mode & 0o777 == (0o640 if mode is None else mode)


async def test_a_private_file_gets_no_access_list_from_its_directory(
    files: WorkspaceFiles, project: Path
) -> None:
    put(project, {"a": b"1"})
    (project / "a").chmod(0o640)
    given = access_list((USER, 7, NOBODY), (SOMEBODY, 7, 1234), (GROUP, 5, NOBODY), (MASK, 7, NOBODY), (OTHERS, 5, NOBODY))  # fmt: skip
    set_attribute(project, "system.posix_acl_default", given)
    await files.apply(change(a=(b"1", b"2")))
    assert "system.posix_acl_access" not in os.listxattr(project / "a")
    assert (project / "a").stat().st_mode & 0o777 == 0o640


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError:
        pytest.skip(f"this file system has no {name}")


async def test_the_owner_of_a_replaced_file_is_kept(files: WorkspaceFiles, project: Path) -> None:
    put(project, {"theirs": b"1"})
    os.chown(project / "theirs", 12345, 23456)
    await files.apply(change(theirs=(b"1", b"2")))
    status = (project / "theirs").stat()
    assert (status.st_uid, status.st_gid) == (12345, 23456)


async def test_a_change_that_changes_nothing_does_not_touch_the_file(
    files: WorkspaceFiles, project: Path
) -> None:
    put(project, {"a": b"1"})
    inode = (project / "a").stat().st_ino
    await files.apply(change(a=(b"1", b"1")))
    assert (project / "a").stat().st_ino == inode


async def test_a_reader_never_sees_half_a_file(files: WorkspaceFiles, project: Path) -> None:
    contents = [bytes([letter]) * 300_000 for letter in b"ab"]
    put(project, {"f": contents[0]})
    over = threading.Event()
    strange: list[int] = []

    def read() -> None:
        while not over.is_set():
            content = (project / "f").read_bytes()
            if content not in contents:
                strange.append(len(content))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(40):
            await files.apply(change(f=(contents[turn % 2], contents[1 - turn % 2])))
    finally:
        over.set()
        reader.join()
    assert strange == []


async def test_a_file_touched_while_others_are_prepared_is_a_conflict_and_nothing_is_written(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"a": b"1", "b": b"1"})

    def meddle(mounts: Mounts, move: staged.Move, seen: staged.SeenFile) -> Staged:
        (project / "a").write_bytes(b"!")
        return staged.prepare(mounts, move, seen)

    def never(mounts: Mounts, item: Staged) -> None:
        raise AssertionError(f"{item.move.path} was put in place")

    monkeypatch.setattr(write, "prepare", meddle)
    monkeypatch.setattr(write, "put_in_place", never)
    with pytest.raises(Conflict):
        await files.apply(change(b=(b"1", b"2"), a=(b"1", b"2")))
    assert on_disk(project) == {"a": b"!", "b": b"1"}


async def test_a_file_touched_while_others_are_put_in_place_is_kept_and_the_others_are_taken_back(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"a": b"1", "b": b"1", "c": b"1"})

    def meddle(mounts: Mounts, item: Staged) -> None:
        staged.put_in_place(mounts, item)
        if item.move.path == at("a"):
            put(project, {"b": b"theirs"})

    monkeypatch.setattr(write, "put_in_place", meddle)
    with pytest.raises(Conflict, match="'b'"):
        await files.apply(change(a=(b"1", b"2"), b=(b"1", b"2"), c=(b"1", None)))
    assert on_disk(project) == {"a": b"1", "b": b"theirs", "c": b"1"}


@pytest.mark.parametrize("trouble", [OSError(5, "Input/output error"), Conflict("somebody was faster")])
async def test_trouble_midway_takes_back_what_was_written(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    put(project, {"a": b"1", "b": b"1"})
    _stumble_at(monkeypatch, "b", trouble)
    with pytest.raises((Failed, Conflict)):
        await files.apply(change(a=(b"1", b"2"), new=(None, b"2"), b=(b"1", b"2")))
    assert on_disk(project) == {"a": b"1", "b": b"1"}


async def test_trouble_that_cannot_be_taken_back_is_an_unknown_outcome(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"a": b"1", "b": b"1"})

    def meddle() -> None:
        (project / "a").write_bytes(b"third")

    _stumble_at(monkeypatch, "b", OSError(5, "Input/output error"), meddle)
    with pytest.raises(UnknownOutcome, match="project:a"):
        await files.apply(change(a=(b"1", b"2"), b=(b"1", b"2")))


async def test_failing_while_preparing_leaves_no_trace(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"a": b"1"})

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(Failed, match="No space left"):
            await files.apply(change(a=(b"1", b"2"), b=(None, b"2")))
    assert on_disk(project) == {"a": b"1"}


async def test_writers_that_share_a_project_lose_no_update(
    mounts: Mounts, images: Images, project: Path, state: Path
) -> None:
    """Two instances, as two processes would have, count together; whoever is late plans again."""
    put(project, {"count": b"0"})

    async def count(files: WorkspaceFiles, times: int) -> None:
        while times:
            found = await files.read(at("count"))
            assert found is not None
            try:
                await files.apply(change(count=(found, str(int(found) + 1).encode())))
                times -= 1
            except Conflict:
                continue

    await asyncio.gather(*(count(WorkspaceFiles(mounts, images, state), 10) for _ in range(2)))
    assert on_disk(project) == {"count": b"20"}


def test_only_one_writer_holds_the_lock_and_waiting_for_it_ends(tmp_path: Path) -> None:
    with (
        only_writer(tmp_path / "lock"),
        pytest.raises(Unavailable),
        only_writer(tmp_path / "lock", patience=0.05),
    ):
        pass
    with only_writer(tmp_path / "lock", patience=0.05):
        pass


async def test_writers_that_wait_keep_no_reader_waiting_and_hear_in_time_that_it_is_in_vain(
    files: WorkspaceFiles, project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_files, "PATIENCE", 1.0)
    put(project, {"a": b"1"})
    with only_writer(state / "files.lock"):  # as another process would
        begun = time.monotonic()
        writers = [asyncio.ensure_future(files.apply(change(**{f"n{n}": (None, b"")}))) for n in range(30)]
        assert await asyncio.wait_for(files.read(at("a")), 10) == b"1"
        assert not any(writer.done() for writer in writers)
        heard = await asyncio.gather(*writers, return_exceptions=True)
        assert time.monotonic() - begun < 10  # one after the other they would wait for half a minute
    assert {type(each) for each in heard} == {Unavailable}
    assert on_disk(project) == {"a": b"1"}
    await files.apply(change(a=(b"1", b"2")))
    assert on_disk(project) == {"a": b"2"}


def _stumble_at(monkeypatch: pytest.MonkeyPatch, name: str, trouble: Exception, first: object = None) -> None:
    def put_in_place(mounts: Mounts, item: Staged) -> None:
        if item.move.path == at(name):
            if callable(first):
                first()
            raise trouble
        staged.put_in_place(mounts, item)

    monkeypatch.setattr(write, "put_in_place", put_in_place)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of handles come from /proc")
async def test_a_change_is_on_disk_when_it_returns_each_file_before_its_name_and_each_directory_after(
    files: WorkspaceFiles, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut may take cannot be tested; the order of what prevents it can."""
    put(project, {"a": b"1", "gone": b"1", "d/b": b"1"})
    steps: list[tuple[str, str]] = []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def name_of(handle: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{handle}")).name

    def syncing(handle: int) -> None:
        steps.append(("sync", "directory" if os.path.isdir(f"/proc/self/fd/{handle}") else "file"))
        if steps[-1][1] == "directory":
            steps[-1] = ("sync", name_of(handle))
        fsync(handle)

    def replacing(old: str, new: str, **more: int) -> None:
        steps.append(("place", name_of(more["dst_dir_fd"])))
        replace(old, new, **more)

    def removing(name: str, **more: int) -> None:
        steps.append(("place", name_of(more["dir_fd"])))
        unlink(name, **more)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", replacing)
    monkeypatch.setattr(os, "unlink", removing)
    await files.apply(change(a=(b"1", b"2"), gone=(b"1", None), d__b=(b"1", b"2")))
    monkeypatch.undo()
    assert steps[:2] == [("sync", "file")] * 2
    assert steps[2:5] == [("place", "project"), ("place", "project"), ("place", "d")]
    assert sorted(steps[5:]) == [("sync", "d"), ("sync", "project")]
