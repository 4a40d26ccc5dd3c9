"""Objects of a repository, as git may open them, and its refs.

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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from toolgate.core.errors import CallError, NotFound, Unavailable
from toolgate.core.records import dataclass, field
from toolgate.workspace.confine import STEP, held
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
        directory = os.open(name, STEP, dir_fd=objects)
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


# A repository's refs, read by us: git is given a list of names and object ids, never the files themselves.

_ID = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_SYMBOLIC = re.compile(rb"ref: *(refs/\S+)\s*")
_NAME = re.compile(rb"refs/[^\x00-\x20\x7f~^:?*\[\\]+")
_LINE = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64}) (\S+)$", re.M)
_HIDDEN = (b"refs/replace/", b"refs/toolgate/")
Stamp = tuple[tuple[str, tuple[int, ...]], ...]
MAX_PACKED = 64 << 20
MAX_DEPTH = 32
MAX_NAMES = 100_000
"""Files and directories below `refs`. Every call looks at all of them."""


@dataclass(slots=True)
class Refs:
    head: bytes
    """An object id, or the name of the branch; the branch may not exist yet."""
    ids: dict[bytes, bytes]
    shallow: bytes
    stamp: Stamp = field(default=(), compare=False)

    @property
    def head_id(self) -> bytes | None:
        return self.ids.get(self.head) if self.head.startswith(b"refs/") else self.head

    @property
    def hash_name(self) -> str:
        some = self.head_id or next(iter(self.ids.values()), b"")
        return "sha256" if len(some) == 64 else "sha1"

    def packed(self) -> bytes:
        lines = (b"%s %s\n" % (self.ids[name], name) for name in sorted(self.ids))
        return b"# pack-refs with: sorted \n" + b"".join(lines)

    def head_file(self) -> bytes:
        return b"ref: %s\n" % self.head if self.head.startswith(b"refs/") else self.head + b"\n"


def stamp_of(place: RepositoryPlace) -> Stamp:
    """Changes whenever a ref does, or the config. Git renames a new file into place; others may write into the one that
    is there."""
    names = ("HEAD", "packed-refs", "shallow", "reftable", "config")
    marks = [(name, _mark(place.status(name))) for name in names]
    for name, handle in _directories(place):
        marks.append((os.fsdecode(name), _mark(os.fstat(handle))))
        with os.scandir(handle) as entries:
            for entry in entries:
                if len(marks) > MAX_NAMES:
                    raise _too_many()
                with suppress(OSError):  # gone meanwhile, which its directory shows
                    marks.append(
                        (f"{os.fsdecode(name)}/{entry.name}", _mark(entry.stat(follow_symlinks=False)))
                    )
    return tuple(sorted(marks))


def newest(stamp: Stamp) -> int:
    """The last moment, in ns, at which anything of it changed."""
    return max((mark[0] for _, mark in stamp if mark), default=0)


def read_refs(place: RepositoryPlace) -> Refs:
    if place.status("reftable") is not None:
        raise Unavailable(
            "this repository keeps its refs in a reftable, which is not read yet",
            "`git refs migrate --ref-format=files`",
        )
    stamp = stamp_of(place)
    head = (place.read("HEAD", 4096) or b"").strip()
    symbolic = _SYMBOLIC.fullmatch(head)
    head = symbolic[1] if symbolic else head
    if not (_NAME.fullmatch(head) if symbolic else _ID.fullmatch(head)):
        raise Unavailable(
            "the repository's HEAD is damaged", "repair it: `git symbolic-ref HEAD refs/heads/main`"
        )
    packed = place.read("packed-refs", MAX_PACKED) or b""
    ids = {name: oid for oid, name in _LINE.findall(packed)}
    symbols: dict[bytes, bytes] = {}
    for name, content in _loose(place):
        if _ID.fullmatch(content):
            ids[name] = content
        elif found := _SYMBOLIC.fullmatch(content):
            symbols[name] = found[1]
    ids |= {name: ids[target] for name, target in symbols.items() if target in ids}
    good = {name: oid for name, oid in ids.items() if _NAME.fullmatch(name) and not name.startswith(_HIDDEN)}
    shallow = place.read("shallow", MAX_PACKED) or b""
    if not all(_ID.fullmatch(line) for line in shallow.split()):
        raise Unavailable("the repository's list of shallow commits is damaged", "fetch it again")
    return Refs(head, good, shallow, stamp)


def _mark(status: os.stat_result | None) -> tuple[int, ...]:
    return () if status is None else (status.st_ctime_ns, status.st_mtime_ns, status.st_ino, status.st_size)


def _directories(place: RepositoryPlace) -> Iterator[tuple[bytes, int]]:
    """Every directory of refs with an open handle, valid until the next one is asked for. Links are not entered."""
    todo = ["refs"]
    while todo:
        name = todo.pop()
        try:
            handle = place.open(name)
        except CallError:
            continue  # gone meanwhile, or a link in its place
        with held(handle):
            yield os.fsencode(name), handle
            if name.count("/") < MAX_DEPTH:
                with os.scandir(handle) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(f"{name}/{entry.name}")
                        if len(todo) > MAX_NAMES:
                            raise _too_many()


def _too_many() -> Unavailable:
    return Unavailable(
        f"the repository has more than {MAX_NAMES:,} files and directories in `refs`",
        "run `git pack-refs --all` and remove directories that are empty",
    )


def _loose(place: RepositoryPlace) -> Iterator[tuple[bytes, bytes]]:
    count = 0
    for directory, handle in _directories(place):
        with os.scandir(handle) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        count += len(names)
        if count > MAX_NAMES:
            raise _too_many()
        for name in names:
            content = _content(handle, name)
            if content is not None:
                yield b"%s/%s" % (directory, os.fsencode(name)), content


def _content(directory: int, name: str) -> bytes | None:
    """A ref's file; a link, a lock or something that cannot be opened is no ref."""
    if name.endswith(".lock"):
        return None
    with suppress(OSError):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        with held(handle):
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return os.read(handle, 4096).strip()
    return None
