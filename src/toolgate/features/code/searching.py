"""`code.search`, and `fs.search` with fewer words: lines that match a regular expression."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NotRequired, TypedDict

from toolgate.core.context import Context
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.features.code.arguments import (
    MOST_MATCHES,
    Around,
    CaseSensitive,
    Excluded,
    FilePattern,
    FilesOnly,
    MaxMatches,
    Numbers,
    Paths,
    Pattern,
    reads_of,
)
from toolgate.features.code.fits import fit_search, group, search_summary
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.concealed import MAX_BYTES
from toolgate.workspace.search.query import EXCLUDED, FoundMatches, Match, SearchQuery, Tell
from toolgate.workspace.search.search import ROOT, search, search_at_once

DEFAULT_EXCLUDED = list(EXCLUDED)
TIMEOUT = 15.0
"""A little more than the search gives itself, so that it can still say what it found."""
_SEARCHES = ThreadPoolExecutor(8, thread_name_prefix="toolgate-search")
"""Of their own: many long searches at once must not keep other tools from their files."""


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


def tools(mounts: Mounts) -> list[Tool]:
    @tool(
        "code.search",
        reads=["project"],
        effects_of=reads_of,
        timeout=TIMEOUT,
        summarize=summary,
        cache_s=60,
        fit=fit_search,
    )
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

    @tool(
        "fs.search",
        reads=["project"],
        effects_of=reads_of,
        timeout=TIMEOUT,
        summarize=summary,
        cache_s=60,
        fit=fit_search,
        also={"path": "root"},
        around="opts",
    )
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


def summary(data: Any) -> str:
    return str(data["summary"])
