"""Output files: what a program left in its work directory, put where its caller can read it, one directory for each call.

They are kept until there are too many: then those of the oldest calls go.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress

from toolgate.core.change import Change, FileChange, content_hash
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.features.programs.results import OutputFile
from toolgate.sandbox.job import Left
from toolgate.workspace.confine import held
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.mounts import Mounts

WHERE = "exec"
"""The directory of the scratch mount that all of them are in."""
OUTPUT_BUDGET = 256 << 20
"""Bytes, of all calls together."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def save(files: WorkspaceFiles, call: str, left: Sequence[Left]) -> tuple[list[OutputFile], list[str]]:
    """What was saved, and in words what was not and why. By the rules of the mount, as for every write."""
    kept: list[OutputFile] = []
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
        kept.append(OutputFile(name=each.path, path=str(path), size=len(each.content), hash=digest))
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


def sweep(mounts: Mounts, where: str, newest: str, budget: int = OUTPUT_BUDGET) -> int:
    """Remove the directories of the oldest calls, but not the newest one's, until the rest fits; how many went.

    The ids of calls begin with the time, so their names say which is older. Everything is done by handles, and no link
    is followed.
    """
    with suppress(CallError, OSError), mounts.parent(MountPath.parse(f"scratch:{where}/x")) as (above, _):
        calls = sorted(name for name in os.listdir(above) if name.startswith("c_") and name != newest)
        sizes = {name: _size(above, name) for name in [*calls, newest]}
        total, gone = sum(sizes.values()), 0
        for name in calls:
            if total <= budget:
                break
            shutil.rmtree(name, ignore_errors=True, dir_fd=above)
            total -= sizes[name]
            gone += 1
        return gone
    return 0


def _size(above: int, name: str) -> int:
    with suppress(OSError), held(os.open(name, _DIRECTORY, dir_fd=above)) as handle:
        return sum(
            os.stat(file, dir_fd=place, follow_symlinks=False).st_blocks * 512
            for _, _, files, place in os.fwalk(dir_fd=handle)
            for file in files
        )
    return 0
