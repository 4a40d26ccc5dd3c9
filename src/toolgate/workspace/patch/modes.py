"""Permission bits of patched files: a diff knows only whether a file can be run, the rest is as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from toolgate.core.change import FileChange
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.apply import Applied, Patched

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
