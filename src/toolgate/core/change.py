"""What a file-writing tool is about to do, worked out before anything is touched; and several such changes as one.

Preview, consent, execution, reconciliation and undo all use this one value, so the diff a human saw is computed
from the very bytes that are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.finding import Finding
    from toolgate.core.paths import MountPath


def content_hash(content: bytes | None) -> str | None:
    """`sha256:<hex>` of a file's bytes; None where there is no file."""
    return None if content is None else "sha256:" + hashlib.sha256(content).hexdigest()


Kind = Literal["file", "directory"]
DIRECTORY = "directory"
"""What stands for a hash where there is a directory."""


@dataclass(frozen=True)
class FileChange:
    """One file: the content it starts from and the content it ends with; None means there is no file.

    A directory is b"" where it is there. One that should go goes only if it is empty by then; one that should be
    there may be there already.
    """

    path: MountPath
    before: bytes | None
    after: bytes | None
    before_mode: int | None = None
    """Permission bits, where they must be known to be given back; None keeps what is there."""
    after_mode: int | None = None
    kind: Kind = "file"

    @cached_property
    def before_hash(self) -> str | None:
        return self._hash(self.before)

    @cached_property
    def after_hash(self) -> str | None:
        return self._hash(self.after)

    @property
    def op(self) -> str:
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "modify"

    @property
    def makes_directory(self) -> bool:
        """One without bits of its own, which may as well be there already."""
        return (
            self.kind == "directory"
            and self.before is None
            and self.after is not None
            and self.after_mode is None
        )

    def inverse(self) -> FileChange:
        return FileChange(self.path, self.after, self.before, self.after_mode, self.before_mode, self.kind)

    def _hash(self, content: bytes | None) -> str | None:
        return DIRECTORY if self.kind == "directory" and content is not None else content_hash(content)


@dataclass(frozen=True)
class Change:
    files: tuple[FileChange, ...]
    summary: str = ""
    undoes: tuple[int, ...] = ()
    """The events that this change takes back, if it does."""
    report: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What the plan found out that the result tells; it identifies nothing and is not kept."""
    findings: tuple[Finding, ...] = ()
    """What the content scan found in it. Set by the gate alone, whatever a plan says; part of the call's digest."""
    unkept: str = ""
    """Why it cannot be undone, where its images do not fit. Set by the gate alone; part of the call's digest."""
    already: set[MountPath] = field(default_factory=set, compare=False, repr=False)
    """Directories that it should make and that were there when it was carried out; whoever carries it out says so."""
    guarded: set[str] = field(default_factory=set, compare=False, repr=False)
    """The mounts whose guard let it pass; whoever checks it says so."""

    @cached_property
    def manifest(self) -> list[Mapping[str, Any]]:
        """What the ledger holds of it: paths, hashes and sizes, never content."""
        return [_entry(file) for file in self.files]

    @cached_property
    def identity(self) -> list[Mapping[str, Any]]:
        """What the digest holds of it. Which directories must be made on the way to what it writes depends on what
        others have made meanwhile, and their names are part of the paths: they make it no other Change."""
        into = {parent for file in self.files if file.after is not None for parent in file.path.parents}
        return [
            entry
            for file, entry in zip(self.files, self.manifest, strict=True)
            if not (file.makes_directory and file.path in into)
        ]

    @property
    def made(self) -> list[Mapping[str, Any]]:
        """What it has really changed, once it is carried out."""
        if not self.already:
            return self.manifest
        return [
            entry
            for file, entry in zip(self.files, self.manifest, strict=True)
            if not (file.makes_directory and file.path in self.already)
        ]

    @cached_property
    def paths(self) -> tuple[MountPath, ...]:
        """What policy judges: all but the directories on the way to a file, whose names are part of its path."""
        above = {parent for file in self.files for parent in file.path.parents}
        return tuple(file.path for file in self.files if file.kind == "file" or file.path not in above)

    def inverse(self) -> Change:
        files = tuple(file.inverse() for file in reversed(self.files))
        return Change(files, f"undo: {self.summary}" if self.summary else "undo")


def _entry(file: FileChange) -> Mapping[str, Any]:
    """Modes only where they are known, so that what needs none reads as it always did."""
    entry: dict[str, Any] = {
        "path": str(file.path),
        "op": file.op,
        "before": file.before_hash,
        "after": file.after_hash,
        "size": len(file.after) if file.after is not None else None,
    }
    modes = {"before_mode": file.before_mode, "after_mode": file.after_mode}
    return entry | {name: mode for name, mode in modes.items() if mode is not None}


Entry = Mapping[str, Any]
Place = tuple[str, bool]
"""A path, and whether it is the directory of that name: a file may have become one, or the other way round."""


class Gap(Exception):
    """The manifest `earlier` left a file in one state, and `later` found it in another."""

    def __init__(self, path: str, earlier: int, later: int) -> None:
        super().__init__(path, earlier, later)
        self.path, self.earlier, self.later = path, earlier, later


def place_of(entry: Entry) -> Place:
    return entry["path"], DIRECTORY in (entry["before"], entry["after"])


def combine(manifests: Sequence[Iterable[Entry]]) -> list[Entry]:
    """Several recorded changes as one, oldest first: per file the content before the first of them and the content after
    the last. What ends as it began is left out.

    Works on manifests alone, so that no content in between is needed. A file that one call left in another state than
    the next one found it in was changed by somebody else meanwhile; then there is no honest way to make them one.
    """
    made: dict[Place, dict[str, Any]] = {}
    last: dict[Place, int] = {}
    for number, manifest in enumerate(manifests):
        for entry in manifest:
            place = place_of(entry)
            known = made.get(place)
            if known is not None and not place[1] and known["after"] != entry["before"]:
                raise Gap(entry["path"], last[place], number)
            made[place] = _joined(known, entry) if known is not None else dict(entry)
            last[place] = number
    return [_with_op(entry) for entry in made.values() if not _idle(entry)]


def _joined(first: Entry, then: Entry) -> dict[str, Any]:
    """Bits that a change does not know it has kept, so those that are known beside it hold for it too."""
    entry = {**first, "after": then["after"], "size": then["size"]}
    if "before_mode" not in first and first["before"] is not None and first["after"] is not None:
        _put(entry, "before_mode", then.get("before_mode"))
    if then["after"] is None or then["before"] is None:
        _put(entry, "after_mode", then.get("after_mode"))
    else:
        _put(entry, "after_mode", then.get("after_mode", first.get("after_mode")))
    return entry


def _put(entry: dict[str, Any], name: str, mode: int | None) -> None:
    entry.pop(name, None)
    if mode is not None:
        entry[name] = mode


def _idle(entry: Entry) -> bool:
    if entry["before"] != entry["after"]:
        return False
    return entry["before"] is None or entry.get("before_mode") == entry.get("after_mode")


def _with_op(entry: dict[str, Any]) -> Entry:
    op = "create" if entry["before"] is None else "delete" if entry["after"] is None else "modify"
    return entry | {"op": op}
