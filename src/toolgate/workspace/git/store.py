"""The repository's objects, as git may open them.

Git gets a directory of links, one for each of the 256 directories of loose objects and, in a `pack` of ours, one for
each file of a pack. Its `info` is ours too, so the repository's own alternates, commit-graph and multi-pack-index are
never read. Before each use every object directory is looked at: a link anywhere in it could lead out of the mount, so it
is refused. A directory whose change time is as before is not listed again.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from toolgate.core.errors import NotFound, Unavailable
from toolgate.workspace.confine import held
from toolgate.workspace.git.locate import Place
from toolgate.workspace.git.packs import is_pack, lay_packs, link_packs

SETTLED_NS = 2_000_000_000
"""A change this recent may be followed by another one with the same time stamp: look again next time."""
LOOSE = tuple(f"{number:02x}" for number in range(256))
PACKS = "pack"


@dataclass(slots=True)
class Store:
    place: Place
    links: Path
    """Our directory of links; it holds the commit-graph too."""
    young: bool = False
    """Some directory changed a moment ago, and may have changed again within the same time stamp."""
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def marks(self) -> frozenset[tuple[str, tuple[int, int]]] | None:
        """The same as long as no object came or went; None where that cannot be told yet."""
        return None if self.young else frozenset(self._seen.items())

    def lay(self) -> None:
        """Make the links. Several processes may do so at once; all make the same ones."""
        (self.links / "info").mkdir(parents=True, exist_ok=True)
        (self.links / "info" / "alternates").unlink(missing_ok=True)
        lay_packs(self.links / PACKS)
        for name in LOOSE:
            target = str(self.place.git_dir / "objects" / name)
            link = self.links / name
            try:
                os.symlink(target, link)
            except FileExistsError:
                if os.readlink(link) != target:
                    raise Unavailable(
                        f"{link} is not the link it should be", "delete the cache: `.toolgate/cache/git`"
                    ) from None

    def check(self) -> None:
        """Refuse objects that are not in the mount. Costs one status for each directory that has not changed."""
        try:
            handle = self.place.open("objects")
        except NotFound:
            raise Unavailable(
                "the repository has no objects", "repair it with `git init` and `git fetch`"
            ) from None
        self.young = False
        with held(handle):
            self._refuse_alternates(handle)
            for name in (*LOOSE, PACKS):
                self._check_directory(handle, name)

    def _refuse_alternates(self, objects: int) -> None:
        for name in ("info/alternates", "info/http-alternates"):
            try:
                size = os.stat(name, dir_fd=objects, follow_symlinks=False).st_size
            except OSError:
                continue
            if size:
                raise Unavailable(
                    "the repository borrows objects from another one, which may be outside the mount",
                    "run `git repack -a -d` and delete `.git/objects/info/alternates`",
                )

    def _check_directory(self, objects: int, name: str) -> None:
        try:
            status = os.stat(name, dir_fd=objects, follow_symlinks=False)
        except FileNotFoundError:
            self._seen.pop(name, None)
            if name == PACKS:
                self._link_packs([])
            return
        mark = (status.st_ino, status.st_ctime_ns)
        if self._seen.get(name) == mark:
            return
        if not stat.S_ISDIR(status.st_mode):
            raise _leads_out(name)
        directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=objects)
        with held(directory), os.scandir(directory) as entries:
            used = [entry for entry in entries if name != PACKS or is_pack(entry.name)]
            if not all(entry.is_file(follow_symlinks=False) for entry in used):
                raise _leads_out(name)
        if name == PACKS:
            self._link_packs([entry.name for entry in used])
        if status.st_ctime_ns < time.time_ns() - SETTLED_NS:
            self._seen[name] = mark
        else:  # listed again next time
            self._seen.pop(name, None)
            self.young = True

    def _link_packs(self, names: list[str]) -> None:
        link_packs(self.links / PACKS, self.place.git_dir / "objects" / PACKS, names)


def _leads_out(name: str) -> Unavailable:
    return Unavailable(
        f"the repository's objects/{name} holds a link or something else that is no object",
        "`git clone --no-local` makes a repository that is whole",
    )
