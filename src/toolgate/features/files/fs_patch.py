"""`fs.patch`: a unified diff of one or many files, applied as a whole or not at all.

The plan works out every file's new content in memory; what is shown, approved and written is that one Change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.change import Change, content_hash
from toolgate.core.effects import Effects
from toolgate.core.errors import InvalidArgs, TooLarge
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.patch import Applied, Patched, apply, with_modes
from toolgate.workspace.patch.header import FilePatch
from toolgate.workspace.patch.parse import parse, parse_one, recounted

MAX_FILES = 1000
MAX_HUNKS = 10_000
SHORT = 64 << 10
"""Characters that are parsed where we stand; more would hold up everybody else."""
Diff = Annotated[str, Field(description="A unified diff of one or many files, git's or plain.")]
OnlyFile = Annotated[MountPath | None, Field(description="The only file; its diff may then be hunks alone.")]
SameDiff = Annotated[str, Field(description="Another name for `diff`: give one of them.")]


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
    insertions: int
    deletions: int
    """Lines that the diff adds and removes."""


class PatchResult(TypedDict):
    files: list[PatchedFile]
    hunks: int
    moved: int
    """How many hunks were found elsewhere than their headers say."""
    new_hash: str | None
    """The new content's hash, where the diff is of one file."""
    recounted: int
    """How many hunk headers did not fit their lines. They were counted anew, and what was meant applied."""
    newHash: NotRequired[str | None]


class ParsedDiff(NamedTuple):
    patches: tuple[FilePatch, ...]
    recounted: int


def tools(context: FeatureContext) -> list[Tool]:
    files = context.files
    assert files is not None

    async def plan(
        diff: Diff = "",
        path: OnlyFile = None,
        diff_text: SameDiff = "",
    ) -> Change:
        """Apply a unified diff: all of it, or nothing. Context must match exactly; hunks may have moved."""
        text = _text(diff, diff_text)
        parsed = _parsed(text, path) if len(text) <= SHORT else await asyncio.to_thread(_parsed, text, path)
        patches = parsed.patches
        paths = dict.fromkeys(found for patch in patches for found in patch.paths)
        found = {each: await files.take(each) for each in paths}
        contents = {each: None if file is None else file.content for each, file in found.items()}
        applied = await asyncio.to_thread(apply, patches, contents.__getitem__, files.mounts.secrets())
        _one.cache_clear()
        parents = await files.to_make([file.path for file in applied.files if file.after is not None])
        changed = (*parents, *with_modes(applied, found))
        result = _report(applied, contents, parsed.recounted)
        return Change(changed, _summary(applied), report={"result": result})

    @tool(
        "fs.patch", reads=["project"], writes=["project"], plan=plan, risk="medium", paths_of=partial(_paths_of, files),
        effects_of=partial(_effects_of, files), summarize=_in_words, repeats=("diff", "diff_text"), timeout=120.0,
    )  # fmt: skip
    async def patch(change: Change) -> PatchResult:
        await files.apply(change)
        result: PatchResult = change.report["result"]
        if all(files.mounts.kind(file.path.mount).camel_case for file in change.files):
            return result | {"newHash": result["new_hash"]}
        return result

    return [patch]


def _text(diff: str, diff_text: str) -> str:
    if bool(diff) == bool(diff_text):
        raise InvalidArgs(
            "give the diff once, as `diff` or as `diff_text`", "pass {diff} or {path, diff_text}"
        )
    return diff or diff_text


def _paths_of(files: WorkspaceFiles, args: Any) -> Iterable[MountPath]:
    """Both sides of renames and copies too: policy judges what is read as well as what is written."""
    patches = _parsed(_text(args.diff, args.diff_text), args.path).patches
    for patch in patches:
        if patch.op in ("delete", "rename"):
            files.mounts.check_deletes(patch.old, f"line {patch.line} of the diff: ")
    return [path for patch in patches for path in patch.paths]


