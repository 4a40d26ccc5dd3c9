"""Files of the mounts as tools and the gate use them: the `Files` port, carried out.

Async outside, plain blocking work in a thread inside. All writing is done under one lock per project, so that
several processes can share it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from toolgate.core.change import Change, FileChange
from toolgate.core.errors import CallError, Failed, NotFound, UnknownOutcome
from toolgate.core.paths import MountPath
from toolgate.core.ports import Files
from toolgate.workspace.confine import held, open_file
from toolgate.workspace.images import Images
from toolgate.workspace.lock import only_writer
from toolgate.workspace.look import look, read_all
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.reconcile import Side, settle_change
from toolgate.workspace.staged import Move, sweep
from toolgate.workspace.write import bring, check_writable

T = TypeVar("T")

READ_LIMIT = 16 << 20


class WorkspaceFiles(Files):
    def __init__(self, mounts: Mounts, images: Images, state: Path, read_limit: int = READ_LIMIT) -> None:
        """`state` is the project's state directory; it holds the lock that all its processes share."""
        self._mounts = mounts
        self._images = images
        self._lock = state / "files.lock"
        self._read_limit = read_limit

    @property
    def mounts(self) -> Mounts:
        """For rooms that read in their own way, through the same handles."""
        return self._mounts

    async def read(self, path: MountPath, *, to_change: bool = False) -> bytes | None:
        """The content, or None where there is no file.

        Links that stay inside are followed, except with `to_change`: a plan starts from the file itself, and
        hears now, not after a human's approval, that it could not be written.
        """
        return await _in_thread(lambda: self._read(path, to_change))

    async def hashes(self, paths: Sequence[MountPath]) -> list[str | None]:
        return await _in_thread(lambda: [look(self._mounts, path).hash for path in paths])

    async def keep(self, change: Change) -> None:
        contents = [side for file in change.files for side in (file.before, file.after) if side is not None]
        await _in_thread(lambda: self._images.put(contents))

    async def load(self, manifest: Sequence[Mapping[str, Any]]) -> Change:
        return await _in_thread(lambda: self._load(manifest))

    async def apply(self, change: Change) -> None:
        """Strict: every file must be at its starting content, or nothing is written."""
        await _in_thread(lambda: self._apply(change))

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

        def work() -> None:
            with only_writer(self._lock):
                sweep(self._mounts, paths)

        await _in_thread(work)

    def _read(self, path: MountPath, to_change: bool) -> bytes | None:
        mount, relative = self._mounts.resolve(path)
        if to_change:
            check_writable(path, None)
        try:
            handle = open_file(mount.root, relative, path.shown, follow=not to_change)
        except NotFound:
            return None
        with held(handle):
            if to_change:
                check_writable(path, os.fstat(handle))
            return read_all(handle, path.shown, self._read_limit)

    def _load(self, manifest: Sequence[Mapping[str, Any]]) -> Change:
        return Change(
            tuple(
                FileChange(
                    MountPath.parse(entry["path"]), self._image(entry["before"]), self._image(entry["after"])
                )
                for entry in manifest
            )
        )

    def _image(self, digest: str | None) -> bytes | None:
        return None if digest is None else self._images.get(digest)

    def _apply(self, change: Change) -> None:
        done: list[Move] = []
        with only_writer(self._lock):
            try:
                bring(self._mounts, [_move(file, "after") for file in change.files], done, strict=True)
            except (CallError, OSError) as error:
                if not done:
                    raise
                self._take_back(change, done, error)
                raise

    def _take_back(self, change: Change, done: list[Move], error: Exception) -> None:
        """A rename failed or a file changed under us midway: all or nothing means nothing."""
        changed = {move.path for move in done}
        back = [_move(file, "before") for file in change.files if file.path in changed]
        try:
            bring(self._mounts, back, [], strict=False)
        except (CallError, OSError):
            raise UnknownOutcome(
                f"the change stopped midway ({error}) and could not be taken back: {', '.join(sorted(changed))}",
                "look at these files, then resolve the event",
            ) from error

    async def _roll(self, moves: Sequence[Move]) -> None:
        def work() -> None:
            with only_writer(self._lock):
                bring(self._mounts, moves, [], strict=False)

        await _in_thread(work)

    def _recorded_move(self, entry: Mapping[str, Any], to: Side) -> Move:
        goal = entry[to]
        origin = entry["before" if to == "after" else "after"]
        return Move(MountPath.parse(entry["path"]), origin, goal, lambda: self._image(goal))


def _move(file: FileChange, to: Side) -> Move:
    if to == "after":
        return Move(file.path, file.before_hash, file.after_hash, lambda: file.after)
    return Move(file.path, file.after_hash, file.before_hash, lambda: file.before)


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise Failed(
            f"the file system refused: {error.strerror or error}", "check space and permissions"
        ) from error
