"""A parsed diff applied to contents: every file of it, or a Conflict that says which hunk and why.

Renames and copies start from the contents before the diff, whatever the order of its files, as `git apply` does;
other patches of one file follow each other.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolgate.core.change import FileChange
from toolgate.core.conceal import Secrets, conceal
from toolgate.core.errors import Conflict
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.find import Region, Work, expected_line, find
from toolgate.workspace.patch.model import FilePatch, Hunk, Op, shown

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
    work: Work = field(default_factory=Work)

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
    patch: FilePatch, before: bytes, work: Work, secrets: Secrets | None
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


def _why(image: list[bytes], hunk: Hunk) -> str:
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


def rejected(patch: FilePatch, hunk: Hunk | None, why: str) -> Conflict:
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
