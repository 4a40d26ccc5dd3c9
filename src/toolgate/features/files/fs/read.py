"""`fs.read` and `fs.hash`: what a file says, whole or by lines, and what it is known by."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from threading import Event
from typing import Annotated, Any, NotRequired, TypedDict

from toolgate.core.annotations import BeforeValidator, Field
from toolgate.core.change import content_hash
from toolgate.core.conceal import Secrets, conceal_text
from toolgate.core.context import Context
from toolgate.core.effects import Effects
from toolgate.core.errors import InvalidArgs, NotFound, NotText, TimedOut, TooLarge
from toolgate.core.evidence import spoil
from toolgate.core.fitting import RESERVE, head, leading, shorten, size
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.feature import load
from toolgate.workspace.confine import held
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.reading import Steady, note_file, open_to_read, read_steady, unsteady
from toolgate.workspace.text import Range, canonical_text, decode, lines_of


def by_mount(files: WorkspaceFiles, *paths: str, writes: bool) -> Callable[[Mapping[str, Any]], Effects]:
    """Effects from the arguments of these names. A mount whose kind has no word of its own counts as the project."""

    def effects_of(args: Mapping[str, Any]) -> Effects:
        mounts = (str(args[name]).partition(":")[0] for name in paths)
        words = frozenset(files.effect_word(mount) or "project" for mount in mounts)
        return _effects(words, writes)

    return effects_of


@lru_cache(maxsize=32)
def _effects(words: frozenset[str], writes: bool) -> Effects:
    return Effects.of(tuple(words), tuple(words) if writes else ())


# A result within its budget: the start stays, and the result says how to go on.


def fit_read(data: dict[str, Any], room: int) -> dict[str, Any]:
    data, room = dict(data), room - RESERVE
    if "content" in data:
        text, count = _lines(data["content"], room - size({**data, "content": ""}))
        told = _next(1, count, data["lines"], data["content"], text)
        return {**data, "content": text, "truncated": True, "next": told}
    slices = data["range_slices"]
    shorten(data, "range_slices", room)
    kept = data["range_slices"]
    first = slices[len(kept)]
    start, end = first["start"], first["end"]
    text, count = _lines(first["content"], room - size(data) - 80)
    if text:
        data["range_slices"] = [*kept, {**first, "end": start + max(count, 1) - 1, "content": text}]
    return {**data, "truncated": True, "next": _next(start, count, end, first["content"], text)}


def _lines(content: str, room: int) -> tuple[str, int]:
    """The first lines, as many as fit, and how many; of one that does not fit by itself the start, which counts as none."""
    lines = content.split("\n")
    kept = leading(lines, room)
    if kept:
        return "".join(line + "\n" for line in lines[:kept]), kept
    return head(lines[0], room), 0


def _next(start: int, count: int, end: int | None, content: str, text: str) -> str:
    """How to go on after `count` lines. A line that is too long never fits: it is not asked for again."""
    told = ""
    if count == 0 and text:
        more = len(content.partition("\n")[0]) - len(text)
        told = f"line {start} has {more:,} more characters: code.search shows the part around a match"
        count = 1
        if end is not None and start >= end:
            return told
        told += "; "
    start += count
    return f"{told}go on with ranges [[{start}, {start + 499 if end is None else max(min(end, start + 499), start)}]]"


KEEP = 4 << 20
"""Bytes of lines that one call may ask for."""
SCAN = 4 << 30
"""Bytes that are looked through for the lines of a large file."""
_CHUNK = 1 << 20


def _pairs(value: Any) -> Any:
    """One range for a list of them, and `{start, end}`, as the slices of a result are told."""
    if isinstance(value, dict) or (isinstance(value, list) and len(value) == 2 and type(value[0]) is int):
        value = [value]
    if not isinstance(value, list):
        return value
    return [
        [each["start"], each["end"]] if isinstance(each, dict) and each.keys() == {"start", "end"} else each
        for each in value
    ]


_Line = Annotated[int, Field(ge=1)]
Ranges = Annotated[
    Annotated[list[tuple[_Line, _Line]], Field(min_length=1, max_length=100), BeforeValidator(_pairs)] | None,
    Field(description="Lines to read, as `[[first, last], …]`: counted from 1, both included."),
]
InSection = Annotated[
    str, Field(max_length=80, description="Only this section of a garden file, by its anchor: `concerns v1`.")
]


class Slice(TypedDict):
    start: int
    end: int
    content: str


class Content(TypedDict):
    path: str
    encoding: str
    size: int
    lines: int | None
    hash: NotRequired[str]
    content: NotRequired[str]
    range_slices: NotRequired[list[Slice]]
    stale: NotRequired[list[dict[str, Any]]]
    """Lines of a garden's file that cite what is gone or changed."""
    truncated: NotRequired[bool]
    """Only where it was shortened to its budget; then `next` says how to go on."""
    next: NotRequired[str]


