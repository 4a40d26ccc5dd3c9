"""The repository's index, read by us and written anew for git: only entries, and only such as name tracked files.

Git believes its index. It asks the file system for every name in it, `..` and all, and opens the repository that a
submodule's `.git` leads to. What git gets is therefore what was checked here: no submodules, no extension but the one
that saves most time (`TREE`, what the index remembers of trees), and nothing of an index with a name that git itself would
never have put there. Git counts entries by the numbers in that extension, so it is kept only where every number is right.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from toolgate.core.errors import TooLarge, Unavailable
from toolgate.core.records import dataclass
from toolgate.workspace.confine import held, open_directory
from toolgate.workspace.git.locate import RepositoryPlace

_NODE = re.compile(rb"([^\0/]{0,4096})\0(-1|[0-9]{1,7}) ([0-9]{1,7})\n")
_DEEPEST_TREE = 200


def trees_fit(content: bytes, names: Iterable[bytes], hash_size: int) -> bool:
    """Whether it speaks of these files: a directory after its parent, with the number of entries in it or -1."""
    counts = _files_below(names)
    parents: list[tuple[bytes, int]] = []  # each with how many of its directories are still to come
    at = 0
    while True:
        node = _NODE.match(content, at)
        if node is None or len(parents) > _DEEPEST_TREE or bool(node[1]) != bool(parents):
            return False
        path = node[1]
        if parents:
            above, left = parents.pop()
            path = above + b"/" + path if above else path
            parents.append((above, left - 1))
        known = not node[2].startswith(b"-")
        if known and counts.get(path) != int(node[2]):
            return False
        at = node.end() + (hash_size if known else 0)
        parents.append((path, int(node[3])))
        while parents and not parents[-1][1]:
            parents.pop()
        if not parents:
            return at == len(content)


def _files_below(names: Iterable[bytes]) -> Counter[bytes]:
    """How many files there are in each directory and below; the empty name is all of it."""
    counts: Counter[bytes] = Counter()
    for path, number in Counter(name.rpartition(b"/")[0] for name in names).items():
        counts[b""] += number
        while path:
            counts[path] += number
            path = path.rpartition(b"/")[0]
    return counts


MOST_ENTRIES = 1_000_000
MOST_BYTES = 256 << 20
_HEADER = struct.Struct(">4sII")
_LONGEST_NAME = 4096
_SAID, _EXTENDED = 0xFFF, 0x4000
"""In an entry's flags: the length of its name, as far as it fits, and whether more flags follow."""
_KIND, _FILE, _LINK, _SUBMODULE = 0o170000, 0o100000, 0o120000, 0o160000
_NO_PARTS = (b"//", b"/./", b"/../", b"/.git/")
"""What no path of a commit has in it."""
_OTHER_FORMS = {
    b"link": ("it is split", "`git update-index --no-split-index`"),
    b"sdir": ("it is sparse", "`git sparse-checkout reapply --no-sparse-index`"),
}


class IndexEntry(NamedTuple):
    mode: int
    name: bytes
    raw: bytes
    """As versions 2 and 3 have it."""


@dataclass(frozen=True, slots=True)
class Index:
    entries: list[IndexEntry]
    trees: bytes = b""
    """The content of the extension `TREE`, if it fits the entries."""


def checked_index(data: bytes, hash_name: str) -> Index:
    """What it says of files and links. Submodules are left out; what is wrong with it is an error."""
    hash_size = hashlib.new(hash_name, usedforsecurity=False).digest_size
    try:
        magic, version, count = _HEADER.unpack_from(data)
        if magic != b"DIRC" or version not in (2, 3, 4):
            raise _damaged(f"it is of version {version}")
        if count > MOST_ENTRIES:
            raise TooLarge(f"the index has more than {MOST_ENTRIES:,} entries", "give `compare` a revision")
        form = struct.Struct(f">24xI12x{hash_size}xH")  # the mode, and after the object's id the flags
        entries, end = (_shortened if version == 4 else _plain)(data, form, count)
        trees = _extensions(data, end, len(data) - hash_size).get(b"TREE", b"")
    except (struct.error, IndexError, ValueError):
        raise _damaged("it does not end where it should") from None
    _refuse_names(entries)
    kept = [entry for entry in entries if entry.mode & _KIND != _SUBMODULE]
    known = bool(trees) and trees_fit(trees, (entry.name for entry in kept), hash_size)
    return Index(kept, trees if known else b"")


def composed_index(index: Index, hash_name: str) -> bytes:
    """An index of this and nothing else."""
    data = _HEADER.pack(b"DIRC", 3, len(index.entries)) + b"".join([entry.raw for entry in index.entries])
    if index.trees:
        data += struct.pack(">4sI", b"TREE", len(index.trees)) + index.trees
    return data + hashlib.new(hash_name, data, usedforsecurity=False).digest()


def _plain(data: bytes, form: struct.Struct, count: int) -> tuple[list[IndexEntry], int]:
    """Versions 2 and 3: each name ends with a NUL, each entry at a multiple of eight bytes."""
    entries: list[IndexEntry] = []
    at, read, fixed = _HEADER.size, form.unpack_from, form.size
    for _ in range(count):
        mode, flags = read(data, at)
        start = at + fixed + (2 if flags & _EXTENDED else 0)
        said = flags & _SAID
        stop = start + said if said < _SAID else data.index(b"\0", start)
        if data[stop]:
            raise _damaged("a name goes on after its end")
        end = at + ((stop - at + 8) & ~7)
        entries.append(IndexEntry(mode, data[start:stop], data[at:end]))
        at = end
    return entries, at


