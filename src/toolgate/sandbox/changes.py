"""What goes into a program's directories before it starts, and what is different in its view of the project afterwards."""

from __future__ import annotations

import os
from collections.abc import Sequence

from toolgate.sandbox import copied
from toolgate.sandbox.inside.copying import MAX_BYTES, MAX_NAMES
from toolgate.sandbox.job import Altered, Job, Left
from toolgate.sandbox.overlay import DIRECTORY, Layer

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def altered(job: Job, handle: int, copy: bool) -> tuple[tuple[Altered, ...], list[str]]:
    """Read once the program is gone. Of a copy, what was there before counts, too."""
    assert job.view is not None
    disk, names = job.limits.disk_bytes, job.limits.inodes
    if not copy:
        layer = Layer(disk, names)
        return layer.read(handle), layer.dropped
    layer = Layer(disk + MAX_BYTES, names + MAX_NAMES)
    return copied.compare(handle, job.view, layer), layer.dropped


def put(handle: int, files: Sequence[Left], owner: int) -> None:
    """Into the work directory, which is empty but for what is ours; nobody runs in it yet."""
    for file in files:
        *way, name = file.path.split("/")
        parent = os.dup(handle)
        try:
            for part in way:
                parent = _inner(parent, part, owner)
            with os.fdopen(os.open(name, _WRITE, 0o644, dir_fd=parent), "wb") as stream:
                stream.write(file.content)
                _give(stream.fileno(), owner)
        finally:
            os.close(parent)


def _inner(parent: int, name: str, owner: int) -> int:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
        made = True
    except FileExistsError:
        made = False
    inner = os.open(name, DIRECTORY, dir_fd=parent)
    os.close(parent)
    if made:
        _give(inner, owner)
    return inner


def _give(handle: int, owner: int) -> None:
    """To the job's user, where it has one of its own."""
    if owner:
        os.fchown(handle, owner, owner)
