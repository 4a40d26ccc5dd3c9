"""Output of rg, and the files in it that hold a secret. These are searched as they are read, with markers in its place; no other way of asking may differ.

rg searches the files as they are. A match that can be shown touches no secret, so it is one in the file as it is, too,
but for what a pattern asserts about the characters beside it (`\\b`, `$`): therefore rg also names the files that match
without that. Each of all these files is looked at here, and where it holds a secret, what rg said of it is dropped.
"""

from __future__ import annotations

import base64
import codecs
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from toolgate.core.conceal import Concealed, Secrets, conceal
from toolgate.core.errors import CallError
from toolgate.core.records import dataclass, field
from toolgate.workspace.confine import held, open_with_status
from toolgate.workspace.search.content import Matcher, TooMuch, search_concealed
from toolgate.workspace.search.local import MAX_WORK, may_search, read_up_to
from toolgate.workspace.search.query import LineHit, Match, SearchQuery, make_match
from toolgate.workspace.search.selection import Start
from toolgate.workspace.search.subset import plan

# What rg says: `--count --null --stats` piece by piece, and `--json` about files that were handed to it
# open.

_SEARCHED = re.compile(rb"^(\d+) files searched$", re.MULTILINE)


@dataclass(slots=True)
class MatchCounts:
    files: int = 0
    _rest: bytes = b""

    def take(self, chunk: bytes) -> Iterator[tuple[str, int]]:
        """The files that this piece completes. A name may have line endings; it ends with a NUL."""
        said, at = self._rest + chunk, 0
        while (zero := said.find(b"\0", at)) >= 0 and (end := said.find(b"\n", zero)) >= 0:
            self.files += 1
            yield os.fsdecode(said[at:zero]).removeprefix("./"), int(said[zero + 1 : end])
            at = end + 1
        self._rest = said[at:]

    @property
    def searched(self) -> int:
        """How many files it looked at; at least those that match, where it did not come to its end."""
        found = _SEARCHED.search(self._rest)
        return int(found.group(1)) if found else self.files


MAX_OUTPUT = 128 << 20
"""A line with millions of matches could fill any memory; such a file's lines are left out, its count stays."""

_PLAIN = Concealed(b"")
_LONG = 1 << 16
_FIRST = re.compile(
    rb',"submatches":\[\{"match":\{"(?:text|bytes)":"(?:[^"\\]|\\.){0,20000}"\},"start":\d+,"end":\d+\}'
)
"""Up to the end of the first match in a line. Within a text every quote is escaped, so that no line can pose as it."""


@dataclass(slots=True)
class RgReport:
    query: SearchQuery
    concealed: bool = False
    """Whether secrets were taken out of the files: a match that touches a marker is none."""
    handles: list[int] = field(default_factory=list)
    matches: dict[str, list[Match]] = field(default_factory=dict)
    _files: dict[str, tuple[str, str, Concealed]] = field(default_factory=dict)
    _rest: bytearray = field(default_factory=bytearray)
    """Of the message that has begun."""
    _looked: int = 0
    _enough: bool = False
    _size: int = 0
    _lines: dict[int, bytes] = field(default_factory=dict)
    _hits: list[LineHit] = field(default_factory=list)

    def expect(self, handle: int, name: str, shown: str, known: Concealed = _PLAIN) -> None:
        self.handles.append(handle)
        self._files[f"/proc/self/fd/{handle}"] = (name, shown, known)

    @property
    def paths(self) -> list[str]:
        return list(self._files)

    @property
    def options(self) -> list[str]:
        made = ["--json", "--threads=1", f"--context={self.query.context_lines}"]
        return made if self.concealed else [*made, f"--max-count={self.query.max_matches}"]

    def take(self, chunk: bytes) -> bool:
        self._size += len(chunk)
        if self._size > MAX_OUTPUT:
            return False
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._add(part)
            if self._rest:
                self._hear(orjson.loads(self._rest))
            self._rest, self._looked, self._enough = bytearray(), 0, False
        self._add(rest)
        return True

    def _add(self, part: bytes) -> None:
        """Of a line with millions of matches only the first is asked for; the rest of its message is not kept."""
        if self._enough:
            return
        self._rest += part
        if len(self._rest) < _LONG:
            return
        first = _FIRST.search(self._rest, self._looked)
        self._looked = max(len(self._rest) - _LONG // 2, 0)
        if first is not None:
            del self._rest[first.end() :]
            self._rest += b"]}}"
            self._enough = True

    def _hear(self, message: dict[str, Any]) -> None:
        data = message["data"]
        if message["type"] in ("match", "context"):
            number = data["line_number"]
            line = self._lines[number] = _bytes(data["lines"]).removesuffix(b"\n")
            if message["type"] == "match":
                # of a match at the very end of a file without a last newline rg does not say where it is
                found = data["submatches"] or [{"start": len(line), "end": len(line)}]
                places = ((one["start"], one["end"]) for one in found)
                if self.concealed:
                    places = self._beside_secrets(data, places)
                self._hits += [LineHit(number, *place) for place in islice(places, 1)]
        elif message["type"] == "end":
            name, shown, _ = self._files[_bytes(data["path"]).decode()]
            if data["binary_offset"] is None:
                self.matches[name] = [self._match(shown, hit) for hit in self._hits]
            self._lines, self._hits = {}, []

    def _beside_secrets(
        self, data: dict[str, Any], places: Iterable[tuple[int, int]]
    ) -> Generator[tuple[int, int], None, None]:
        _, _, known = self._files[_bytes(data["path"]).decode()]
        at = data["absolute_offset"]
        return ((start, end) for start, end in places if not known.hides(at + start, at + end))

    def _match(self, shown: str, hit: LineHit) -> Match:
        lines, context = self._lines, self.query.context_lines
        before = [lines[at] for at in range(hit.line - context, hit.line) if at in lines]
        after = [lines[at] for at in range(hit.line + 1, hit.line + context + 1) if at in lines]
        return make_match(shown, hit, lines[hit.line], before, after)


def _bytes(value: dict[str, str]) -> bytes:
    text = value.get("text")
    return text.encode() if text is not None else base64.b64decode(value["bytes"])


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
        with held(handle):
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