def _shortened(data: bytes, form: struct.Struct, count: int) -> tuple[list[IndexEntry], int]:
    """Version 4: each name says how much of the one before it keeps."""
    entries: list[IndexEntry] = []
    at, name, total = _HEADER.size, b"", 0
    for _ in range(count):
        mode, flags = form.unpack_from(data, at)
        start = at + form.size + (2 if flags & _EXTENDED else 0)
        less, after = _number(data, start)
        stop = data.index(b"\0", after)
        if less > len(name) or len(name) - less + stop - after > _LONGEST_NAME:
            raise _damaged("a name is made of more than there is")
        name = name[: len(name) - less] + data[after:stop]
        raw = _padded(data[at:start], name, form.size, flags)
        entries.append(IndexEntry(mode, name, raw))
        at = stop + 1
        total += len(raw)
        if total > MOST_BYTES:
            raise TooLarge(f"the index has more than {MOST_BYTES:,} bytes", "give `compare` a revision")
    return entries, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, and where it ends."""
    byte = data[at]
    value = byte & 127
    while byte & 128 and value <= _LONGEST_NAME:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) + (byte & 127)
    return value, at + 1


def _padded(head: bytes, name: bytes, fixed: int, flags: int) -> bytes:
    flags = flags & ~_SAID | min(len(name), _SAID)
    head = head[: fixed - 2] + flags.to_bytes(2, "big") + head[fixed:]
    return head + name + b"\0" * (8 - (len(head) + len(name)) % 8)


def _refuse_names(entries: list[IndexEntry]) -> None:
    """All at once: an index may have hundreds of thousands."""
    if not entries:
        return
    names = b"\0".join([b"", *[entry.name for entry in entries], b""])
    parts = names.lower().replace(b"\0", b"/")
    if names.count(b"\0") != len(entries) + 1 or any(part in parts for part in _NO_PARTS):
        raise _damaged("it has a name with an empty part, `.`, `..`, `.git` or a NUL in it")
    kinds = {entry.mode & _KIND for entry in entries} - {_FILE, _LINK, _SUBMODULE}
    if kinds:
        raise _damaged(f"it has an entry of mode {kinds.pop():o}")


def _extensions(data: bytes, at: int, end: int) -> dict[bytes, bytes]:
    """Those that only save time. One in small letters changes what the entries mean, and is refused."""
    found: dict[bytes, bytes] = {}
    while at + 8 <= end:
        name, size = struct.unpack_from(">4sI", data, at)
        if not name[:1].isupper():
            why, fix = _OTHER_FORMS.get(name, (f"it needs the extension {name!r}", "`git read-tree HEAD`"))
            raise Unavailable(f"the repository's index cannot be compared with: {why}", fix)
        found[name] = data[at + 8 : at + 8 + size]
        at += 8 + size
    if at != end:
        raise _damaged("it does not end where it should")
    return found


def _damaged(why: str) -> Unavailable:
    return Unavailable(
        f"the repository's index is damaged or forged: {why}",
        "look at it, then make it anew: `git read-tree HEAD`",
    )


_INSIDE = b"/.git"
MOST_KEPT = 8 << 20
"""Bytes of an index that is kept for the next comparison."""


@dataclass(frozen=True, slots=True)
class Known:
    content: bytes
    index: Index
    composed: bytes
    inside: list[bytes]
    """Where a repository would be that took the place of a file."""


@dataclass(slots=True)
class Tracked:
    """Reads a repository's index; one that is as it was is not read again."""

    place: RepositoryPlace
    _known: Known | None = None

    def copy(self, directory: Path, hash_name: str) -> Path:
        """A copy that keeps its time: git compares files' times with it. None is made where there is no index."""
        copy = directory / "index"
        content = self.place.read("index", MOST_BYTES)
        status = self.place.status("index")
        if content is not None and status is not None:
            known = self._read(content, hash_name)
            gone = _repositories(self.place, known.inside)
            copy.write_bytes(
                composed_index(_without(known.index, gone), hash_name) if gone else known.composed
            )
            os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        return copy

    def _read(self, content: bytes, hash_name: str) -> Known:
        known = self._known
        if known is None or known.content != content:
            index = checked_index(content, hash_name)
            known = Known(
                content,
                index,
                composed_index(index, hash_name),
                [entry.name + _INSIDE for entry in index.entries],
            )
            self._known = known if len(content) <= MOST_KEPT else None
        return known


def _repositories(place: RepositoryPlace, inside: list[bytes]) -> set[bytes]:
    """Files in whose place there is a repository now: they are gone. Git would open it to see which commit it is at, and
    its `.git` may lead anywhere."""
    handle = open_directory(place.mount.root, place.top, place.top, follow=False)
    with held(handle):
        there = [path for path in inside if os.access(path, os.F_OK, dir_fd=handle, follow_symlinks=False)]
        names = {path.removesuffix(_INSIDE) for path in there}
        return {name for name in names if _is_directory(handle, name)}


def _without(index: Index, names: set[bytes]) -> Index:
    return Index([entry for entry in index.entries if entry.name not in names])


def _is_directory(top: int, name: bytes) -> bool:
    """Not a link to one, which git only reads."""
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode)
    return False
