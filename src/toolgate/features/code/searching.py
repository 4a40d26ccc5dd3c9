"""`code.search`, and `fs.search` with fewer words: lines that match a regular expression."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.fitting import RESERVE, shorten, size
from toolgate.core.paths import MountPath, MountPaths
from toolgate.core.rendering import counted
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.code.reading import reads_of, said
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.concealed import MAX_BYTES
from toolgate.workspace.search.query import EXCLUDED, FoundMatches, Match, SearchQuery, Tell
from toolgate.workspace.search.search import ROOT, search, search_at_once

DEFAULT_EXCLUDED = list(EXCLUDED)
TIMEOUT = 15.0
"""A little more than the search gives itself, so that it can still say what it found."""
_SEARCHES = ThreadPoolExecutor(8, thread_name_prefix="toolgate-search")
"""Of their own: many long searches at once must not keep other tools from their files."""
MOST_MATCHES = 1000
"""Matches that one search shows."""
Pattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        description="Regular expression within one line (rust-regex: no look-around, no back-references).",
    ),
]
Paths = Annotated[
    MountPaths,
    Field(max_length=100, description="Files and directories to search; none means the whole project."),
]
FilePattern = Annotated[
    str,
    Field(
        max_length=512,
        description="Glob of files to search: a name at any depth (`*.py`), or with `/` a path from the mount.",
    ),
]
Excluded = Annotated[
    list[Annotated[str, Field(max_length=512)]],
    Field(max_length=100, description="Globs of files and directories to skip, written like `file_pattern`."),
]
Around = Annotated[int, Field(ge=0, le=20, description="Lines to show before and after each match.")]
CaseSensitive = Annotated[bool, Field(description="Whether upper and lower case differ.")]
MaxMatches = Annotated[int, Field(ge=1, le=MOST_MATCHES, description="Matching lines to show at most.")]
FilesOnly = Annotated[
    bool,
    Field(description="Only which files match and in how many lines, most first, at most `max_matches`."),
]
Numbers = Annotated[bool, Field(description="Whether each match has `line` and `column`.")]


class _Stopped(Exception):
    """The call was cancelled, or its time was up."""


class FoundLine(TypedDict):
    file: str
    line: NotRequired[int]
    column: NotRequired[int]
    matched_text: str
    line_text: str
    context_before: list[str]
    context_after: list[str]


class TopFile(TypedDict):
    file: str
    count: int


class SearchResult(TypedDict):
    summary: str
    pattern: str
    top_files: list[TopFile]
    matches_by_file: dict[str, list[int]]
    matches: list[FoundLine]
    total_matches: int
    files_matched: int
    files_searched: int
    truncated: bool
    note: NotRequired[str]
    next: NotRequired[str]


def tools(context: FeatureContext) -> list[Tool]:
    assert context.files is not None
    mounts = context.files.mounts

    options: dict[str, Any] = {
        "reads": ["project"], "effects_of": reads_of, "timeout": TIMEOUT, "summarize": summary, "cache_s": 60, "fit": fit_search
    }  # fmt: skip

    @tool("code.search", **options)
    async def search_code(
        ctx: Context,
        pattern: Pattern,
        paths: Paths = [],  # noqa: B006 - pydantic copies it
        file_pattern: FilePattern = "",
        exclude_patterns: Excluded = DEFAULT_EXCLUDED,
        context_lines: Around = 2,
        case_sensitive: CaseSensitive = False,
        max_matches: MaxMatches = 100,
        include_line_numbers: Numbers = True,
        files_only: FilesOnly = False,
    ) -> SearchResult:
        """Search files for a regular expression, line by line. `paths` default to the whole project."""
        query = _query(pattern, case_sensitive, max_matches, context_lines, files_only)
        tell = _telling(ctx, query, include_line_numbers)
        found = await _found(mounts, ctx, query, paths, file_pattern, exclude_patterns, tell)
        return _result(query, found, include_line_numbers)

    @tool("fs.search", also={"path": "root"}, around="opts", **options)
    async def search_files(
        ctx: Context,
        pattern: Pattern,
        path: MountPath = ROOT,
        file_pattern: FilePattern = "",
        case_sensitive: CaseSensitive = False,
        max_matches: MaxMatches = 100,
        context_lines: Around = 0,
        files_only: FilesOnly = False,
    ) -> SearchResult:
        """Search the contents of files for a regular expression, as `rg -n` does: where something is used or defined."""
        query = _query(pattern, case_sensitive, max_matches, context_lines, files_only)
        tell = _telling(ctx, query, numbers=True)
        found = await _found(mounts, ctx, query, (path,), file_pattern, EXCLUDED, tell)
        return _result(query, found, numbers=True)

    return [search_code, search_files]


def _query(pattern: str, case: bool, most: int, around: int, files_only: bool) -> SearchQuery:
    return SearchQuery(pattern, case, 0, 0, most) if files_only else SearchQuery(pattern, case, most, around)


async def _found(
    mounts: Mounts,
    ctx: Context,
    query: SearchQuery,
    paths: Sequence[MountPath],
    files: str,
    excluded: Sequence[str],
    tell: Tell,
) -> FoundMatches:
    found = search_at_once(mounts, query, paths, files, excluded)
    if found is None:
        stopped = threading.Event()

        def telling(said: str) -> None:
            if stopped.is_set():
                raise _Stopped
            ctx.progress(0.0, said)

        work = partial(search, mounts, query, paths, files, excluded, progress=telling, tell=tell)
        around = contextvars.copy_context()
        try:
            found = await asyncio.get_running_loop().run_in_executor(_SEARCHES, around.run, work)
        finally:
            stopped.set()  # if nobody waits for it any more, it ends with its rg
    tell(found.matches)  # those that were known only at the end: of foreign encodings, or of a small search
    return found


def _telling(ctx: Context, query: SearchQuery, numbers: bool) -> Tell:
    """Each match once, and no more than the result may have."""
    told: set[tuple[str, int]] = set()

    def tell(matches: Sequence[Match]) -> None:
        for match in matches if ctx.heard else ():
            place = (match.file, match.line)
            if place not in told and len(told) < query.max_matches:
                told.add(place)
                ctx.part(_line(match, numbers))

    return tell


def _result(query: SearchQuery, found: FoundMatches, numbers: bool) -> SearchResult:
    matches = [_line(match, numbers) for match in found.matches]
    result: SearchResult = {
        "summary": "",
        "pattern": query.pattern,
        "top_files": [{"file": file, "count": count} for file, count in found.top],
        "matches_by_file": group(matches),
        "matches": matches,
        "total_matches": found.total_matches,
        "files_matched": found.files_matched,
        "files_searched": found.files_searched,
        "truncated": found.truncated,
    }
    result["summary"] = search_summary(result, files_only=not query.max_matches)
    if found.hidden != 0:
        result["note"] = _hidden(found.hidden)
    if found.truncated:
        result["next"] = _next(query, found)
    return result


def _hidden(count: int | None) -> str:
    if count is None:
        return f"matches that overlap a secret, and files over {MAX_BYTES >> 20} MB, are not shown"
    return (
        "1 match overlaps a secret and is not shown"
        if count == 1
        else f"{count:,} matches overlap a secret and are not shown"
    )


def _next(query: SearchQuery, found: FoundMatches) -> str:
    files_only = not query.max_matches
    if found.total_matches <= MOST_MATCHES and not (found.matches or files_only):
        return "the lines that match are too long to be shown: `code.read` shows where they begin"
    if len(found.top) == found.files_matched if files_only else found.total_matches <= len(found.matches):
        return "the time was up: give `paths` or a `file_pattern` to search the rest"
    most = f", such as {found.top[0][0]!r}" if found.top else ""
    return f"raise `max_matches` (at most {MOST_MATCHES:,}), or narrow the search to a path{most}"


def _line(match: Match, numbers: bool) -> FoundLine:
    line: FoundLine = {
        "file": match.file,
        "line": match.line,
        "column": match.column,
        "matched_text": match.matched_text,
        "line_text": match.line_text,
        "context_before": list(match.context_before),
        "context_after": list(match.context_after),
    }
    if not numbers:
        del line["line"], line["column"]
    return line


def group(matches: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The matching lines that are shown, by file; without line numbers their places among the matches, from 1."""
    found: dict[str, list[int]] = {}
    for place, match in enumerate(matches, 1):
        found.setdefault(match["file"], []).append(match.get("line", place))
    return found


