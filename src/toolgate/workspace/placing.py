"""By which names the mounts lead to a file: by its spelling, through links, and by a second name of a directory.

Compared is what the kernel says a directory is (device and number), so a bind mount is no way round.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolgate.core.late_pattern import late_pattern
from toolgate.core.paths import MountPath

_TABLE = "/proc/self/mountinfo"
_OCTAL = late_pattern(r"\\([0-7]{3})")
Identity = tuple[int, int]


class Placing:
    """Looks at the disk once for each directory; made for one opening of a gate."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._known: dict[str, Identity | None] = {}
        self._doors: dict[Identity | str, list[tuple[str, str]]] = {}
        """Directories, and files that something is mounted on, that are in a mount: which one, and where in it."""
        self._named: dict[str, list[MountPath]] = {}
        below = mount_points()
        for name, root in roots.items():
            top = os.path.realpath(root)
            self._door(top, name, "")
            for point in below:
                if point.startswith(top.rstrip("/") + "/"):
                    self._door(point, name, os.path.relpath(point, top))

    def names(self, path: str | Path) -> list[MountPath]:
        """Every name that a mount has for it, whether or not it is there; as written and where links lead."""
        if str(path) not in self._named:
            self._named[str(path)] = list(self._look(str(path)))
        return self._named[str(path)]

    def _look(self, path: str) -> dict[MountPath, None]:
        found: dict[MountPath, None] = {}
        for spelled in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            for above, rest in _upwards(spelled):
                # by its path where it is not there yet
                for mount, relative in self._doors.get(self._identity(above) or above, ()):
                    whole = "/".join(part for part in (relative, rest) if part) or "."
                    found[MountPath(f"{mount}:{whole}")] = None
        return found

    def _door(self, path: str, mount: str, relative: str) -> None:
        self._doors.setdefault(self._identity(path) or path, []).append((mount, relative))

    def _identity(self, path: str) -> Identity | None:
        if path not in self._known:
            try:
                status = os.stat(path)
                self._known[path] = (status.st_dev, status.st_ino)
            except (OSError, ValueError):
                self._known[path] = None
        return self._known[path]


def mount_points() -> list[str]:
    """Where the kernel has mounted something; nothing where it does not tell."""
    try:
        with open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:
            return [_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4]) for line in table]
    except (OSError, IndexError):
        return []


def _upwards(path: str) -> Iterator[tuple[str, str]]:
    """A path and everything above it, each with what leads back down."""
    rest = ""
    while True:
        yield path, rest
        above, name = os.path.split(path)
        if above == path or not name:
            return
        path, rest = above, f"{name}/{rest}" if rest else name
