"""Files that hold a secret are searched as they are read, with markers in its place; no other way of asking may differ.

rg searches the files as they are. A match that can be shown touches no secret, so it is one in the file as it is, too,
but for what a pattern asserts about the characters beside it (`\\b`, `$`): therefore rg also names the files that match
without that. Each of all these files is looked at here, and where it holds a secret, what rg said of it is dropped.
"""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from weakref import WeakKeyDictionary

from toolgate.core.conceal import Concealed, Secrets, conceal
from toolgate.core.errors import CallError
from toolgate.core.records import dataclass, field
from toolgate.workspace.confine import open_with_status
from toolgate.workspace.search.content import Matcher, TooMuch, search_concealed
from toolgate.workspace.search.local import MAX_WORK, may_search, read_up_to
from toolgate.workspace.search.query import Match, SearchQuery
from toolgate.workspace.search.report import RgReport
from toolgate.workspace.search.selection import Start
from toolgate.workspace.search.subset import plan

MAX_BYTES = 64 << 20
"""A larger file is not searched where there are secrets: nobody could tell whether it holds one."""
_SETTLED_NS = 2_000_000_000
_MOST_CLEAN = 50_000
_ASSERTS = re.compile(r"\\[bBAzZ<>]|[$^]")
_NEGATED = re.compile(r"(?<!\\)\[\^")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
Stamp = tuple[int, int, int, int, int]
_clean: WeakKeyDictionary[Secrets, dict[Stamp, None]] = WeakKeyDictionary()
"""Files in which these secrets are not, as they were a while ago."""


def unasserted(pattern: str, case_sensitive: bool) -> str:
    """A pattern that matches wherever this one does, whatever stands beside the match."""
    if plan(pattern, case_sensitive) is not None:
        return "".join(_kept(pattern))
    return "" if _ASSERTS.search(_NEGATED.sub("[", pattern)) else pattern


def _kept(pattern: str) -> Iterator[str]:
    """Of a pattern that was read by `subset`: no set in it begins with a bracket."""
    at, in_set = 0, False
    while at < len(pattern):
        part = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
        if in_set or (part not in ("^", "$", r"\b")):
            yield part
        if part == "[" or (in_set and part == "]"):
            in_set = part == "["
        at += len(part)


@dataclass(slots=True)
class Judged:
    """What was found out about the files that rg named."""

    clean: list[str] = field(default_factory=list)
    """No secret is in them: rg's word counts."""
    matches: dict[str, list[Match]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Of those that hold one."""
    complete: bool = True


@dataclass(slots=True)
class Judge:
    secrets: Secrets
    query: SearchQuery
    matcher: Matcher | None
    deadline: float
    rg: Callable[[RgReport], bool]
    """Lets rg search the texts that the report is given; says whether that was all of it."""
    tick: Callable[[], None]

    def judge(self, start: Start, names: Iterable[str]) -> Judged:
        told = time.monotonic()
        judged = Judged()
        with ExitStack() as stack:
            report = RgReport(self.query, concealed=True)
            for name in names:
                if (now := time.monotonic()) > self.deadline:
                    judged.complete = False
                    break
                if now - told > 0.5:
                    told = now
                    self.tick()
                if self.secrets.spans(os.fsencode(name)):
                    continue  # whether a `file_pattern` fits it, and its place in the order, would tell
                with suppress(CallError, OSError, TooMuch):
                    known = self._known(start, name)
                    if known is None:
                        judged.clean.append(name)
                    elif not self._here(judged, start, name, known):
                        report.expect(_memory(stack, known), name, start.shown(name), known)
            if report.handles:
                judged.complete = self.rg(report) and judged.complete
                for name, found in report.matches.items():
                    self._add(judged, name, found[: self.query.max_matches], len(found))
        return judged

    def _known(self, start: Start, name: str) -> Concealed | None:
        """The file as it may be known; None where it holds no secret."""
        handle, status = open_with_status(start.root, name, name, follow=False)
        try:
            if not may_search(status, start.hard_links) or status.st_size > MAX_BYTES:
                raise TooMuch
            clean = _clean.setdefault(self.secrets, {})
            if (stamp := _stamp(status)) in clean:
                return None
            known = conceal(_text(read_up_to(handle, MAX_BYTES, status.st_size)), self.secrets)
            if known.marks:
                return known
            if max(status.st_mtime_ns, status.st_ctime_ns) < time.time_ns() - _SETTLED_NS:
                if len(clean) >= _MOST_CLEAN:
                    clean.clear()
                clean[stamp] = None
            return None
        finally:
            os.close(handle)

    def _here(self, judged: Judged, start: Start, name: str, known: Concealed) -> bool:
        """Whether RE2 could answer."""
        if b"\0" in known.text:
            return True  # binary: nothing of it is searched
        matcher = self.matcher
        if matcher is None or not (matcher.agrees(known.text) and matcher.within(len(known.text), MAX_WORK)):
            return False
        room = self.query.max_matches
        found = search_concealed(matcher, known, start.shown(name), self.query, room)
        self._add(judged, name, found.matches, found.total)
        return True

    def _add(self, judged: Judged, name: str, found: list[Match], total: int) -> None:
        if total:
            judged.matches[name], judged.counts[name] = found, total


def _text(data: bytes) -> bytes:
    """As rg reads it: what has a mark of another encoding, in UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace").encode()
    return data


def _memory(stack: ExitStack, known: Concealed) -> int:
    handle = os.memfd_create("concealed", os.MFD_CLOEXEC)
    stack.callback(os.close, handle)
    with open(handle, "wb", closefd=False) as file:
        file.write(known.text)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