def _effects_of(files: WorkspaceFiles, args: Mapping[str, Any]) -> Effects:
    """By the mounts that the diff is about; one without a word of its own counts as the project."""
    if not args.get("diff") and not args.get("diff_text"):
        return Effects.of(("project",), ("project",))
    path = MountPath.parse(args["path"]) if args.get("path") else None
    patches = _parsed(_text(args.get("diff", ""), args.get("diff_text", "")), path).patches
    mounts = {found.mount for patch in patches for found in patch.paths}
    words = tuple(files.effect_word(mount) or "project" for mount in mounts)
    return Effects.of(words, words)


def _parsed(text: str, path: MountPath | None) -> ParsedDiff:
    """A call is parsed for policy, for its plan, and again after the answer. Of a long one twenty times its size is kept."""
    return _few(text, path) if len(text) <= SHORT else _one(text, path)


def _read(text: str, path: MountPath | None) -> ParsedDiff:
    """As it is; where that is malformed, with its hunks counted anew. If that is no better, the first mistake is told."""
    try:
        return ParsedDiff((parse_one(path, text),) if path is not None else parse(text), 0)
    except InvalidArgs:
        mended, wrong = recounted(text)
        if not wrong:
            raise
        try:
            return ParsedDiff((parse_one(path, mended),) if path is not None else parse(mended), wrong)
        except InvalidArgs:
            pass
        raise


def _checked(text: str, path: MountPath | None) -> ParsedDiff:
    hunks = text.count("\n@@ ")  # no other line of a diff begins so: counted before anything is made of them
    if hunks > MAX_HUNKS:
        raise TooLarge(f"the diff has {hunks:,} hunks, the limit is {MAX_HUNKS:,}", "split it")
    parsed = _read(text, path)
    patches = parsed.patches
    if len(patches) > MAX_FILES:
        raise TooLarge(f"the diff has {len(patches):,} files, the limit is {MAX_FILES:,}", "split it")
    return parsed


_few, _one = lru_cache(maxsize=4)(_checked), lru_cache(maxsize=1)(_checked)


def _summary(applied: Applied) -> str:
    names = [one.path.shown for one in applied.patched]
    return f"patch {names[0]}" if len(names) == 1 else f"patch {len(names)} files"


def _report(applied: Applied, contents: dict[MountPath, bytes | None], anew: int) -> PatchResult:
    after = {file.path: file.after for file in applied.files}
    last = {one.path: one for one in applied.patched}  # a file may be patched more than once
    told = [_told(one, [other for other in applied.patched if other.path == path], contents, after)
            for path, one in last.items()]  # fmt: skip
    offsets = [offset for one in applied.patched for offset in one.offsets]
    moved = sum(offset != 0 for offset in offsets)
    new_hash = told[0].after_hash if len(told) == 1 else None
    return PatchResult(files=told, hunks=len(offsets), moved=moved, new_hash=new_hash, recounted=anew)


def _told(
    last: Patched, all_of_it: list[Patched], contents: dict[MountPath, bytes | None], after: dict[MountPath, bytes | None]
) -> PatchedFile:  # fmt: skip
    first = all_of_it[0]
    content = None if last.op == "delete" else after[last.path]
    return PatchedFile(
        last.path.shown, first.op if last.op == "modify" else last.op,
        first.origin.shown if first.op in ("rename", "copy") else None,
        None if first.op == "create" else content_hash(contents[first.origin]), content_hash(content),
        None if content is None else len(content),
        sum(one.hunks for one in all_of_it), [offset for one in all_of_it for offset in one.offsets],
        sum(one.insertions for one in all_of_it), sum(one.deletions for one in all_of_it),
    )  # fmt: skip


def _in_words(result: Any) -> str:
    files, hunks = len(result["files"]), result["hunks"]
    anew = f", {result['recounted']} of them recounted" if result["recounted"] else ""
    return f"{files} file{'s' * (files != 1)}, {hunks} hunk{'s' * (hunks != 1)}{anew}"
