"""What a program changed in its view of the project, as one Change.

Each file starts from what it was when the program started. If anybody else has changed it since, that is a conflict:
the program never saw what it would overwrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolgate.core.change import Change, FileChange
from toolgate.core.errors import BlockedPath, CallError, Conflict
from toolgate.core.paths import MountPath
from toolgate.features.programs.ignoring import Ignored
from toolgate.features.programs.viewing import ProjectSeen
from toolgate.sandbox.job import Altered
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.look import identity, status_of

SAID = 5
"""Names of what is left out that are told."""
Key = tuple[MountPath, Literal["file", "directory"]]


@dataclass(slots=True)
class Proposed:
    change: Change
    left_out: list[str] = field(default_factory=list)
    """What cannot be taken over, in words."""


async def proposed(files: WorkspaceFiles, seen: ProjectSeen, delta: Sequence[Altered]) -> Proposed:
    plan = _Plan(files, seen)
    ignored = _LeftBehind(files)
    for altered in delta:
        if not await ignored.takes(altered, seen):
            await plan.take(altered)
    plan.left_out += ignored.told()
    changed = sorted((part for part in plan.parts.values() if not _same(part)), key=_order)
    change = Change(tuple(changed), _summary(changed))
    _judge(files, change)
    await files.run(lambda: _check(files, seen, changed))
    return Proposed(change, plan.left_out)


class _LeftBehind:
    """What no proposal holds: what git ignores, and caches. Other names of them may be refused for all that is proposed."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files, self._ignored = files, Ignored(self._read)
        self._found: dict[str, dict[str, None]] = {}

    async def takes(self, altered: Altered, seen: ProjectSeen) -> bool:
        is_directory = altered.path in seen.directories or altered.kind == "directory"
        why, name = await self._ignored.why(altered.path, is_directory)
        if why:
            self._found.setdefault(why, {})[name] = None
        return bool(why)

    async def _read(self, path: MountPath) -> bytes | None:
        try:
            return await self._files.read(path)
        except CallError:  # one that no tool may read says nothing
            return None

    def told(self) -> list[str]:
        return [_several(list(names), why) for why, names in self._found.items()]


def _several(names: Sequence[str], why: str) -> str:
    shown = ", ".join(names[:SAID]) + (f" and {len(names) - SAID} more" if len(names) > SAID else "")
    return f"not taken over, because it is {why}: {shown}"


class _Plan:
    def __init__(self, files: WorkspaceFiles, seen: ProjectSeen) -> None:
        self._files, self._seen = files, seen
        self.parts: dict[Key, FileChange] = {}
        self.left_out: list[str] = []

    async def take(self, altered: Altered) -> None:
        path = MountPath.parse(f"project:{altered.path}")
        if path.relative != altered.path:
            raise BlockedPath(f"{altered.path!r} is no plain name of a file", "give files other names")
        if altered.kind == "other":
            self.left_out.append(f"{altered.path} is a link or a special file: it is not taken over")
        elif altered.kind == "gone":
            await self._gone(path)
        elif altered.kind == "directory":
            self._directory(path)
        else:
            await self._file(path, altered)

    async def _gone(self, path: MountPath) -> None:
        """All that was there: a directory with what is in it, also what the program could not see."""
        name = path.relative
        if name in self._seen.directories:
            for part in await self._files.take_tree(path):
                self.parts[(part.path, part.kind)] = part
        elif name in self._seen.files:
            found = await self._files.take(path)
            if found is None:
                raise _changed(path)
            self.parts[(path, "file")] = FileChange(path, found.content, None, before_mode=found.mode)
        elif name in self._seen.links:
            self.left_out.append(f"{name} is a link: it is not removed")

    def _directory(self, path: MountPath) -> None:
        """One that was there stays, also if it was emptied or made again; its bits are not taken over."""
        if self.parts.pop((path, "directory"), None) is None and path.relative not in self._seen.directories:
            self.parts[(path, "directory")] = FileChange(path, None, b"", kind="directory")

    async def _file(self, path: MountPath, altered: Altered) -> None:
        name = path.relative
        if name in self._seen.directories and (path, "directory") not in self.parts:
            await self._gone(path)
        if name in self._seen.links:
            raise BlockedPath(f"{name!r} is a link, and a file is to stand in its place", "remove it by hand")
        mode = None if altered.mode is None else altered.mode & 0o777
        if name not in self._seen.files:
            runs = mode if mode is not None and mode & 0o111 else None
            self.parts[(path, "file")] = FileChange(path, None, altered.content, after_mode=runs)
            return
        found = await self._files.take(path)
        if found is None:
            raise _changed(path)
        other = None if mode in (None, found.mode) else mode
        before = None if other is None else found.mode
        self.parts[(path, "file")] = FileChange(path, found.content, altered.content, before, other)


def _judge(files: WorkspaceFiles, change: Change) -> None:
    """What no write may touch is named now; policy says the same again when the change is planned."""
    for path in change.paths:
        refusal = files.mounts.rules(path).refuse(path, written=True)
        if refusal is not None:
            raise BlockedPath(refusal.reason, "leave it alone in the program")


def _check(files: WorkspaceFiles, seen: ProjectSeen, changed: Sequence[FileChange]) -> None:
    """After the contents were read: what has the status of the start has the content of the start."""
    for part in changed:
        status, name = status_of(files.mounts, part.path), part.path.relative
        known = name in seen.files or name in seen.directories
        if part.before is None:
            moved = status is not None and not known
        elif part.kind == "directory":
            moved = name not in seen.directories
        else:
            moved = name not in seen.files or identity(status) != seen.files[name]
        if moved:
            raise _changed(part.path)


def _order(part: FileChange) -> tuple[str, str]:
    return part.path, part.kind


def _same(file: FileChange) -> bool:
    return file.before == file.after and file.before_mode == file.after_mode


def _changed(path: MountPath) -> Conflict:
    return Conflict(
        f"{path.shown!r} was changed by somebody else while the program ran",
        "run the program again",
        data={"path": path.shown},
    )


def _summary(changed: Sequence[FileChange]) -> str:
    names = [part.path.shown for part in changed if part.kind == "file"]
    return (
        f"apply {names[0]}" if len(names) == 1 else f"apply {len(names) or len(changed)} changes of a program"
    )
