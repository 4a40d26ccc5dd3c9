"""The two tools of the tour, made with nothing but the public API. A toolset of your own looks just like this."""

from __future__ import annotations

from toolgate import Change, FileChange, MountPath, Tool, tool
from toolgate.core.errors import NotFound
from toolgate.gate.flow import Services
from toolgate.workspace.files import WorkspaceFiles


def toolset(services: Services) -> list[Tool]:
    files = services.files
    assert isinstance(files, WorkspaceFiles)

    @tool("notes.read", reads=["project"])
    async def read(path: MountPath) -> str:
        """Read a note."""
        content = await files.read(path)
        if content is None:
            raise NotFound(f"there is no note {path.shown!r}", "check the path")
        return content.decode()

    async def plan(path: MountPath, text: str) -> Change:
        """Add a line to a note."""
        before = await files.read(path, to_change=True)
        after = (before or b"") + text.encode() + b"\n"
        return Change((FileChange(path, before, after),), f"added a line to {path.shown}")

    @tool("notes.append", reads=["project"], writes=["project"], plan=plan)
    async def append(change: Change) -> str:
        await files.apply(change)
        return change.summary

    return [read, append]
