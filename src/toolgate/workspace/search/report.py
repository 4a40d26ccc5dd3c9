"""What rg says: `--count --null --stats` piece by piece, and `--json` about files that were handed to it open."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any

import orjson

from toolgate.core.conceal import Concealed
from toolgate.core.records import dataclass, field
from toolgate.workspace.search.query import LineHit, Match, SearchQuery, make_match

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


MAX_BYTES = 128 << 20
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
        if self._size > MAX_BYTES:
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
