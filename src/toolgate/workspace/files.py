"""Files of the mounts as tools and the gate use them: the `Files` port, carried out.

Async outside, plain blocking work in a thread inside. All writing is done under one lock per project, so that
several processes can share it.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Literal, TypeVar

from toolgate.core.call import new_id
from toolgate.core.change import DIRECTORY, Change, FileChange
from toolgate.core.errors import CallError, Failed, NotFound, UnknownOutcome
from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.core.ports import Files, Holder
from toolgate.core.records import dataclass
from toolgate.feature import load
from toolgate.workspace.confine import held, open_file
from toolgate.workspace.holdings import SCRATCH
from toolgate.workspace.images import Images, contents_of, rank_of
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reading import kind_of, look, note_file, open_to_read, read_steady, status_of
from toolgate.workspace.staged import PATIENCE, Move, only_writer, sweep
from toolgate.workspace.tree import take_tree
from toolgate.workspace.write import Side, apply_moves, check_writable, missing_parents, settle_change

T = TypeVar("T")
NOBODYS = Holder()
Needed = Callable[[], Awaitable[frozenset[str]]]
KEEPERS = 8
"""Calls whose images are synced at once: the disk takes several together."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as a plan starts from it."""

    content: bytes
    mode: int


class WorkspaceFiles(Files):
    def __init__(self, mounts: Mounts, images: Images, state: Path, read_limit: int = 0) -> None:
        """`state` is the project's state directory; it holds the lock that all its processes share.

        Without `read_limit`, the `max_bytes` of each mount counts.
        """
        self.mounts = mounts
        self.images = images
        self.needed: Needed | None = None
        """Which calls run or are in doubt; without it nothing is ever dropped."""
        self._lock = state / "files.lock"
        # Threads of their own: whoever waits for the disk or for the lock takes none that a read needs. One writes, for
        # there is one lock; others would only look at it again and again.
        self._writer = Threads(1, "toolgate-files")
        self._keepers = Threads(KEEPERS, "toolgate-images")
        self._read_limit = read_limit

    async def read(self, path: MountPath, *, to_change: bool = False) -> bytes | None:
        """The content, or None where there is no file.

        Links that stay inside are followed, except with `to_change`: a plan starts from the file itself, and
        hears now, not after a human's approval, that it could not be written.
        """
        if to_change:
            found = await self.take(path)
            return None if found is None else found.content
        return await _in_thread(lambda: self._read(path))

    async def read_many(self, paths: Sequence[MountPath]) -> list[bytes | None]:
        """The same for many small files at once; None also for what cannot be read."""

        def one(path: MountPath) -> bytes | None:
            with suppress(CallError):
                return self._read(path)
            return None

        return await _in_thread(lambda: [one(path) for path in paths])

    async def take(self, path: MountPath) -> FoundFile | None:
        """The content and mode a plan starts from; None where there is no file."""
        return await _in_thread(lambda: self._take(path))

    async def take_tree(self, path: MountPath) -> list[FileChange]:
        """A directory and all that is in it, as the parts of a Change that removes it."""
        return await _in_thread(lambda: take_tree(self.mounts, path, self._take))

    async def look_at(self, path: MountPath) -> Literal["file", "directory"] | None:
        """What a writer would find there; None where there is nothing. Links are refused."""
        return await _in_thread(lambda: kind_of(self.mounts, path)) if path.relative != "." else "directory"

    async def run(self, work: Callable[[], T]) -> T:
        """Blocking work on the mounts, in a thread, with the errors of the file system in our words."""
        return await _in_thread(work)

    async def to_make(self, paths: Sequence[MountPath]) -> list[FileChange]:
        """The directories that must be made before these can be written, outermost first, as parts of a Change."""
        return await _in_thread(lambda: missing_parents(self.mounts, paths))

    async def hashes(self, paths: Sequence[MountPath]) -> list[str | None]:
        return await _in_thread(lambda: [look(self.mounts, path).hash for path in paths])

    async def keep(self, change: Change, holder: Holder = NOBODYS) -> None:
        await self.hold(holder.call or new_id("c"), holder.persona, rank_of(change, holder), change)

    async def hold(self, ident: str, persona: str, rank: int, change: Change, until: int = 0) -> None:
        """Keep the images of a change for this holder, and make room where that was too much."""
        full = await _in_thread(
            lambda: self.images.keep(ident, persona, rank, contents_of(change), until), self._keepers
        )
        if full and self.needed is not None:
            await self._make_room(self.needed, persona)

    def check(self, change: Change, holder: Holder = NOBODYS) -> str:
        return self.images.check(change, holder)

    def guard(self, change: Change, holder: Holder = NOBODYS) -> None:
        change.guarded.clear()  # whatever a plan says of itself
        self._guard(change, holder)

    async def completed(self, change: Change, tool: str) -> Change:
        """With what the kinds of its mounts add: their own, which does not pass the guard that the planned one has passed."""
        for place in {self.mounts.kind(file.path.mount).completes for file in change.files} - {""}:
            change = await load(place)(self, change, tool)
        return change

    def deletes(self, mount: str) -> bool:
        return self.mounts.kind(mount).deletes

    def effect_word(self, mount: str) -> str:
        return self.mounts.kind(mount).effect

    def _guard(self, change: Change, holder: Holder) -> None:
        """The one place where the kind of a mount refuses a Change: when it is planned, and where nobody has planned it
        through the gate, when it is applied."""
        for mount in {file.path.mount for file in change.files} - change.guarded:
            kind = self.mounts.kind(mount)
            for file in change.files if not kind.deletes else ():
                if file.path.mount == mount and file.after is None:
                    self.mounts.check_deletes(file.path)
            if kind.guard:
                load(kind.guard)(mount, change, holder)
            change.guarded.add(mount)

    async def lay_out(self, contents: Sequence[bytes], holder: Holder) -> None:
        if not contents:
            return
        ident = f"shown/{holder.call}"  # not the call's own: that one may come to nothing

        def work() -> bool:
            self.images.release(ident)
            return self.images.keep(ident, holder.persona, SCRATCH, contents)

        if await _in_thread(work) and self.needed is not None:
            await self._make_room(self.needed, holder.persona)

    async def release(self, call: str) -> None:
        await _in_thread(lambda: self.images.release(call))

    async def _make_room(self, needed: Needed, persona: str) -> None:
        with held(await _in_thread(self.images.hold)):
            kept = await needed()
            await _in_thread(lambda: self.images.drop(persona, kept))

    async def load(self, manifest: Sequence[Mapping[str, Any]]) -> Change:
        return await _in_thread(lambda: Change(tuple(map(self._loaded, manifest))))

    async def apply(self, change: Change) -> None:
        """Strict: every file must be at its starting content, or nothing is written."""
        self._guard(change, NOBODYS)
        until = time.monotonic() + PATIENCE
        await self._writer.run(lambda: self._apply(change, until))

    async def roll(self, change: Change, to: Side) -> None:
        """Finish or take back an interrupted change. Files already there are left alone, so it can be repeated.

        Raises Conflict, touching nothing, if any file has a third content.
        """
        await self._roll([_move(file, to) for file in change.files])

    async def roll_manifest(self, manifest: Sequence[Mapping[str, Any]], to: Side) -> None:
        """The same from a recorded manifest. Needs only the images of the files that must change."""
        await self._roll([self._recorded_move(entry, to) for entry in manifest])

    async def settle(self, manifest: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        return await settle_change(self, manifest)

    async def sweep(self, paths: Sequence[MountPath]) -> None:
        """Remove what interrupted writes left beside these files. Waits for a live writer to finish."""

        await self._alone(lambda: sweep(self.mounts, paths))

    def _read(self, path: MountPath) -> bytes | None:
        try:
            handle = open_to_read(self.mounts, path)
        except NotFound:
            spoil()
            return None
        with held(handle):
            content, status = read_steady(handle, path.shown, self._limit(path))
            note_file(self.mounts, path, status, content)
            return content

    def _take(self, path: MountPath) -> FoundFile | None:
        mount, relative = self.mounts.resolve(path)
        check_writable(path, None)
        try:
            handle = open_file(mount.root, relative, path.shown, follow=False)
        except NotFound:
            return None
        with held(handle):
            check_writable(path, os.fstat(handle))
            content, status = read_steady(handle, path.shown, self._limit(path))
            return FoundFile(content, stat.S_IMODE(status.st_mode) & 0o777)

    def _limit(self, path: MountPath) -> int:
        return self._read_limit or self.mounts.rules(path).max_bytes

    def _loaded(self, entry: Mapping[str, Any]) -> FileChange:
        path = MountPath.parse(entry["path"])
        modes = entry.get("before_mode"), entry.get("after_mode")
        if DIRECTORY in (entry["before"], entry["after"]):
            before, after = (None if entry[side] is None else b"" for side in ("before", "after"))
            if before is not None and after is not None and modes[1] is None:
                # gone and made again: its bits are what they are now
                modes = modes[0], self._mode_now(path)
            return FileChange(path, before, after, *modes, kind="directory")
        if (
            entry["before"] is None and modes[1] is None
        ):  # it came with bits that nobody noted, and may have others now
            modes = None, self._mode_now(path)
        return FileChange(path, self._image(entry["before"]), self._image(entry["after"]), *modes)

    def _mode_now(self, path: MountPath) -> int | None:
        found = status_of(self.mounts, path)
        return None if found is None else stat.S_IMODE(found.st_mode) & 0o777

    def _image(self, digest: str | None) -> bytes | None:
        return None if digest is None else self.images.get(digest)

    def _apply(self, change: Change, until: float) -> None:
        done: list[Move] = []
        try:
            with only_writer(self._lock, _left(until)):
                try:
                    apply_moves(
                        self.mounts, [_move(file, "after") for file in change.files], done, strict=True
                    )
                except (CallError, OSError) as error:
                    if done:
                        self._take_back(change, done, error)
                    raise
        except OSError as error:  # nothing of it is there, or no more: that need not be found out
            raise _refused(error, certain=True) from error
        made = {move.path for move in done}
        change.already.update(
            file.path for file in change.files if file.makes_directory and file.path not in made
        )

    def _take_back(self, change: Change, done: list[Move], error: Exception) -> None:
        """A rename failed or a file changed under us midway: all or nothing means nothing."""
        changed = {move.path for move in done}
        back = [_move(file, "before") for file in change.files if file.path in changed]
        try:
            apply_moves(self.mounts, back, [], strict=False)
        except (CallError, OSError):
            raise UnknownOutcome(
                f"the change stopped midway ({error}) and could not be taken back: {', '.join(sorted(changed))}",
                "look at these files, then resolve the event",
            ) from error

    async def _roll(self, moves: Sequence[Move]) -> None:
        await self._alone(lambda: apply_moves(self.mounts, moves, [], strict=False))

    async def _alone(self, work: Callable[[], None]) -> None:
        until = time.monotonic() + PATIENCE

        def held_alone() -> None:
            with only_writer(self._lock, _left(until)):
                work()

        await _in_thread(held_alone, self._writer)

    def _recorded_move(self, entry: Mapping[str, Any], to: Side) -> Move:
        goal = entry[to]
        origin = entry["before" if to == "after" else "after"]
        path, mode = MountPath.parse(entry["path"]), entry.get(f"{to}_mode")
        return Move(path, origin, goal, lambda: self._image(goal), mode)


def _move(file: FileChange, to: Side) -> Move:
    if to == "after":
        return Move(file.path, file.before_hash, file.after_hash, lambda: file.after, file.after_mode)
    return Move(file.path, file.after_hash, file.before_hash, lambda: file.before, file.before_mode)


def _left(until: float) -> float:
    """Of the time that somebody waits for the lock: their turn in the queue is part of it."""
    return max(0.0, until - time.monotonic())


class Threads:
    """So many threads that do one kind of work, in the order in which it was asked for."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, name)

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, work)


async def _in_thread(work: Callable[[], T], threads: Threads | None = None) -> T:
    try:
        return await (asyncio.to_thread(work) if threads is None else threads.run(work))
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError, certain: bool = False) -> Failed:
    return Failed(
        f"the file system refused: {error.strerror or error}", "check space and permissions", certain=certain
    )
