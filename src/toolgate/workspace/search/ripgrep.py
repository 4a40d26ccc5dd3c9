"""The engine for large trees: rg counts, many files at once; what is shown is then taken from the first files.

rg walks by path, so a directory swapped for a link under its feet could lead it out. Therefore the walk only
yields names and counts; every line that is shown comes from a handle that the mount's confinement opened. And the walk
is made behind a fence, or it is known afterwards that no name was swapped while it went on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple

from toolgate.core.conceal import Secrets
from toolgate.core.errors import CallError, InvalidArgs, TimedOut
from toolgate.core.records import dataclass, field
from toolgate.workspace.confine import held, open_with_status
from toolgate.workspace.search.concealed import Judge, MatchCounts, RgReport, unasserted
from toolgate.workspace.search.content import Matcher, TooMuch, Unequal, search_content
from toolgate.workspace.search.local import MAX_WORK, may_search, read_up_to
from toolgate.workspace.search.names import Names
from toolgate.workspace.search.program import run, run_quietly
from toolgate.workspace.search.query import FoundMatches, Match, SearchQuery, Tell, top
from toolgate.workspace.search.rgglobs import exactly, options, plain_options
from toolgate.workspace.search.selection import Start, path_order

_COMMON = (
    "--no-config",
    "--color=never",
    "--no-mmap",
    "--no-messages",
    "--engine=default",
    "--encoding=auto",
)
_WALK = ("--no-ignore", "--hidden", "--no-follow", "--count", "--null", "--stats")
_LIST = ("--no-ignore", "--hidden", "--no-follow", "--files", "--null")
MAX_BYTES = 64 << 20
"""The largest file that is read here; a larger one is left to rg."""
Progress = Callable[[str], None]


class _CountedFiles(NamedTuple):
    files: dict[str, int]
    searched: int
    complete: bool


@dataclass(slots=True)
class Ripgrep:
    query: SearchQuery
    matcher: Matcher | None
    deadline: float
    progress: Progress | None = None
    names: Names | None = None
    """Of the mount that all starts are in."""
    tell: Tell | None = None
    secrets: Secrets | None = None
    _ahead: dict[str, list[Match]] = field(default_factory=dict)
    """Read while rg goes on: as long as all that is found can be shown, it will be."""
    _counted: int = 0
    _asked: str | None = None
    """What rg looks for instead of the pattern, where that would miss files that have to be looked at."""

    def search(self, starts: Sequence[Start]) -> FoundMatches:
        """All starts are of one mount."""
        trees = [start for start in starts if start.directory]
        files = [start for start in starts if not start.directory]
        counts: dict[str, int] = {}
        searched, complete = 0, True
        for group in (trees, files):
            if group:
                counted = self._count(group) if self.secrets is None else self._judged(group, self.secrets)
                counts |= counted.files
                searched += counted.searched
                complete = complete and counted.complete
        if not complete and not counts:
            raise TimedOut(
                f"searching {searched:,} files found nothing before the time was up",
                "name fewer paths, or give a file_pattern",
            )
        return self._show(starts[0], counts, searched, complete)

    def _judged(self, starts: list[Start], secrets: Secrets) -> _CountedFiles:
        """What rg counts in files without secrets; the others are searched without what is hidden in them."""
        pattern = self.query.pattern
        counted = self._count(starts)
        names, complete = dict.fromkeys(counted.files), counted.complete
        self._asked = unasserted(pattern, self.query.case_sensitive)
        if self._asked != pattern:
            more = self._count(starts)
            names |= dict.fromkeys(more.files)
            complete = complete and more.complete
        self._asked = pattern
        tick = partial(self._say, "looking for secrets")
        judge = Judge(secrets, self.query, self.matcher, self.deadline, partial(self._read, starts[0]), tick)
        judged = judge.judge(starts[0], sorted(names, key=path_order))
        self._ahead |= judged.matches
        files = {name: counted.files[name] for name in judged.clean if name in counted.files}
        searched = counted.searched if starts[0].selection.usual else self._named(starts, secrets)
        return _CountedFiles(files | judged.counts, searched, complete and judged.complete)

    def _named(self, starts: list[Start], secrets: Secrets) -> int:
        """How many files the caller's own globs choose, but for those with a secret in their names."""
        said: list[bytes] = []
        args = [*_COMMON, *_LIST, *_choice(starts), "--", *_where(starts)]
        below = [start.handle if start.directory else start.root.handle for start in starts]
        run_quietly(args, starts[0].root.handle, self.deadline, said.append, partial(self._say, ""), below)
        return sum(not secrets.spans(name) for name in b"".join(said).split(b"\0") if name)

    def _read(self, start: Start, report: RgReport) -> bool:
        """Lets rg say which lines of open files match, and whether that is all."""
        args = [*_COMMON, *report.options, *self._pattern(), "--", *report.paths]
        tick = partial(self._say, "reading the lines that match")
        return run(args, start.root.handle, report.handles, self.deadline, report.take, tick)

    def _count(self, starts: list[Start]) -> _CountedFiles:
        names = self.names
        shut = names.shut() if names is not None else None
        if names is None or shut is None:
            return self._run(starts, _choice(starts), fence=True)
        begun, mark = time.monotonic(), names.heard
        try:
            counted = self._run(starts, plain_options(starts[0].selection, shut), fence=False)
        except InvalidArgs:  # of the pattern, and then again; or of a path that rg takes for something else
            counted = self._run(starts, _choice(starts), fence=True)
            names.watch.close()
            return counted
        same = names.shut() == shut
        if same and not names.touched(mark, counted.files):
            return counted
        if not same:
            names.watch.close()  # a name has come that rg was not told to leave out; where one comes, more may
        now = time.monotonic()
        if not counted.complete or self.deadline - now < 2 * (now - begun):
            # too late to search again: what was read here is what it is, what rg counted may be something else
            exact = {name: len(found) for name, found in self._ahead.items() if name in counted.files}
            return _CountedFiles(exact, len(exact), complete=False)
        self._ahead.clear()
        self._counted = 0
        return self._run(starts, _choice(starts), fence=True)

    def _run(self, starts: list[Start], choice: Sequence[str], *, fence: bool) -> _CountedFiles:
        """Behind the fence, unless it will be known that no name was swapped meanwhile."""
        begun = time.monotonic()
        heard = MatchCounts()
        counts: dict[str, int] = {}

        def take(chunk: bytes) -> None:
            for name, count in heard.take(chunk):
                start = _reached(starts, name)
                if start is not None and (
                    self._look_ahead(start, name, count) or _is_there(start, name, confined=fence)
                ):
                    counts[name] = count
                    self._counted += count

        def tick() -> None:
            spent = time.monotonic() - begun
            so_far = f", files that match so far: {len(counts):,}" if self.secrets is None else ""
            self._say(f"searching for {spent:.1f} s{so_far}")

        args = [*_COMMON, *_WALK, *self._pattern(), *choice, "--", *_where(starts)]
        below = [start.handle if start.directory else start.root.handle for start in starts] if fence else []
        complete = run_quietly(args, starts[0].root.handle, self.deadline, take, tick, below)
        return _CountedFiles(counts, heard.searched if complete else len(counts), complete)

    def _look_ahead(self, start: Start, name: str, count: int) -> bool:
        """Whether it was read: then it is there, and may be searched."""
        if self.secrets is not None or self._counted + count > self.query.max_matches:
            return False
        try:
            handle, status = open_with_status(start.root, name, name, follow=False)
        except (CallError, OSError):
            return False
        with held(handle), suppress(OSError, Unequal, TooMuch):
            if may_search(status, start.hard_links):
                self._ahead[name] = self._here(handle, status, start, name, count)
                if self.tell is not None and self._ahead[name]:
                    self.tell(self._ahead[name])
                return True
        return False

    def _pattern(self) -> list[str]:
        case = "--case-sensitive" if self.query.case_sensitive else "--ignore-case"
        return [case, "-e", self.query.pattern if self._asked is None else self._asked]

    def _show(self, start: Start, counts: dict[str, int], searched: int, complete: bool) -> FoundMatches:
        total = sum(counts.values())
        matches: list[Match] = []
        ordered = sorted(counts, key=path_order)
        most = self.query.max_matches
        at = 0
        while at < len(ordered) and len(matches) < most:
            batch: list[str] = []
            room = most - len(matches)
            while at < len(ordered) and room > 0:
                batch.append(ordered[at])
                room -= counts[ordered[at]]
                at += 1
            found, whole = self._lines(start, {name: counts[name] for name in batch})
            complete = complete and whole
            for name in batch:
                seen = found.get(name, [])
                if (
                    whole and len(seen) < counts[name] and len(seen) < most
                ):  # it has changed since it was counted
                    total -= counts[name] - len(seen)
                    counts[name] = len(seen)
                matches += seen
        matches = matches[:most]
        matched = [(name, counts[name]) for name in ordered if counts[name]]
        most_in = tuple((start.shown(name), count) for name, count in top(matched, self.query.top_files))
        cut = not complete or self.query.cuts(total, len(matches), len(matched))
        return FoundMatches(
            matches, total, searched, cut, len(matched), most_in, None if self.secrets is not None else 0
        )

    def _lines(self, start: Start, told: dict[str, int]) -> tuple[dict[str, list[Match]], bool]:
        """The matches of some files: here where RE2 may answer, else from rg, which is given the open handles.

        And whether that is all: rg says every place in a line, and a line of megabytes may have millions.
        """
        found: dict[str, list[Match]] = {}
        whole = True
        with ExitStack() as stack:
            report = RgReport(self.query)
            for name, count in told.items():
                if name in self._ahead:
                    found[name] = self._ahead[name]
                    continue
                with suppress(CallError, OSError):
                    handle, status = open_with_status(start.root, name, name, follow=False)
                    stack.callback(os.close, handle)
                    try:
                        found[name] = self._here(handle, status, start, name, count)
                    except (Unequal, TooMuch):
                        report.expect(handle, name, start.shown(name))
            if report.handles:
                whole = self._read(start, report)
                found |= report.matches
        return found, whole

    def _say(self, what: str) -> None:
        """Whoever hears it may raise to end the search; rg ends with it."""
        if self.progress is not None:
            self.progress(what)

    def _here(self, handle: int, status: os.stat_result, start: Start, name: str, told: int) -> list[Match]:
        if not may_search(status, start.hard_links):  # it is another one since it was counted
            return []
        if self.matcher is None or status.st_size > MAX_BYTES:
            raise TooMuch
        if not self.matcher.within(status.st_size, MAX_WORK):
            raise TooMuch
        data = read_up_to(handle, MAX_BYTES, status.st_size)
        shown, most = start.shown(name), self.query.max_matches
        return search_content(self.matcher, data, shown, self.query, most, told)[0]


def _choice(starts: list[Start]) -> Sequence[str]:
    """Directories are walked; a file is chosen by name in its directory, so that rg treats it as one it came to."""
    if starts[0].directory:
        return options(starts[0].selection, starts[0].root.handle)
    return ["--max-depth=1", *exactly(start.relative for start in starts)]


def _where(starts: list[Start]) -> list[str]:
    if starts[0].directory:
        return [_spelled(start.relative) for start in starts]
    return list(dict.fromkeys(_spelled(start.relative.rpartition("/")[0]) for start in starts))


def _spelled(directory: str) -> str:
    return "." if directory in ("", ".") else f"./{directory}"


def _reached(starts: list[Start], name: str) -> Start | None:
    """The start from which the rules let it be shown, however rg came to it."""
    for start in starts:
        if start.selection.reaches(start.relative, name) if start.directory else start.relative == name:
            return start
    return None


def _is_there(start: Start, name: str, *, confined: bool) -> bool:
    with suppress(OSError, ValueError, CallError):
        if confined:
            handle, status = open_with_status(start.root, name, name, follow=False)
            os.close(handle)
            return may_search(status, start.hard_links)
        return may_search(os.stat(name, dir_fd=start.root.handle, follow_symlinks=False), start.hard_links)
    return False
