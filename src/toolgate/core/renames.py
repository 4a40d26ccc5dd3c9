"""Which files of a Change only move: one that goes and one that comes, with the same content or most of it.

A Change knows no renames, it says what is there before and after. People look for the lines that differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolgate.core.change import FileChange
from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.core.paths import MountPath

SIMILAR = 0.5
"""The share of bytes in equal lines, as git has it."""
MAX_PAIRS = 400
MAX_BYTES = 1 << 20
MAX_COMPARED = 32 << 20
"""Bytes, counted once for each comparison that they are part of."""


@dataclass(frozen=True, slots=True)
class RenamedFile:
    """One file as a person reads it, and where it was before if it was elsewhere."""

    file: FileChange
    old_path: MountPath | None = None


def moved(files: Sequence[FileChange]) -> Iterator[RenamedFile]:
    """All files in their order; what moves stands where it comes to be."""
    gone = [file for file in files if file.kind == "file" and file.before and file.after is None]
    come = [file for file in files if file.kind == "file" and file.after and file.before is None]
    pairs = _same(gone, come)
    used = {file.path for file in pairs.values()}
    pairs |= _similar(
        [file for file in gone if file.path not in used], [file for file in come if file.path not in pairs]
    )
    left = {file.path for file in pairs.values()}
    for file in files:
        old = pairs.get(file.path)
        if old is not None and file.kind == "file":
            made = FileChange(file.path, old.before, file.after, old.before_mode, file.after_mode)
            yield RenamedFile(made, old.path)
        elif file.kind == "directory" or file.path not in left:
            yield RenamedFile(file)


def _same(gone: Sequence[FileChange], come: Sequence[FileChange]) -> dict[MountPath, FileChange]:
    """By where they come to be."""
    waiting: dict[bytes | None, list[FileChange]] = {}
    for file in reversed(gone):
        waiting.setdefault(file.before, []).append(file)
    return {file.path: waiting[file.after].pop() for file in come if waiting.get(file.after)}


def _similar(gone: Sequence[FileChange], come: Sequence[FileChange]) -> dict[MountPath, FileChange]:
    """The most alike first. Where there are too many to compare, nothing is said to have moved."""
    if not gone or not come or len(gone) * len(come) > MAX_PAIRS:
        return {}
    compared = sum(_counted(file.before) for file in gone) * len(come)
    if compared + sum(_counted(file.after) for file in come) * len(gone) > MAX_COMPARED:
        return {}
    before = {file.path: _lines(file.before or b"") for file in gone}
    after = {file.path: _lines(file.after or b"") for file in come}
    found = [(_alike(before[old.path], after[new.path]), old, new) for old in gone for new in come]
    pairs: dict[MountPath, FileChange] = {}
    taken: set[MountPath] = set()
    for share, old, new in sorted(found, key=lambda each: -each[0]):
        if share >= SIMILAR and old.path not in taken and new.path not in pairs:
            pairs[new.path] = old
            taken.add(old.path)
    return pairs


def _counted(content: bytes | None) -> int:
    return len(content) if content is not None and len(content) <= MAX_BYTES else 0


def _lines(content: bytes) -> Counter[bytes]:
    return Counter(content.split(b"\n")) if len(content) <= MAX_BYTES else Counter()


def _alike(one: Counter[bytes], other: Counter[bytes]) -> float:
    larger = max(_size(one), _size(other))
    return _size(one & other) / larger if larger else 0.0


def _size(lines: Counter[bytes]) -> int:
    return sum(len(line) * count for line, count in lines.items())
