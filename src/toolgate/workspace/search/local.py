"""The engine in process: for single files and small trees, where starting a program would cost most of the time.

A search that was small and quick is made again where its caller stands, for a minute: it is over before a thread would
have begun. Nothing that could wait for another machine or another process is touched there: all of it was found on one
local file system. What has grown since is given up before it takes long, and searched as any other.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary

from toolgate.core.conceal import Secrets, conceal
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field
from toolgate.workspace import inotify
from toolgate.workspace.confine import held, open_with_status
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.content import (
    MARKS,
    Matcher,
    TooMuch,
    Unequal,
    matcher,
    search_concealed,
    search_content,
)
from toolgate.workspace.search.query import FoundMatches, Match, SearchQuery, Tell, top
from toolgate.workspace.search.selection import Memory, Start, TooMany, Walk, opened

MAX_FILES = 200
MAX_NAMES = 1000
MAX_BYTES = 4 << 20
MAX_HITS = 10_000
"""Beyond any of these, rg is faster. Four megabytes may have two million lines that match."""
MAX_WORK = 20_000_000
"""Bytes times steps: a search in process cannot be ended, rg can."""


@dataclass(slots=True)
class Local:
    matcher: Matcher
    query: SearchQuery
    deadline: float
    room: int = MAX_BYTES
    names: int = MAX_NAMES
    files: int = MAX_FILES
    hits: int = MAX_HITS
    work: int = MAX_WORK
    tell: Tell | None = None
    memory: Memory | None = None
    secrets: Secrets | None = None
    hidden: int = 0
    matches: list[Match] = field(default_factory=list)
    total: int = 0
    searched: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def search(self, starts: Sequence[Start]) -> FoundMatches:
        """Everything, or TooMuch; Unequal where a file's content is not plainly the same to rg."""
        for start in starts:
            if start.directory:
                self._tree(start)
            else:
                self._file(
                    start.handle, os.fstat(start.handle), start.shown(start.relative), start.hard_links
                )
        return FoundMatches(
            self.matches, self.total, self.searched,
            self.query.cuts(self.total, len(self.matches), len(self.counts)),
            len(self.counts), top(self.counts.items(), self.query.top_files), self.hidden,
        )  # fmt: skip

    def _tree(self, start: Start) -> None:
        walk = Walk(start.selection, self.names, memory=self.memory)
        found: list[str] = []
        try:
            for entry in walk.entries(start.handle, start.relative):
                if self.secrets is None or not self.secrets.spans(os.fsencode(entry.relative)):
                    found.append(entry.relative)
                if len(found) > self.files:  # before any of them is read
                    raise TooMuch
        except TooMany:
            raise TooMuch from None
        for relative in found:
            try:
                handle, status = open_with_status(start.root, relative, relative, follow=False)
            except CallError:
                continue
            with held(handle), suppress(OSError):
                self._file(handle, status, start.shown(relative), start.hard_links)
        self.names = walk.room

    def _file(self, handle: int, status: os.stat_result, shown: str, hard_links: bool) -> None:
        if not may_search(status, hard_links):
            return
        if status.st_size > self.room or time.monotonic() > self.deadline:
            raise TooMuch
        data = read_up_to(handle, self.room, status.st_size)
        self.room -= len(data)
        if not self.matcher.within(len(data), self.work):
            raise TooMuch
        self.work -= len(data) * self.matcher.weight
        self.searched += 1
        room = self.query.max_matches - len(self.matches)
        found, total = self._found(data, shown, room)
        self.hits -= total
        self.matches += found
        if found and self.tell is not None:
            self.tell(found)
        self.total += total
        if total:
            self.counts[shown] = total

    def _found(self, data: bytes, shown: str, room: int) -> tuple[list[Match], int]:
        known = conceal(data, self.secrets)
        if not known.marks:
            return search_content(self.matcher, data, shown, self.query, room, most=self.hits)
        if data.startswith(MARKS) or not self.matcher.agrees(known.text):
            raise Unequal
        if b"\0" in data:
            return [], 0  # binary
        seen = search_concealed(self.matcher, known, shown, self.query, room, self.hits)
        self.hidden += seen.hidden
        return seen.matches, seen.total


