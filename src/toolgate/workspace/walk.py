"""The same confinement without `openat2`: one component at a time, no link ever followed by the system.

Each directory is opened relative to the handle before it; a link is read as text and its target walked the same
way; `..` in it goes back to the handle we came through. So whatever is swapped meanwhile, no step leaves the
root. Raises OSError only, with the error numbers that `openat2` uses.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

Visit = Callable[[list[str]], None]
"""Told every name from the root on, links resolved, before it is opened; raises to stop."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40  # as the kernel counts


def open_by_walking(root: int, path: str, flags: int, follow: bool, visit: Visit | None = None) -> int:
    todo = _parts(path)
    trail = [os.dup(root)]
    names: list[str] = []
    links = 0
    try:
        while todo:
            name = todo.pop()
            if name == "..":
                _step_back(trail, path)
                names.pop()
                continue
            if visit is not None:
                visit([*names, name])
            try:
                handle = os.open(name, _DIRECTORY if todo else flags | os.O_NOFOLLOW, dir_fd=trail[-1])
            except OSError as error:
                target = _link_target(name, trail[-1], error)
                links += 1
                if not follow or links > _MAX_LINKS:
                    raise _refused(errno.ELOOP, path) from None
                todo.extend(_parts(target))
                continue
            if not todo:
                return handle
            trail.append(handle)
            names.append(name)
        if visit is not None:
            visit(names)
        return os.open(".", flags, dir_fd=trail[-1])
    finally:
        for handle in trail:
            os.close(handle)


def _parts(path: str) -> list[str]:
    """The components, last first. An absolute path, also as a link's target, starts outside by definition."""
    if path.startswith("/"):
        raise _refused(errno.EXDEV, path)
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _step_back(trail: list[int], path: str) -> None:
    if len(trail) == 1:
        raise _refused(errno.EXDEV, path)
    os.close(trail.pop())


def _link_target(name: str, parent: int, error: OSError) -> str:
    """Where the link leads that made an open fail; the same error again if it was no link."""
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        raise error
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        raise error from None


def _refused(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
