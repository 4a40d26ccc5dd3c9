"""Unified diffs: parsed (`parse.py`), and here applied to contents that the caller hands in: every file of one, or a Conflict
that says which hunk and why. No file is touched here.

Renames and copies start from the contents before the diff, whatever the order of its files, as `git apply` does;
other patches of one file follow each other. A hunk is placed by the rule of `git apply` without fuzz: all lines of its
old side must be there, exactly. It starts at the line its header says, and is looked for elsewhere nearest first, at equal
distance downwards first. A hunk from line 1 belongs at the beginning; one without context after its changes belongs at the
end. Lines that another hunk has written are out of bounds.
"""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import itemgetter
from typing import Protocol

from toolgate.core.change import FileChange
from toolgate.core.conceal import Secrets, conceal
from toolgate.core.errors import Conflict, TooLarge
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.header import FilePatch, Op, PatchHunk, shown

Region = tuple[int, int]
_FIRST_REACH = 100
WORK = 30_000_000
"""Lines that one diff may make us look through, hunk by hunk: whoever writes it chooses where its hunks say they are."""
_MOVED_AT_ONCE = 64
"""Lines that are moved up or down in the time in which one is looked at."""


class PatchWork:
    """What a diff may still cost, all its files together."""

    def __init__(self) -> None:
        self.left = WORK

    def spend(self, lines: int) -> None:
        self.left -= lines
        if self.left < 0:
            raise TooLarge(
                "the hunks of this diff are too many, too far from where their headers put them",
                "make the diff anew from the files as they are, or in parts",
            )

    def move(self, lines: int) -> None:
        self.spend(lines // _MOVED_AT_ONCE)


def find(image: list[bytes], hunk: PatchHunk, taken: list[Region], work: PatchWork) -> int | None:
    """The index of the line where the hunk applies, or None."""
    at_start, at_end = hunk.old_start <= 1, not hunk.trailing
    expected = expected_line(hunk)
    if at_start or at_end:
        fixed = 0 if at_start else len(image) - len(hunk.old)
        if at_end and fixed + len(hunk.old) != len(image):
            return None
        # Stricter than git: with no context around it, only the line number says where it belongs.
        if not hunk.context and fixed != expected:
            return None
        return fixed if fits(image, hunk, fixed, taken) else None
    expected = min(expected, len(image))
    return expected if fits(image, hunk, expected, taken) else _nearest(image, hunk, expected, taken, work)


def expected_line(hunk: PatchHunk) -> int:
    if hunk.new_count:
        return hunk.new_start - 1
    return hunk.new_start  # a side without lines names the line before it


def fits(image: list[bytes], hunk: PatchHunk, at: int, taken: list[Region]) -> bool:
    end = at + len(hunk.old)
    return at >= 0 and image[at:end] == hunk.old and not _overlaps(at, end, taken)


def _nearest(
    image: list[bytes], hunk: PatchHunk, expected: int, taken: list[Region], work: PatchWork
) -> int | None:
    if not hunk.old[-1].endswith(b"\n"):  # the last line of a file is nowhere but at its end
        end = len(image) - len(hunk.old)
        return end if fits(image, hunk, end, taken) else None
    reach = _FIRST_REACH
    while True:  # the window holds every place within reach, so the nearest of these is the nearest of all
        low, high = max(0, expected - reach), min(len(image), expected + reach + len(hunk.old))
        work.spend(high - low)
        at = _nearest_in(image, (low, high), hunk, expected, taken)
        if (low, high) == (0, len(image)) or (at is not None and abs(at - expected) <= reach):
            return at
        reach *= 16


def _nearest_in(
    image: list[bytes], window: Region, hunk: PatchHunk, expected: int, taken: list[Region]
) -> int | None:
    low, high = window
    lines = image[low:high]
    text = b"\n" + b"".join(lines)
    needle = b"\n" + b"".join(hunk.old)
    starts = list(accumulate(map(len, lines), initial=0))  # of each line, in `text`, with the LF before it
    size, middle = len(hunk.old), starts[expected - low]

    def line(offset: int) -> int:
        return low + bisect_left(starts, offset)

    after = text.find(needle, middle)
    while after >= 0 and _overlaps(line(after), line(after) + size, taken):
        after = text.find(needle, after + 1)
    # Backwards as `find` in the reversed text: `rfind` takes time quadratic in a long needle, and holds everybody up.
    back, mirrored = text[middle + len(needle) - 2 :: -1], needle[::-1]
    last = len(back) - len(needle)
    before = back.find(mirrored)
    while before >= 0 and _overlaps(line(last - before), line(last - before) + size, taken):
        before = back.find(mirrored, before + 1)
    found = [line(offset) for offset in (after, last - before if before >= 0 else -1) if offset >= 0]
    return min(found, key=lambda at: abs(at - expected), default=None)


def _overlaps(start: int, end: int, taken: list[Region]) -> bool:
    """The regions stand in order and apart, so that the first one that ends later tells."""
    first = bisect_right(taken, start, key=itemgetter(1))
    return first < len(taken) and taken[first][0] < end


Read = Callable[[MountPath], bytes | None]


@dataclass(frozen=True, slots=True)
class Patched:
    """What one file's patch did."""

    path: MountPath
    op: Op
    origin: MountPath
    """Where a renamed or copied file comes from; otherwise the path itself."""
    hunks: int
    offsets: tuple[int, ...]
    """For each hunk, how many lines from its place it was found; 0 is exact."""
    mode: int
    """The mode that the diff asks for; 0 where it says nothing."""
    insertions: int
    deletions: int
    """Lines, of all hunks."""


@dataclass(frozen=True, slots=True)
class Applied:
    files: tuple[FileChange, ...]
    """Every file that is touched, once, from what it was to what it becomes."""
    patched: tuple[Patched, ...]


@dataclass
class _Tree:
    """The contents as the diff goes on: what was there, what is written, what goes away."""

    read: Read
    gone: set[MountPath]
    """Removed by any patch of the diff, also by a later one: its place is free."""
    written: dict[MountPath, bytes] = field(default_factory=dict)
    seen: dict[MountPath, bytes | None] = field(default_factory=dict)
    edited: set[MountPath] = field(default_factory=set)
    removed: set[MountPath] = field(default_factory=set)
    secrets: Secrets | None = None
    work: PatchWork = field(default_factory=PatchWork)

    def original(self, path: MountPath) -> bytes | None:
        if path not in self.seen:
            self.seen[path] = self.read(path)
        return self.seen[path]


def apply(patches: Sequence[FilePatch], read: Read, secrets: Secrets | None = None) -> Applied:
    """Lines that hold a secret are compared as they are read, with its marker."""
    gone = {patch.old for patch in patches if patch.op in ("rename", "delete")}
    tree = _Tree(read, gone, secrets=secrets)
    patched = tuple(_apply_file(tree, patch) for patch in patches)
    touched = dict.fromkeys(path for patch in patches for path in _touched(patch))
    files = tuple(FileChange(path, tree.original(path), tree.written.get(path)) for path in touched)
    return Applied(files, patched)


def _touched(patch: FilePatch) -> tuple[MountPath, ...]:
    return (patch.new,) if patch.op == "copy" else patch.paths


def _apply_file(tree: _Tree, patch: FilePatch) -> Patched:
    before = _start(tree, patch)
    after, offsets = _apply_hunks(patch, before, tree.work, tree.secrets)
    if patch.op == "delete" and after:
        raise rejected(patch, None, "it deletes the file, but some of its content is not in the diff")
    if patch.op in ("delete", "rename"):
        tree.removed.add(patch.old)
    if patch.op != "delete":
        tree.written[patch.new] = after
    if patch.op == "modify":
        tree.edited.add(patch.new)
    plus = sum(len(hunk.new) - hunk.context for hunk in patch.hunks)
    minus = sum(len(hunk.old) - hunk.context for hunk in patch.hunks)
    return Patched(patch.new, patch.op, patch.old, len(patch.hunks), offsets, patch.new_mode, plus, minus)


def _start(tree: _Tree, patch: FilePatch) -> bytes:
    """The content the patch starts from."""
    if patch.op in ("create", "rename", "copy"):
        _check_free(tree, patch)
    if patch.op == "create":
        return b""
    if patch.op == "modify" and patch.old in tree.written:
        return tree.written[patch.old]
    if patch.old in tree.removed and patch.op != "copy":
        raise rejected(patch, None, f"{patch.old.shown!r} has been removed earlier in the diff")
    if patch.op in ("delete", "rename") and (patch.old in tree.edited):
        raise rejected(patch, None, f"{patch.old.shown!r} has been changed earlier in the diff")
    if patch.op == "delete" and patch.old in tree.written:
        raise rejected(patch, None, f"{patch.old.shown!r} has been written earlier in the diff")
    content = tree.original(patch.old)
    if content is None and patch.guessed:
        return b""
    if content is None:
        raise rejected(patch, None, f"there is no {patch.old.shown!r}")
    return content


def _check_free(tree: _Tree, patch: FilePatch) -> None:
    if patch.new in tree.written:
        raise rejected(patch, None, f"{patch.new.shown!r} has been written earlier in the diff")
    if patch.new not in tree.gone and tree.original(patch.new) is not None:
        raise rejected(patch, None, f"{patch.new.shown!r} exists already")


def _apply_hunks(
    patch: FilePatch, before: bytes, work: PatchWork, secrets: Secrets | None
) -> tuple[bytes, tuple[int, ...]]:
    if not patch.hunks:
        return before, ()
    known = conceal(before, secrets)
    image = io.BytesIO(known.text).readlines()
    real = io.BytesIO(before).readlines() if known.marks else image
    taken: list[Region] = []
    offsets: list[int] = []
    for hunk in patch.hunks:
        at = find(image, hunk, taken, work)
        if at is None:
            raise rejected(patch, hunk, _why(image, hunk))
        if taken and at < taken[-1][1]:
            raise rejected(patch, hunk, f"its lines are at line {at + 1}, before those of the hunk above it")
        if len(hunk.old) != len(hunk.new):
            work.move(len(image) - at)
        end = at + len(hunk.old)
        if real is not image:
            real[at:end] = _with_secrets(hunk.new, image[at:end], real[at:end])
        image[at:end] = hunk.new
        taken.append((at, at + len(hunk.new)))
        offsets.append(at - expected_line(hunk))
    return b"".join(real), tuple(offsets)


def _with_secrets(new: list[bytes], known: list[bytes], real: list[bytes]) -> list[bytes]:
    """The new lines, with what the old ones hold where they show a marker. Each secret stands in for one line only: a
    marker that is left is refused later, as in any other write."""
    held: dict[bytes, list[bytes]] = {}
    for shown_line, line in zip(known, real, strict=True):
        if line != shown_line:
            held.setdefault(shown_line, []).append(line)
    return [held[line].pop(0) if held.get(line) else line for line in new]


def _why(image: list[bytes], hunk: PatchHunk) -> str:
    """The first line that is not as the hunk says, at the place where it should be."""
    at = expected_line(hunk)
    if not hunk.context and not (hunk.old_start <= 1 and at == 0):
        return "it has no context lines, so it can only be the end of the file; make the diff with context"
    for index, wanted in enumerate(hunk.old):
        if at + index >= len(image):
            return (
                f"the file ends at line {len(image)}, where it expects {shown(wanted)}, and nowhere else fits"
            )
        if image[at + index] != wanted:
            found = shown(image[at + index])
            note = _ends(image[at + index], wanted)
            return f"line {at + index + 1} is {found}, not {shown(wanted)}{note}, and nowhere else fits"
    if not hunk.trailing:
        return "it has no context after its changes, so it must reach the end of the file, and does not"
    return "its lines are not at the beginning of the file, where its header puts them"


def _ends(found: bytes, wanted: bytes) -> str:
    if found.rstrip(b"\r\n") != wanted.rstrip(b"\r\n"):
        return ""
    return " (they differ in their line end: " + " and ".join(_end(line) for line in (found, wanted)) + ")"


def _end(line: bytes) -> str:
    return "CRLF" if line.endswith(b"\r\n") else "LF" if line.endswith(b"\n") else "no newline"


def rejected(patch: FilePatch, hunk: PatchHunk | None, why: str) -> Conflict:
    name = patch.new.shown
    what = (
        f"hunk {hunk.number} (line {hunk.line} of the diff) does not apply to {name!r}"
        if hunk
        else f"{name!r}"
    )
    return Conflict(
        f"{what}: {why}; nothing was changed",
        "read the file again and make the diff anew",
        data={"path": patch.new.shown, "hunk": hunk.number if hunk else None, "line": (hunk or patch).line, "why": why},
    )  # fmt: skip


PLAIN = 0o644


class HasMode(Protocol):
    @property
    def mode(self) -> int: ...


def with_modes(applied: Applied, found: Mapping[MountPath, HasMode | None]) -> Iterator[FileChange]:
    """The same changes with the bits each file ends with, where they are not simply kept."""
    modes = {path: file.mode for path, file in found.items() if file is not None}
    wanted: dict[MountPath, int | None] = {}
    for one in applied.patched:
        wanted[one.path] = _wanted(one, wanted.get(one.path) or modes.get(one.origin))
    for file in applied.files:
        after = None if file.after is None else wanted[file.path]
        known = after is not None or file.after is None
        yield replace(file, before_mode=modes.get(file.path) if known else None, after_mode=after)


def _wanted(one: Patched, base: int | None) -> int | None:
    """None keeps what is there, or what a new file gets."""
    if one.op == "delete" or (one.op in ("create", "modify") and not one.mode):
        return None
    if one.op == "create":
        return 0o755 if one.mode & 0o100 else None
    base = PLAIN if base is None else base
    if not one.mode:
        return base
    return base | (base & 0o444) >> 2 if one.mode & 0o100 else base & ~0o111