class Hashes(TypedDict):
    path: str
    hash: str
    raw_hash: str
    canonical: bool
    size: int


Remarks = Callable[[MountPath, str], Awaitable[list[dict[str, Any]]]]
"""What a persona that reads a file should know of its lines."""
_MOST_REMARKS = 50


def tools(files: WorkspaceFiles, remarks: Remarks) -> list[Tool]:
    @tool(
        "fs.read", reads=["project"], effects_of=by_mount(files, "path", writes=False), summarize=_in_words, cache_s=300,
        fit=fit_read, also={"section_anchor": "anchor"},
    )  # fmt: skip
    async def read(
        context: Context, path: MountPath, ranges: Ranges = None, section_anchor: InSection = ""
    ) -> Content:
        """Read the contents of a text file, whole or some `ranges` of its lines."""
        if section_anchor:
            found = await _read_section(files, path, section_anchor, bool(ranges))
        else:
            wanted = _checked(ranges) if ranges else []
            found = await files.run(lambda: _read(files, path, wanted))
        shown = [(one["start"], one["end"]) for one in found.get("range_slices", ())] or [(1, sys.maxsize)]
        told = [
            one
            for one in await remarks(path, context.persona)
            if any(start <= one["line"] <= end for start, end in shown)
        ]
        if told:
            found["stale"] = told[:_MOST_REMARKS]
        return found

    @tool(
        "fs.hash",
        reads=["project"],
        effects_of=by_mount(files, "path", writes=False),
        also={"section_anchor": "anchor"},
    )
    async def hash_file(path: MountPath, section_anchor: InSection = "") -> Hashes:
        """Hash a file: `hash` of its canonical text (LF, no trailing white space, final newline), `raw_hash` of its bytes."""
        if section_anchor:
            raw = (await _section(files, path, section_anchor))[2].encode()
            whole = content_hash(raw) or ""
            known = canonical_hash(raw, path.shown) or whole
            return Hashes(path=path.shown, hash=known, raw_hash=whole, canonical=True, size=len(raw))
        stop = Event()
        try:
            return await files.run(lambda: _hash(files, path, stop))
        finally:
            stop.set()  # nobody waits any more: the thread must not go on for gigabytes

    return [read, hash_file]


async def _section(files: WorkspaceFiles, path: MountPath, anchor: str) -> tuple[bytes, int, str]:
    """A file, and a section of it with its first line, where the kind of its mount knows sections."""
    kind = files.mounts.kind(path.mount)
    if not kind.section:
        told = f"{path.shown!r} is in no garden, and has no sections"
        raise InvalidArgs(told, "leave `section_anchor` out")
    raw = await files.read(path)
    if raw is None:
        raise missing(path)
    return raw, *load(kind.section)(raw, anchor)


async def _read_section(files: WorkspaceFiles, path: MountPath, anchor: str, ranged: bool) -> Content:
    if ranged:
        raise InvalidArgs("this asks for a section and for ranges of lines", "leave one of them out")
    raw, start, text = await _section(files, path, anchor)
    known = conceal_text(text, files.mounts.secrets())
    part = Slice(start=start, end=start + max(_count(text), 1) - 1, content=known)
    return Content(
        path=path.shown, encoding="utf-8", size=len(raw), lines=_count(raw.decode()), range_slices=[part],
        hash=canonical_hash(text.encode(), path.shown) or "",
    )  # fmt: skip


