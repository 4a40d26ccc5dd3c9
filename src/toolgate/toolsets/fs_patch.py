"""`fs.patch`: a unified diff of one or many files, applied as a whole or not at all.

The plan works out every file's new content in memory; what is shown, approved and written is that one Change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, Field

from toolgate.core.change import Change, content_hash
from toolgate.core.errors import InvalidArgs, TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.ports import Files
from toolgate.core.tool import Tool, tool
from toolgate.workspace.patch import Applied, FilePatch, Patched, apply, parse, parse_one

MAX_FILES = 1000


@dataclass(frozen=True)
class PatchedFile:
    path: str
    op: str
    """modify, create, delete, rename or copy."""
    origin: str | None
    """Where a renamed or copied file comes from."""
    before_hash: str | None
    after_hash: str | None
    size: int | None
    hunks: int
    offsets: list[int]
    """For each hunk, how many lines from its place it was found; 0 is exact."""


@dataclass(frozen=True)
class PatchResult:
    files: list[PatchedFile]
    hunks: int
    moved: int
    """How many hunks were found elsewhere than their headers say."""
    new_hash: str | None
    """The new content's hash, where the diff is of one file."""


@dataclass(frozen=True)
class PatchChange(Change):
    report: PatchResult | None = None
    """What the result will tell. It says nothing that the files do not, so it is no part of the identity."""


def toolset(files: Files) -> list[Tool]:
    async def plan(
        diff: Annotated[str, Field(description="A unified diff of one or many files, git's or plain.")] = "",
        path: Annotated[
            MountPath | None, Field(description="The only file; its diff may then be hunks alone.")
        ] = None,
        diff_text: str = "",
    ) -> Change:
        """Apply a unified diff: all of it, or nothing. Context must match exactly; hunks may have moved."""
        patches = _parsed(_text(diff, diff_text), path)
        paths = dict.fromkeys(found for patch in patches for found in patch.paths)
        contents = {found: await files.read(found, to_change=True) for found in paths}
        applied = await asyncio.to_thread(apply, patches, contents.__getitem__)
        return PatchChange(applied.files, _summary(applied), report=_report(applied, contents))

    @tool(
        "fs.patch", reads=["project"], writes=["project"], plan=plan, risk="medium", paths_of=_paths_of,
        summarize=_in_words,
    )  # fmt: skip
    async def patch(change: PatchChange) -> PatchResult:
        assert change.report is not None
        await files.apply(change)
        return change.report

    return [patch]


def _text(diff: str, diff_text: str) -> str:
    if bool(diff) == bool(diff_text):
        raise InvalidArgs(
            "give the diff once, as `diff` or as `diff_text`", "pass {diff} or {path, diff_text}"
        )
    return diff or diff_text


def _paths_of(args: BaseModel) -> Iterable[MountPath]:
    """Both sides of renames and copies too: policy judges what is read as well as what is written."""
    given: Any = args
    for patch in _parsed(_text(given.diff, given.diff_text), given.path):
        yield from patch.paths


@lru_cache(maxsize=4)  # a call is parsed for policy, for its plan, and again after the answer
def _parsed(text: str, path: MountPath | None) -> tuple[FilePatch, ...]:
    patches = (parse_one(path, text),) if path is not None else parse(text)
    if len(patches) > MAX_FILES:
        raise TooLarge(f"the diff has {len(patches):,} files, the limit is {MAX_FILES:,}", "split it")
    for patch in patches:
        if patch.new_mode not in (0, 0o100644):
            raise InvalidArgs(
                f"line {patch.line} of the diff: {patch.new.shown!r} would get mode {patch.new_mode:o}, and "
                "fs.patch changes no modes",
                "leave the mode lines out",
            )
    return patches


def _summary(applied: Applied) -> str:
    names = [one.path.shown for one in applied.patched]
    return f"patch {names[0]}" if len(names) == 1 else f"patch {len(names)} files"


def _report(applied: Applied, contents: dict[MountPath, bytes | None]) -> PatchResult:
    after = {file.path: file.after for file in applied.files}
    last = {one.path: one for one in applied.patched}  # a file may be patched more than once
    told = [_told(one, [other for other in applied.patched if other.path == path], contents, after)
            for path, one in last.items()]  # fmt: skip
    offsets = [offset for one in applied.patched for offset in one.offsets]
    moved = sum(offset != 0 for offset in offsets)
    return PatchResult(told, len(offsets), moved, told[0].after_hash if len(told) == 1 else None)


def _told(
    last: Patched, all_of_it: list[Patched], contents: dict[MountPath, bytes | None], after: dict[MountPath, bytes | None]
) -> PatchedFile:  # fmt: skip
    first = all_of_it[0]
    content = None if last.op == "delete" else after[last.path]
    return PatchedFile(
        str(last.path), first.op if last.op == "modify" else last.op,
        str(first.origin) if first.op in ("rename", "copy") else None,
        None if first.op == "create" else content_hash(contents[first.origin]), content_hash(content),
        None if content is None else len(content),
        sum(one.hunks for one in all_of_it), [offset for one in all_of_it for offset in one.offsets],
    )  # fmt: skip


def _in_words(result: Any) -> str:
    files, hunks = len(result["files"]), result["hunks"]
    return f"{files} file{'s' * (files != 1)}, {hunks} hunk{'s' * (hunks != 1)}"
