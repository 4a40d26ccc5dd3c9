"""A repository's refs, read by us: git is given a list of names and object ids, never the files themselves."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from toolgate.core.errors import CallError, Unavailable
from toolgate.workspace.confine import held
from toolgate.workspace.git.locate import RepositoryPlace

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
