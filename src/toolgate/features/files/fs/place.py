"""`fs.ensure_dir`, `fs.move`, `fs.delete`: where things are, and whether they are there at all."""

from __future__ import annotations

from typing import Any, TypedDict

from toolgate.core.change import Change, FileChange
from toolgate.core.errors import BlockedPath, Conflict, InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.features.files.fs.arguments import NewPath, by_mount
from toolgate.features.files.fs.read import missing
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.tree import refuse_unread, walk_tree


class Ensured(TypedDict):
    path: str
    created: bool


class Moved(TypedDict):
    path: str
    new_path: str
    files: int


class Deleted(TypedDict):
    path: str
    deleted: list[str]
    count: int


def tools(files: WorkspaceFiles) -> list[Tool]:
    async def plan_ensure(path: MountPath) -> Change:
        """Make a directory and those that lead to it, if they are not there."""
        made = await files.to_make([MountPath(f"{path}/x")]) if path.relative != "." else []
        if not made and path.relative != ".":  # there by now: still the same call, whoever made it
            made = [FileChange(path, None, b"", kind="directory")]
        return Change(tuple(made), f"make {path.shown}", report={"path": path.shown})

    async def ensure(change: Change) -> Ensured:
        await files.apply(change)
        return Ensured(path=change.report["path"], created=bool(change.made))

    async def plan_move(path: MountPath, new_path: NewPath) -> Change:
        """Move or rename a file or a directory. Nothing is overwritten."""
        _check_goal(path, new_path)
        if await files.look_at(new_path) is not None:
            raise Conflict(f"there is something at {new_path.shown!r} already", "choose another path")
        gone = await _taken(files, path)
        come = [_elsewhere(file, path, new_path) for file in gone]
        parents = await files.to_make([new_path])
        report = {"path": path.shown, "new_path": new_path.shown}
        return Change((*gone, *parents, *come), f"move {path.shown} to {new_path.shown}", report=report)

    async def move(change: Change) -> Moved:
        await _still_whole(files, change)
        await files.apply(change)
        count = sum(file.kind == "file" and file.after is not None for file in change.files)
        return Moved(path=change.report["path"], new_path=change.report["new_path"], files=count)

    async def plan_delete(path: MountPath) -> Change:
        """Delete a file or a directory. What was there is kept, and `toolgate undo` brings it back."""
        gone = await _taken(files, path)
        return Change(tuple(gone), f"delete {path.shown}", report={"path": path.shown})

    async def delete(change: Change) -> Deleted:
        await _still_whole(files, change)
        await files.apply(change)
        names = [file.path.shown for file in change.files if file.kind == "file"]
        return Deleted(path=change.report["path"], deleted=names, count=len(names))

    project: dict[str, Any] = {"reads": ["project"], "writes": ["project"]}
    one, two = by_mount(files, "path", writes=True), by_mount(files, "path", "new_path", writes=True)
    return [
        tool("fs.ensure_dir", plan=plan_ensure, effects_of=one, **project)(ensure),
        tool(
            "fs.move",
            plan=plan_move,
            effects_of=two,
            phase="collaborate",
            risk="high",
            timeout=120.0,
            **project,
        )(move),
        tool("fs.delete", plan=plan_delete, effects_of=one, risk="high", timeout=120.0, **project)(delete),
    ]


async def _taken(files: WorkspaceFiles, path: MountPath) -> list[FileChange]:
    """All that is at a path, as the parts of a Change that removes it."""
    if path.relative == ".":
        raise BlockedPath(f"the mount {path.mount} itself stays where it is", "name something in it")
    files.mounts.check_deletes(path)
    kind = await files.look_at(path)
    if kind is None:
        raise missing(path)
    if kind == "directory":
        return await files.take_tree(path)
    found = await files.take(path)
    if found is None:
        raise missing(path)
    return [FileChange(path, found.content, None, before_mode=found.mode)]


def _check_goal(path: MountPath, new_path: MountPath) -> None:
    if new_path == path or path in new_path.parents or new_path.relative == ".":
        raise InvalidArgs(f"{path.shown!r} cannot be moved to {new_path.shown!r}", "choose another path")


def _elsewhere(file: FileChange, base: MountPath, new_base: MountPath) -> FileChange:
    path = MountPath.parse(str(new_base) + str(file.path)[len(base) :])
    return FileChange(path, None, file.before, after_mode=file.before_mode, kind=file.kind)


async def _still_whole(files: WorkspaceFiles, change: Change) -> None:
    """A directory must hold what a human saw that it holds; files are compared by their hashes anyway."""
    tops = [file for file in change.files if file.kind == "directory" and file.after is None]
    if not tops:
        return
    known = {str(file.path) for file in change.files if file.after is None}

    def work() -> None:
        for entry in walk_tree(files.mounts, tops[0].path, everything=True, unread=refuse_unread):
            if str(entry.path) not in known:
                raise Conflict(f"{entry.path.shown!r} has come since the change was planned", "plan again")

    await files.run(work)
