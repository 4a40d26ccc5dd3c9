"""Files that git keeps in `.git`, written by hand: what git itself would never write into them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from repositories import Repo

EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The blob without content."""
Entry = tuple[str, str] | tuple[str, str, int]
"""A name, a blob and perhaps a mode."""


def sealed(data: bytes) -> bytes:
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def index(repo: Repo, entries: Iterable[Entry], *, version: int = 2, extension: bytes = b"") -> None:
    """Put an index in place of the repository's own. The stat data is of no file, so git must look at each."""
    listed = sorted((name.encode(), *rest) for name, *rest in entries)
    data = b"DIRC" + struct.pack(">II", version, len(listed))
    before = b""
    for name, oid, *mode in listed:
        data += _entry(
            bytes(name), str(oid), int(mode[0]) if mode else 0o100644, before if version == 4 else None
        )
        before = bytes(name)
    (repo.root / ".git" / "index").write_bytes(sealed(data + extension))


def _entry(name: bytes, oid: str, mode: int, before: bytes | None) -> bytes:
    fixed = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(oid)
    fixed += struct.pack(">H", min(len(name), 0xFFF))
    if before is None:
        return fixed + name + b"\0" * (8 - (len(fixed) + len(name)) % 8)
    same = 0
    while same < min(len(name), len(before), 100) and name[same] == before[same]:
        same += 1
    assert len(before) - same < 128
    return fixed + bytes((len(before) - same,)) + name[same:] + b"\0"


def tree(repo: Repo, *entries: tuple[str, str, str]) -> str:
    """A tree of modes, names and ids, whatever the names are."""
    data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries)
    return written(repo, "tree", data)


def commit(
    repo: Repo, tree: str, *, author: bytes = b"A <a@b>", head: bytes = b"", message: bytes = b"m"
) -> str:
    when = b"1700000000 +0000"
    data = b"tree %s\nauthor %s %s\ncommitter C <c@d> %s\n%s\n%s\n" % (tree.encode(), author, when, when, head, message)  # fmt: skip
    return written(repo, "commit", data)


def written(repo: Repo, kind: str, data: bytes) -> str:
    return repo.git("hash-object", "-t", kind, "-w", "--stdin", "--literally", stdin=data).strip()


def multi_pack_index(pack: str, listed: Sequence[tuple[str, int]]) -> bytes:
    """One that says of these objects that they are in `pack`, at these offsets."""
    objects = sorted((bytes.fromhex(oid), offset) for oid, offset in listed)
    name = pack.encode() + b"\0"
    counts = (sum(oid[0] <= first for oid, _ in objects) for first in range(256))
    chunks = {
        b"PNAM": name + b"\0" * (-len(name) % 4),
        b"OIDF": b"".join(struct.pack(">I", count) for count in counts),
        b"OIDL": b"".join(oid for oid, _ in objects),
        b"OOFF": b"".join(struct.pack(">II", 0, offset) for _, offset in objects),
    }
    data = b"MIDX" + bytes((1, 1, len(chunks), 0)) + struct.pack(">I", 1)
    at = len(data) + 12 * (len(chunks) + 1)
    for chunk, content in chunks.items():
        data += chunk + struct.pack(">Q", at)
        at += len(content)
    return sealed(data + b"\0" * 4 + struct.pack(">Q", at) + b"".join(chunks.values()))


def objects_of(repo: Repo, pack: Path) -> list[tuple[str, int]]:
    lines = repo.git("show-index", stdin=pack.with_suffix(".idx").read_bytes()).splitlines()
    return [(line.split()[1], int(line.split()[0])) for line in lines]
