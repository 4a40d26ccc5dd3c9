"""The content of the files that a server is started from, as it was approved and as it is.

Looked at when a server is about to be started and when a human is shown what is held, never for a call.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.core.canonical import digest
from toolgate.core.errors import NotAllowed
from toolgate.core.paths import MountPath
from toolgate.features.servers.linked import links
from toolgate.features.servers.runs import CODE_FILES, Run, runs
from toolgate.policy.held import HeldPlace
from toolgate.workspace.placing import Placing

if TYPE_CHECKING:
    from toolgate.features.servers.config import ServerSpec

MOST_FILES, MOST_ENTRIES, MOST_BYTES = 2000, 20_000, 64 << 20
ABSENT = "absent"
"""What stands for the hash of a file that is not there: one that appears is a change."""
_PASSED = frozenset({"__pycache__", "node_modules", ".git", ".venv"})
"""Caches that programs write by themselves, and installed packages: writing them asks, but they are not pinned."""
MOST_NAMED = 3


@dataclass(slots=True)
class FilesSnapshot:
    """Each file by the name that a mount has for it, and its hash."""

    files: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    """Why they cannot be pinned: there are too many."""

    @property
    def digest(self) -> str:
        return digest(dict(sorted(self.files.items()))) if self.files else ""


def held(
    servers: Mapping[str, ServerSpec], root: Path, environ: Mapping[str, str], placing: Placing
) -> tuple[dict[str, FilePins], list[HeldPlace]]:
    """What each server is started from; and all of it, for policy."""
    pins = {name: FilePins(name, runs(spec, root, environ), placing) for name, spec in servers.items()}
    return pins, [place for one in pins.values() for place in one.places]


class FilePins:
    """What one server is started from, as far as it lies in mounts."""

    def __init__(self, name: str, runs: list[Run], placing: Placing) -> None:
        self._found = [(run, names) for run in _followed(runs, placing) if (names := _names(run, placing))]
        self.places = [
            HeldPlace(name_in, f"the server {name}", run.endings)
            for run, names in self._found
            for name_in in names
        ]

    def snapshot(self) -> FilesSnapshot:
        made = FilesSnapshot()
        budget = _Budget()
        try:
            for run, names in self._found:
                if run.pinned:
                    for path, shown in _files(run, str(names[0].shown), budget):
                        if shown not in made.files:
                            made.files[shown] = budget.hashed(path)
        except _TooMuch as error:
            made.problem = str(error)
        return made

    def check(self, pinned: Mapping[str, str] | None) -> str:
        """Why the server may not be started; empty if its files are what was approved."""
        if not self._found:
            return ""
        now = self.snapshot()
        return now.problem or difference(pinned, now.files)

    def approvable(self) -> FilesSnapshot:
        now = self.snapshot()
        if now.problem:
            raise NotAllowed(now.problem, "start it from a directory of its own; see docs/servers.md")
        return now


def difference(pinned: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    there = {path: found for path, found in now.items() if found != ABSENT}
    if pinned is None:
        named = _listed(sorted(there))
        return f"nobody has approved the files that it is started from: {named}" if there else ""
    said = []
    for path in sorted({*pinned, *now}):
        old, new = pinned.get(path, ABSENT), now.get(path, ABSENT)
        if old != new:
            said.append(
                f"{path} {'is new' if old == ABSENT else 'is gone' if new == ABSENT else 'has changed'}"
            )
    return f"{_listed(said)} since it was approved, and toolgate runs it outside the sandbox" if said else ""


def _listed(said: list[str]) -> str:
    more = f" and {len(said) - MOST_NAMED:,} more" if len(said) > MOST_NAMED else ""
    return ", ".join(said[:MOST_NAMED]) + more


def _names(run: Run, placing: Placing) -> list[MountPath]:
    names = placing.names(run.path)
    return names if run.whole else [name for name in names if name.relative != "."]


def _followed(runs: list[Run], placing: Placing) -> list[Run]:
    """With what the links in their directories lead to: a program loads that, too."""
    found = dict.fromkeys(runs)
    waiting = list(runs)
    while waiting and len(found) < MOST_FILES:
        run = waiting.pop()
        if not _names(run, placing) or not os.path.isdir(run.path):
            continue
        for end in links(run.path, _PASSED):
            more = Run(end, run.endings if os.path.isdir(end) else (), run.pinned, whole=False)
            if more not in found:
                found[more] = None
                waiting.append(more)
    return list(found)


class _TooMuch(Exception):
    pass


class _Budget:
    def __init__(self) -> None:
        self._files, self._entries, self._left = 0, 0, MOST_BYTES

    def entry(self, where: str) -> None:
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise _TooMuch(
                f"it may load code from {where}, where more than {MOST_ENTRIES:,} files are: too many to pin"
            )

    def hashed(self, path: str) -> str:
        self._files += 1
        if self._files > MOST_FILES:
            raise _TooMuch(f"it may load more than {MOST_FILES:,} files, {path} among them: too many to pin")
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return ABSENT if isinstance(error, FileNotFoundError | NotADirectoryError) else "unreadable"
        with open(handle, "rb") as stream:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return "not a file"
            self._left -= status.st_size
            if self._left < 0:
                raise _TooMuch(
                    f"the files that it may load, {path} among them, have more than {MOST_BYTES:,} bytes: too many to pin"
                )
            # what makes it a program is part of it
            mode = "x" if status.st_mode & 0o111 else "-"
            return f"{mode}{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _files(run: Run, shown: str, budget: _Budget) -> Iterator[tuple[str, str]]:
    """The file itself; of a directory the code in it."""
    if not os.path.isdir(run.path):
        yield run.path, shown
        return
    endings = run.endings or CODE_FILES
    waiting = [(run.path, "" if shown == "." else f"{shown}/")]
    while waiting:
        directory, before = waiting.pop()
        try:
            entries = _entries(directory)
        except OSError:
            continue
        for entry in entries:
            budget.entry(run.path)
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _PASSED:
                    waiting.append((entry.path, f"{before}{entry.name}/"))
            elif entry.name.lower().endswith(endings) or (not run.endings and _executable(entry)):
                yield entry.path, before + entry.name


def _executable(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        return sorted(islice(entries, MOST_ENTRIES + 1), key=lambda entry: entry.name)
