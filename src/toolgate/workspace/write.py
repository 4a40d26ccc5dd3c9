"""Writing of several files: look at all, prepare all, check all again, then rename. And settling after a crash.

Whatever is slow or likely to fail (space, permissions) happens while preparing, before the first file has changed.
Directories are made before the files that go into them and removed after those that were in them: one that is there
already need not be made; one that is not empty stays, because whatever is in it is not part of the change.
The caller holds the project's lock.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

from toolgate.core.change import DIRECTORY, Entry, FileChange, Place, place_of
from toolgate.core.errors import BlockedPath, CallError, InvalidArgs, NotFound
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.paths import MountPath, folded
from toolgate.core.tool import Outcome
from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import SeenFile, look, status_of
from toolgate.workspace.staged import (
    TEMPORARY,
    Move,
    Staged,
    conflict,
    discard,
    prepare,
    put_in_place,
    sync_parents,
)

_KEPT = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY)


def make_directories(mounts: Mounts, moves: Sequence[Move], done: list[Move]) -> None:
    for move in sorted(moves, key=lambda move: move.path.count("/")):
        if move.goal == DIRECTORY and _make(mounts, move):
            done.append(move)


def remove_directories(mounts: Mounts, moves: Sequence[Move], done: list[Move]) -> None:
    for move in sorted(moves, key=lambda move: -move.path.count("/")):
        if move.goal is None and _remove(mounts, move):
            done.append(move)


def missing_parents(mounts: Mounts, paths: Sequence[MountPath]) -> list[FileChange]:
    """The directories on the way to these paths that are not there, outermost first."""
    wanted = dict.fromkeys(parent for path in paths for parent in path.parents)
    return [FileChange(each, None, b"", kind="directory") for each in wanted if not is_there(mounts, each)]


def is_there(mounts: Mounts, path: MountPath) -> bool:
    """Whether it is a directory; something else in its place is refused."""
    mount, relative = mounts.resolve(path)
    try:
        os.close(open_directory(mount.root, relative, path.shown, follow=False))
    except NotFound:
        if status_of(mounts, path) is None:
            return False
        raise BlockedPath(f"{path.shown!r} is not a directory", "choose another path") from None
    return True


def _make(mounts: Mounts, move: Move) -> bool:
    with mounts.parent(move.path, create=True) as (parent, name):
        try:
            os.mkdir(name, 0o777 if move.mode is None else 0o700, dir_fd=parent)
        except FileExistsError:
            mount, relative = mounts.resolve(move.path)
            os.close(
                open_directory(mount.root, relative, move.path.shown, follow=False)
            )  # or says what it is
            return False
    return True


def give_modes(mounts: Mounts, moves: Sequence[Move]) -> None:
    """The bits a directory should have, innermost first, once all that goes into it is there."""
    for move in sorted(moves, key=lambda move: -move.path.count("/")):
        if move.goal == DIRECTORY and move.mode is not None:
            mount, relative = mounts.resolve(move.path)
            with held(open_directory(mount.root, relative, move.path.shown, follow=False)) as handle:
                os.fchmod(handle, move.mode & 0o777)
                os.fsync(handle)


def _remove(mounts: Mounts, move: Move) -> bool:
    with suppress(NotFound), mounts.parent(move.path) as (parent, name):
        try:
            os.rmdir(name, dir_fd=parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno not in _KEPT:
                raise
            return False
        return True
    return False


PROTECTED = (".toolgate", "toolgate.yaml")  # toolgate's own state and rules: no tool writes them


def apply_moves(mounts: Mounts, moves: Sequence[Move], done: list[Move], *, strict: bool) -> None:
    """Make the moves. `done` is filled as files change, so that the caller can take a failure back."""
    directories = [move for move in moves if move.of_directory]
    pending = _pending(mounts, moves, strict=strict)
    coming = {move.path for move in directories if move.goal == DIRECTORY}
    going = {move.path for move in directories if move.goal is None}
    staged: list[Staged] = []
    try:
        # a file that becomes a directory goes before anything can be prepared in it
        first = [(move, seen) for move, seen in pending if move.goal is None and move.path in coming]
        _place(mounts, _stage(mounts, first), done)
        make_directories(mounts, directories, done)
        staged = _stage(mounts, [each for each in pending if each not in first], going)
        _place(mounts, [item for item in staged if item.move.path not in going], done)
        remove_directories(mounts, directories, done)
        if strict and not done and moves and all(move.of_directory and move.goal is None for move in moves):
            raise conflict(moves[0])  # directories and nothing else, and something else is in them
        # a directory that becomes a file has gone by now, or something of somebody else's is in it
        _place(mounts, [item for item in staged if item.move.path in going], done)
        sync_parents(mounts, [move.path for move in done])
        # one that was there already keeps its bits, unless a change is being finished that may have made it
        give_modes(
            mounts, [move for move in directories if move in done or move.origin == move.goal or not strict]
        )
    except BaseException:
        placed = {id(move) for move in done}
        discard(mounts, [item for item in staged if id(item.move) not in placed])
        raise


def _place(mounts: Mounts, staged: Sequence[Staged], done: list[Move]) -> None:
    for item in staged:
        put_in_place(mounts, item)
        done.append(item.move)


def check_writable(path: MountPath, status: os.stat_result | None) -> None:
    # No link is followed on the way to a written file, so its spelling is its real name.
    for part in path.relative.split("/"):
        if folded(part) in PROTECTED or part.startswith(TEMPORARY):
            raise BlockedPath(f"{path.shown!r} belongs to toolgate itself", "choose another path")
    if status is not None and status.st_nlink > 1:
        raise BlockedPath(
            f"{path.shown!r} has several names (hard links), and one may be outside the mount",
            "replace it by a copy first",
        )


def _pending(mounts: Mounts, moves: Sequence[Move], *, strict: bool) -> list[tuple[Move, SeenFile]]:
    """The moves still to be made: strictly, all of them; otherwise a file at its goal is done."""
    named = {(move.path, move.of_directory) for move in moves}
    if len(named) != len(moves):
        raise InvalidArgs("a change names the same file twice", "plan one content per file")
    found = [(move, look(mounts, move.path)) for move in moves if not move.of_directory]
    for move in moves:
        if move.of_directory:
            check_writable(move.path, None)
    for index, (move, seen) in enumerate(found):
        if seen.hash == DIRECTORY and (move.path, True) in named:
            seen = SeenFile()  # the directory is another part of the change: as a file it is not there
            found[index] = (move, seen)
        if seen.hash == DIRECTORY:
            raise BlockedPath(f"{move.path.shown!r} is a directory", "name a regular file")
        if seen.hash != move.origin and (strict or seen.hash != move.goal):
            raise conflict(move)
    todo = [(move, seen) for move, seen in found if seen.hash != move.goal or _other_mode(move, seen)]
    for move, seen in todo:
        check_writable(move.path, seen.status)
    return todo


def _other_mode(move: Move, seen: SeenFile) -> bool:
    if move.mode is None or seen.status is None:
        return False
    return stat.S_IMODE(seen.status.st_mode) & 0o777 != move.mode & 0o777


def _stage(
    mounts: Mounts, todo: Sequence[tuple[Move, SeenFile]], going: Container[MountPath] = ()
) -> list[Staged]:
    staged: list[Staged] = []
    try:
        for move, seen in todo:
            staged.append(prepare(mounts, move, seen))
        for item in staged:  # preparing took its time: look once more before the first rename
            if item.move.path not in going and not item.seen.still(status_of(mounts, item.move.path)):
                raise conflict(item.move)
    except BaseException:
        discard(mounts, staged)
        raise
    return staged


# What became of a change whose process died: the hashes of its files tell, and the kept images finish it.

Side = Literal["before", "after"]


class Rollable(Protocol):
    """The part of the files' service that settling needs."""

    async def sweep(self, paths: Sequence[MountPath]) -> None: ...

    async def hashes(self, paths: Sequence[MountPath]) -> list[str | None]: ...

    async def roll_manifest(self, manifest: Sequence[Mapping[str, Any]], to: Side) -> None: ...