def search_summary(data: Mapping[str, Any], files_only: bool = False) -> str:
    total, files, shown = data["total_matches"], data["files_matched"], len(data["matches"])
    least = "at least " if data["truncated"] and shown == total else ""
    some = f", the first {shown:,} shown" if shown < total else ""
    if files_only:
        shown = len(data["top_files"])
        least = "at least " if data["truncated"] and shown == files else ""
        some = f", {shown:,} with the most shown" if shown < files else ""
    return f"Found {least}{counted(total, 'match', 'matches')} in {counted(files, 'file')}{some}"


def fit_search(data: dict[str, Any], room: int) -> dict[str, Any]:
    """Context goes first, then matches from the end; of files alone those with the fewest."""
    data, room = dict(data), room - RESERVE
    if not data["matches"]:
        dropped = shorten(data, "top_files", room)
        return said(data, f"{dropped:,} more files do not fit the budget: give `paths` or a `file_pattern`")
    matches = [{**match, "context_before": [], "context_after": []} for match in data["matches"]]
    left = room - size({**data, "matches": [], "matches_by_file": {}})
    kept, seen = 0, ""
    for match in matches:
        left -= size(match) + 12 + (size(match["file"]) + 4 if match["file"] != seen else 0)
        if left < 0:
            break
        kept, seen = kept + 1, match["file"]
    told = "context lines were left out to fit the budget: ask for fewer matches"
    if kept < len(matches):
        told = (
            f"{len(matches) - kept:,} of the matches do not fit the budget: give `paths` or a `file_pattern`"
        )
        data["truncated"] = True
    data["matches"] = matches[:kept]
    data["matches_by_file"] = group(data["matches"])
    data["summary"] = search_summary(data)
    return said(data, told)


def summary(data: Any) -> str:
    return str(data["summary"])
