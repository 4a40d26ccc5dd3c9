"""Files that a program left in its work directory, put where its caller can read them: one directory for each call."""

from __future__ import annotations

from collections.abc import Sequence

from toolgate.core.change import Change, FileChange, content_hash
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.features.programs.results import Kept
from toolgate.features.programs.sweeping import sweep
from toolgate.sandbox.job import Left
from toolgate.workspace.files import WorkspaceFiles

WHERE = "exec"
"""The directory of the scratch mount that all of them are in."""


async def save(files: WorkspaceFiles, call: str, left: Sequence[Left]) -> tuple[list[Kept], list[str]]:
    """What was saved, and in words what was not and why. By the rules of the mount, as for every write."""
    kept: list[Kept] = []
    refused: list[str] = []
    for each in left:
        try:
            path = MountPath.parse(f"scratch:{WHERE}/{call}/{each.path}")
            _judge(files, path, each)
            parents = await files.to_make([path])
            made = FileChange(path, None, each.content, after_mode=0o644)
            await files.apply(Change((*parents, made)))
        except CallError as error:
            refused.append(f"{each.path} was not saved: {error.message}")
            continue
        digest = content_hash(each.content) or ""
        kept.append(Kept(name=each.path, path=str(path), size=len(each.content), hash=digest))
    await files.run(lambda: sweep(files.mounts, WHERE, call))
    return kept, refused


def _judge(files: WorkspaceFiles, path: MountPath, each: Left) -> None:
    rules = files.mounts.rules(path)
    refusal = rules.refuse(path, written=True)
    if refusal is not None:
        raise CallError(refusal.reason)
    held = rules.held.find(path)
    if held is not None:  # nobody is asked about what a program leaves
        raise CallError(f"toolgate runs it outside the sandbox, as {held.by}")
    if len(each.content) > rules.max_bytes:
        raise CallError(f"it has {len(each.content):,} bytes, the limit is {rules.max_bytes:,}")
