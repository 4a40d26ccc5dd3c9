"""The repository's objects, as git may open them.

Git gets a directory of links, one for each of the 256 directories of loose objects and, in a `pack` of ours, one for
each file of a pack. Its `info` is ours too, so the repository's own alternates, commit-graph and multi-pack-index are
never read: a link to the whole directory of packs would bring the last one, which names packs by any path. Before each use
every object directory is looked at: a link anywhere in it could lead out of the mount, so it is refused. A directory whose
change time is as before is not listed again.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from toolgate.core.errors import NotFound, Unavailable
from toolgate.workspace.confine import held
from toolgate.workspace.git.locate import RepositoryPlace

_PACK = re.compile(r"pack-(?:[0-9a-f]{40}|[0-9a-f]{64})\.(?:pack|rev|idx)")


def is_pack(name: str) -> bool:
    return _PACK.fullmatch(name) is not None


def lay_packs(links: Path) -> None:
    """Make the directory, and refuse one that holds anything but links to packs."""
    if links.is_symlink():
        links.unlink()  # an earlier version linked the whole directory
    links.mkdir(exist_ok=True)
    for name in os.listdir(links):
        if not is_pack(name) or not (links / name).is_symlink():
            raise _strange(links / name)


def link_packs(links: Path, packs: Path, names: Iterable[str]) -> None:
    """Bring the links up to date with these names in `packs`. Other processes may do so at the same moment."""
    wanted = set(names)
    # an index that git finds has its pack already, when it comes and when it goes
    for name in sorted(wanted, key=_index_last):
        target, link = str(packs / name), links / name
        try:
            os.symlink(target, link)
        except FileExistsError:
            if not link.is_symlink() or os.readlink(link) != target:
                raise _strange(link) from None
    for name in sorted(os.listdir(links), key=_index_last, reverse=True):
        if not os.path.lexists(packs / name):  # one that came since we looked was linked by another process
            (links / name).unlink(missing_ok=True)


def _index_last(name: str) -> tuple[bool, str]:
    return name.endswith(".idx"), name


def _strange(link: Path) -> Unavailable:
    return Unavailable(f"{link} is not the link it should be", "delete the cache: `.toolgate/cache/git`")


SETTLED_NS = 2_000_000_000
"""A change this recent may be followed by another one with the same time stamp: look again next time."""
LOOSE = tuple(f"{number:02x}" for number in range(256))
PACKS = "pack"


@dataclass(slots=True)
class ObjectStore:
    place: RepositoryPlace
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