class Settlement(NamedTuple):
    outcome: Outcome
    why: str


async def settle_change(files: Rollable, manifest: Sequence[Mapping[str, Any]]) -> Settlement:
    """Only for a change whose owner is dead. Never guesses: a third content is `unknown`, and is left alone."""
    paths = [MountPath.parse(entry["path"]) for entry in manifest]
    try:
        await files.sweep(paths)
        found = await files.hashes(paths)
    except CallError as error:
        return Settlement("unknown", f"the files cannot be examined: {error}")
    places = {place_of(entry) for entry in manifest}
    pairs = [(entry, _part(entry, hash_, places)) for entry, hash_ in zip(manifest, found, strict=True)]
    if all(hash_ == entry["after"] for entry, hash_ in pairs) and not _modes(manifest):
        return Settlement("happened", "every file has its new content")
    if all(hash_ == entry["before"] for entry, hash_ in pairs) and not _same(manifest):
        return Settlement("not", "every file still has its old content")
    for entry, hash_ in pairs:
        if hash_ not in (entry["before"], entry["after"]):
            return Settlement("unknown", f"{entry['path']} has neither its old nor its new content")
    return await _finish(files, manifest)


def _part(entry: Entry, found: str | None, places: set[Place]) -> str | None:
    """Where a file becomes a directory or the other way round, each entry sees only what is its own."""
    path, of_directory = place_of(entry)
    if (path, not of_directory) in places and (found == DIRECTORY) != of_directory:
        return None
    return found


def _modes(manifest: Sequence[Mapping[str, Any]]) -> bool:
    """Whether finishing may still have to give files their bits, which no hash shows."""
    return any("after_mode" in entry for entry in manifest)


def _same(manifest: Sequence[Mapping[str, Any]]) -> bool:
    """A change of nothing but bits: before and after cannot be told apart, and finishing is harmless."""
    return _modes(manifest) and all(entry["before"] == entry["after"] for entry in manifest)


async def _finish(files: Rollable, manifest: Sequence[Mapping[str, Any]]) -> Settlement:
    """Some files are new and some old: forward if the new contents are kept, else back."""
    forward = await _problem(files, manifest, "after")
    if forward is None:
        return Settlement("happened", "it was interrupted; the rest was written from the kept images")
    back = await _problem(files, manifest, "before")
    if back is None:
        return Settlement("not", "it was interrupted; what was written was taken back from the kept images")
    return Settlement("unknown", f"it was interrupted; finishing: {forward}; taking back: {back}")


async def _problem(files: Rollable, manifest: Sequence[Mapping[str, Any]], to: Side) -> str | None:
    try:
        await files.roll_manifest(manifest, to)
    except CallError as error:
        return str(error)
    return None
