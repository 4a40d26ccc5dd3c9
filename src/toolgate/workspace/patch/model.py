"""A diff, taken apart: files, and the hunks of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath

Op = Literal["modify", "create", "delete", "rename", "copy"]

REGULAR = frozenset({0o100644, 0o100755, 0o100664})


@dataclass(frozen=True, slots=True)
class PatchHunk:
    """Lines keep their line ends; one without an end is the last of its file."""

    number: int
    """Counted from 1 in its file."""
    line: int
    """Where its header is in the diff."""
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    old: list[bytes]
    new: list[bytes]
    leading: int
    """Context lines before the first change."""
    trailing: int
    """Context lines after the last change."""
    context: int


@dataclass(frozen=True, slots=True)
class FilePatch:
    op: Op
    old: MountPath
    new: MountPath
    """The same as `old`, except for a rename or a copy."""
    hunks: tuple[PatchHunk, ...]
    line: int
    new_mode: int = 0
    """The mode that the diff asks for; 0 where it says nothing."""
    guessed: bool = False
    """A plain diff cannot say whether a file without old lines is created: it is, where there is none."""

    @property
    def paths(self) -> tuple[MountPath, ...]:
        return (self.old,) if self.old == self.new else (self.old, self.new)


def malformed(what: str, line: int, fix: str, hunk: int = 0) -> InvalidArgs:
    where = f"line {line} of the diff" + (f", hunk {hunk}" if hunk else "")
    return InvalidArgs(f"{where}: {what}", fix, data={"line": line, "hunk": hunk or None, "problem": what})


def shown(text: bytes | str, limit: int = 80) -> str:
    """A line as a message quotes it."""
    text = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    text = visible(text.removesuffix("\n"))
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