def may_search(status: os.stat_result, hard_links: bool) -> bool:
    """Regular files; one with several names may be a file outside."""
    return stat.S_ISREG(status.st_mode) and (hard_links or status.st_nlink == 1)


def read_up_to(handle: int, room: int, size: int) -> bytes:
    data = os.read(handle, size + 1)
    if len(data) == size:
        return data
    parts: list[bytes] = [data]
    left = room - len(data)
    while left >= 0 and (chunk := os.read(handle, 1 << 20)):
        parts.append(chunk)
        left -= len(chunk)
    if left < 0:
        raise TooMuch
    return b"".join(parts)


def join(parts: Iterable[FoundMatches], query: SearchQuery) -> FoundMatches:
    """The answers of several mounts as one."""
    matches: list[Match] = []
    total = searched = 0
    truncated = False
    counts: list[tuple[str, int]] = []
    files = 0
    hidden: int | None = 0
    for part in parts:
        matches += part.matches
        total += part.total_matches
        searched += part.files_searched
        truncated = truncated or part.truncated
        counts += part.top
        files += part.files_matched
        hidden = None if hidden is None or part.hidden is None else hidden + part.hidden
    matches = matches[: query.max_matches]
    cut = truncated or query.cuts(total, len(matches), files)
    return FoundMatches(matches, total, searched, cut, files, top(counts, query.top_files), hidden)


FILES, NAMES, BYTES, HITS, WORK = 32, 128, 128 << 10, 256, 400_000
"""Beyond any of these it is given up: a text may have a line that matches in every second byte."""
QUICK = 0.003
"""Seconds: what a commit may take on the event loop as well."""
_FOR = 60.0
_MOST = 64
Where = tuple[tuple[MountPath, ...], str, tuple[str, ...]]
"""Which files are searched: paths, the glob they match, those they do not."""
_known: WeakKeyDictionary[Mounts, dict[Where, tuple[float, Memory]]] = WeakKeyDictionary()
"""What was small, until when that is believed, and what is in its directories."""
_UNKNOWN: tuple[float, Memory] = (0.0, {})


def search_small(mounts: Mounts, query: SearchQuery, where: Where) -> FoundMatches | None:
    """None where it is not known to be small, or is not so any more."""
    known = _known.get(mounts, {})
    now = time.monotonic()
    until, memory = known.get(where, _UNKNOWN)
    matched = matcher(query.pattern, query.case_sensitive) if until > now else None
    if matched is None:
        return None
    try:
        with opened(mounts, *where) as groups:
            limits = (now + QUICK, BYTES, NAMES, FILES, HITS, WORK)
            return Local(matched, query, *limits, memory=memory, secrets=mounts.secrets()).search(groups[0])
    except (Unequal, TooMuch):
        known.pop(where, None)
        return None


def remember(mounts: Mounts, where: Where, starts: Sequence[Start]) -> None:
    """After a quick search, while its starts are open."""
    if not all(_small(start) for start in starts):
        return
    known = _known.setdefault(mounts, {})
    if len(known) >= _MOST:
        known.clear()
    known[where] = (time.monotonic() + _FOR, {})


def _small(start: Start) -> bool:
    """Also: whether nothing that is searched lies on another file system, or on one that others serve."""
    if not inotify.available() or not inotify.local(start.handle):
        return False
    top = os.fstat(start.handle)
    if not start.directory:
        return top.st_size <= BYTES
    walk = Walk(start.selection, NAMES, directories=True)
    files = size = 0
    try:
        for entry in walk.entries(start.handle, start.relative):
            status = entry.status()
            if status.st_dev != top.st_dev:
                return False
            if not entry.directory:
                files += 1
                size += status.st_size
    except (OSError, TooMany):
        return False
    return files <= FILES and size <= BYTES