def _in_words(data: Any) -> str:
    parts = len(data.get("range_slices", ()))
    return f"Read {f'{parts} parts of ' if parts else ''}{data['path']} ({data['size']:,} bytes)"


def _checked(ranges: list[Range]) -> list[Range]:
    for start, end in ranges:
        if end < start:
            raise InvalidArgs(f"the range {start}-{end} ends before it begins", "write [first, last]")
    return ranges


def _read(files: WorkspaceFiles, path: MountPath, ranges: list[Range]) -> Content:
    limit = files.mounts.rules(path).max_bytes
    with held(open_to_read(files.mounts, path)) as handle:
        size = os.fstat(handle).st_size
        if size > limit and ranges:
            spoil()  # proving it would take as long as reading it
            return _far(handle, path, ranges, size, files.mounts.secrets())
        try:
            raw, status = read_steady(handle, path.shown, limit)
            note_file(files.mounts, path, status, raw)
        except TooLarge as error:
            raise TooLarge(error.message, "read it by `ranges` of lines") from None
    text = decode(raw, path.shown)
    found = Content(path=path.shown, encoding=text.encoding, size=len(raw), lines=_count(text.text))
    found["hash"] = content_hash(raw) or ""
    known = conceal_text(text.text, files.mounts.secrets())  # a range may begin within a secret
    if ranges:
        found["range_slices"] = _slices(known, ranges, path.shown)
    else:
        found["content"] = known
    return found


def _slices(text: str, ranges: list[Range], shown: str) -> list[Slice]:
    """Lines end at `\\n` only, as every tool here counts them."""
    lines = [part + "\n" for part in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    total = _count(text)
    first = min(start for start, _ in ranges)
    if first > max(total, 1):
        counted = f"{total:,} line{'s' * (total != 1)}"
        raise InvalidArgs(f"{shown!r} has {counted}, there is no line {first:,}", "ask for lines that it has")
    return [
        Slice(start=start, end=min(end, total), content="".join(lines[start - 1 : end]))
        for start, end in ranges
    ]


def _far(handle: int, path: MountPath, ranges: list[Range], size: int, secrets: Secrets | None) -> Content:
    """Lines of a file that is too large to be read whole; how many lines it has is not known then."""
    with Steady(handle) as steady:
        parts = lines_of(handle, ranges, path.shown, keep=KEEP, scan=SCAN, secrets=secrets)
    if steady.moved and os.fstat(handle).st_size <= size:  # a log that grows keeps the lines it has
        raise unsteady(path.shown)
    encoding = decode(b"".join(parts), path.shown).encoding
    slices = [
        Slice(start=start, end=end, content=part.decode(encoding, "replace"))
        for (start, end), part in zip(ranges, parts, strict=True)
    ]
    return Content(path=path.shown, encoding=encoding, size=size, lines=None, range_slices=slices)


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _hash(files: WorkspaceFiles, path: MountPath, stop: Event) -> Hashes:
    with held(open_to_read(files.mounts, path)) as handle:
        digest, size, kept = hashlib.sha256(), 0, bytearray()
        limit = files.mounts.rules(path).max_bytes
        with Steady(handle) as steady:
            while chunk := os.read(handle, _CHUNK):
                if stop.is_set():
                    raise TimedOut(f"{path.shown!r} was not hashed in time", "allow more time")
                digest.update(chunk)
                size += len(chunk)
                if size <= limit:
                    kept += chunk
        if steady.moved:
            raise unsteady(path.shown)
    raw = "sha256:" + digest.hexdigest()
    canonical = canonical_hash(bytes(kept), path.shown) if size <= limit else None
    return Hashes(
        path=path.shown, hash=canonical or raw, raw_hash=raw, canonical=canonical is not None, size=size
    )


def canonical_hash(raw: bytes, shown: str) -> str | None:
    """None for what is no text."""
    try:
        return content_hash(canonical_text(decode(raw, shown).text).encode())
    except (NotText, UnicodeEncodeError):
        return None


def missing(path: MountPath) -> NotFound:
    return NotFound(f"there is no {path.shown!r}", "check the path; `fs.list` shows what is there")
