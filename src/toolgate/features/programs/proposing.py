"""Proposals: what a program changed in its view of the project, as one Change.

Each file starts from what it was when the program started. If anybody else has changed it since, that is a conflict:
the program never saw what it would overwrite.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import re2

from toolgate.core.change import Change, FileChange
from toolgate.core.errors import BlockedPath, CallError, Conflict
from toolgate.core.paths import MountPath
from toolgate.features.programs.viewing import ProjectSeen
from toolgate.sandbox.job import Altered
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.reading import identity, status_of

# Names that a program leaves by the way: what git ignores, and caches of usual tools. No change of the
# project. Patterns are read from the project's `.gitignore` files as git reads them, and compiled for an
# engine without backtracking: an agent may have written them. What is left out is never written, so a wrong
# pattern loses a cache.

CACHES = frozenset(
    {
        "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".ipynb_checkpoints",
        ".coverage", ".cache", ".parcel-cache", ".turbo", ".nyc_output", ".eslintcache", ".stylelintcache", ".DS_Store",
        ".gradle", ".sass-cache",
    }
)  # fmt: skip
"""Files and directories that tools make for themselves, by their name at any depth."""
_ENDINGS = (".pyc", ".pyo")
MAX_FILE = 256 << 10
MAX_PATTERNS = 2000
LONGEST = 1000

Read = Callable[[MountPath], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class IgnorePattern:
    found: re2._Regexp
    takes_back: bool
    only_directories: bool


@dataclass(slots=True)
class Ignored:
    """What the patterns of the project say, as they were before the program ran."""

    read: Read
    _known: dict[str, list[IgnorePattern]] = field(default_factory=dict)

    async def why(self, path: str, is_directory: bool) -> tuple[str, str]:
        """`a cache` or `ignored by git`, and the name that is; nothing twice where it is neither. What is in an ignored
        directory is ignored with it."""
        parts = path.split("/")
        for count, part in enumerate(parts, 1):
            name = "/".join(parts[:count])
            if part in CACHES or part.endswith(_ENDINGS):
                return "a cache", name
            if await self._ignores(parts[:count], is_directory or count < len(parts)):
                return "ignored by git", name
        return "", ""

    async def _ignores(self, parts: list[str], is_directory: bool) -> bool:
        """The last pattern that matches decides; those that are nearer to the file come after the others."""
        ignored = False
        for depth in range(len(parts)):
            relative = "/".join(parts[depth:])
            for pattern in await self._patterns("/".join(parts[:depth])):
                if (is_directory or not pattern.only_directories) and pattern.found.fullmatch(relative):
                    ignored = not pattern.takes_back
        return ignored

    async def _patterns(self, directory: str) -> list[IgnorePattern]:
        if directory not in self._known:
            place = f"{directory}/.gitignore" if directory else ".gitignore"
            content = await self.read(MountPath(f"project:{place}"))
            lines = (content or b"")[:MAX_FILE].decode("utf-8", "replace").split("\n")[:MAX_PATTERNS]
            found = (compiled(line.rstrip("\r")) for line in lines)
            self._known[directory] = [one for one in found if one is not None]
        return self._known[directory]


def compiled(line: str) -> IgnorePattern | None:
    """One line of a `.gitignore`; None where it says nothing."""
    text = line
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#") or len(text) > LONGEST:
        return None
    takes_back = text.startswith("!")
    text = text[1:] if takes_back else text
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text or _unclosed(text):
        return None
    try:
        found = re2.compile(("" if anchored else "(?:.*/)?") + _translated(text))
    except re2.error:
        return None
    return IgnorePattern(found, takes_back, only_directories)


def _translated(glob: str) -> str:
    made, at = "", 0
    while at < len(glob):
        char = glob[at]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            made, at = made + "(?:.*/)?", at + 3
        elif glob[at:] == "**" and (at == 0 or glob[at - 1] == "/"):
            made, at = made + ".+", at + 2
        elif char == "*":
            made, at = made + "[^/]*", at + 1
        elif char == "?":
            made, at = made + "[^/]", at + 1
        elif char == "[" and (end := glob.find("]", at + 2)) > 0:
            made, at = made + _one_of(glob[at + 1 : end]), end + 1
        else:
            at += char == "\\" and at + 1 < len(glob)
            made, at = made + re2.escape(glob[at]), at + 1
    return made


def _unclosed(glob: str) -> bool:
    """A set without an end matches nothing."""
    at = glob.rfind("[")
    return at >= 0 and glob[max(at - 1, 0)] != "\\" and glob.find("]", at + 2) < 0


def _one_of(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    inner = inner.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"[{'^/' if negated else ''}{inner}]"


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
