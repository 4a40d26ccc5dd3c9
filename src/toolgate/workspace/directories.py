"""Directories of a change: made before the files that go into them, removed after those that were in them.

Both are mild. One that is there already need not be made; one that is not empty stays, because whatever is in it
is not part of the change.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress

from toolgate.core.change import DIRECTORY, FileChange
from toolgate.core.errors import BlockedPath, NotFound
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.look import status_of
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.staged import Move

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
