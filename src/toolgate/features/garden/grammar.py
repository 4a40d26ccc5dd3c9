"""Grammar of a garden file: front matter, and sections that a hidden anchor names.

`<!-- @anchor: concerns v1 -->` stands on the line after an H2; a section goes from its heading to the next H1 or H2.
Where things are is said in lines, and an edit replaces lines: all other bytes stay, line ends and a BOM included.
markdown-it knows what is a heading. A file without fences, HTML and underlined headings needs no parser to tell:
there a line that begins with `#` is one, and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from toolgate.core import lookalikes
from toolgate.core.apart import apart
from toolgate.core.change import content_hash
from toolgate.core.errors import InvalidArgs, NotFound, NotText, TooLarge
from toolgate.workspace.text import canonical_text

MAX_BYTES = 1 << 20
SMALL = 16 << 10
"""Bytes of a file that are worked on at once."""
T = TypeVar("T")
"""Of a garden file: more is no longer something that a person reads."""
ANCHOR = re.compile(r"<!-- @anchor: ([a-z][a-z0-9_-]{0,63} v(?:0|[1-9][0-9]{0,3})) -->[ \t]*")
LOOKS_LIKE_ANCHOR = re.compile(r"<!--(?:(?!<!--)\W)*anchor\b|(?<!\w)@\s*anchor\s*:", re.IGNORECASE)
"""Also in a comment that began on an earlier line."""
_UNSEEN = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks without a shape, besides the format characters."""
_SIX_LETTERS = re.compile(r"\b\w{6}\b")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?")
_CLOSING = re.compile(r"(?:^|(?<![ \t])[ \t]+)#+$")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
"""What may begin an item of a list."""
_MARKS = frozenset("-*+0123456789")
_PLAIN_ITEM = re.compile(r"([-*+]) ([\w\"'(\u201c].*)")
_TRICKY = re.compile(
    r"^(?: {1,3}#| {0,3}<(?!!-- @anchor: [a-z][a-z0-9_-]{0,63} v[0-9]{1,4} -->[ \t]*$)| {0,3}(?:-+|=+)[ \t]*$)|```|~~~",
    re.MULTILINE,
)
"""What only a parser can judge: fences, HTML, underlines, and headings that may be within a list."""


@dataclass(frozen=True, slots=True)
class Section:
    anchor: str
    """`concerns v1`; empty where the heading has none."""
    heading: str
    level: int
    start: int
    """The line of its heading, from 0."""
    body: int
    """The first line after heading and anchor."""
    end: int
    """The first line that is no longer part of it."""


@dataclass(frozen=True, slots=True)
class ListItem:
    start: int
    end: int
    text: str
    """Without its marker, on one line."""
    marker: str


@dataclass(frozen=True)
class MarkdownFile:
    bom: str
    lines: tuple[str, ...]
    """With their ends."""
    front: int
    """How many lines the front matter has, its fences included."""
    sections: tuple[Section, ...]
    """Of level 1 and 2, with or without an anchor."""
    strays: tuple[int, ...]
    """Lines that look like an anchor and are none, because of where or how they stand."""

    @cached_property
    def anchored(self) -> dict[str, Section]:
        """The first of each name."""
        return {section.anchor: section for section in reversed(self.sections) if section.anchor}

    @cached_property
    def anchors(self) -> list[str]:
        return [section.anchor for section in self.sections if section.anchor]

    @cached_property
    def identity(self) -> str:
        """The front matter as it is written."""
        return "".join(self.lines[: self.front])

    @cached_property
    def fields(self) -> dict[str, str]:
        """Its plain `key: value` lines."""
        pairs = (
            line.partition(":") for line in self.lines[1 : max(self.front - 1, 0)] if not line[:1].isspace()
        )
        return {key.strip(): value.strip().strip("\"'") for key, colon, value in pairs if colon}

    @cached_property
    def eol(self) -> str:
        ends = Counter(line[len(line.rstrip("\r\n")) :] for line in self.lines)
        return max(("\n", "\r\n", "\r"), key=ends.__getitem__)

    def hidden(self, anchor: str, start: int = 0, end: int | None = None) -> int:
        """The line, from 1, of an anchor that is text because a fence or an element before it is not closed; else 0."""
        if anchor in self.anchored:
            return 0
        lines = enumerate(self.lines[start:end], start)
        found = (
            at
            for at, line in lines
            if at not in self.strays and (one := ANCHOR.fullmatch(line.rstrip())) and one[1] == anchor
        )
        return next(found, -1) + 1

    def section(self, anchor: str) -> Section:
        """By its anchor, with or without the version."""
        wanted = anchor.strip()
        found = self.anchored.get(wanted)
        if found is None and " " not in wanted:
            found = self._only(wanted)
        if found is None:
            known = ", ".join(f"`{name}`" for name in self.anchors) or "none"
            raise NotFound(
                f"there is no section with the anchor {wanted[:80]!r}", f"the anchors are: {known}"
            )
        return found

    def _only(self, name: str) -> Section | None:
        versions = [anchor for anchor in dict.fromkeys(self.anchors) if anchor.split(" ")[0] == name]
        if len(versions) > 1:
            told = " and ".join(f"`{anchor}`" for anchor in versions)
            raise InvalidArgs(f"{name[:80]!r} may mean {told}", "say which, with its version")
        return self.anchored[versions[0]] if versions else None

    def text(self, start: int = 0, end: int | None = None) -> str:
        return "".join(self.lines[start:end])

    def hash(self, section: Section | None = None) -> str:
        """Of the canonical text, of the whole file or of one section."""
        start, end = (0, None) if section is None else (section.start, section.end)
        return content_hash(canonical_text(self.text(start, end)).encode()) or ""

    def items(self, section: Section) -> list[ListItem]:
        """What its outermost lists hold."""
        found = self._items.get(section.start)
        if found is None:
            plain = self._plain_items(section)
            found = self._items[section.start] = self._parsed_items(section) if plain is None else plain
        return found

    def _plain_items(self, section: Section) -> list[ListItem] | None:
        """Where every line is an item of one list, or none is: told without a parser. None where only that can tell."""
        lines = [line.lstrip(" \t") for line in self.lines[section.body : section.end]]
        if not any(line[:1] in _MARKS and _MARKER.match(line) for line in lines if line):
            return []
        full = [number for number in range(section.body, section.end) if self.lines[number].strip()]
        found = [_PLAIN_ITEM.fullmatch(self.lines[number].rstrip("\r\n")) for number in full]
        if (
            full[-1] - full[0] != len(full) - 1
            or len({match and match[1] for match in found}) > 1
            or not found[0]
        ):
            return None
        return [
            ListItem(number, number + 1, " ".join(match[2].split()), f"{match[1]} ")
            for number, match in zip(full, found, strict=True)
            if match
        ]

    def _parsed_items(self, section: Section) -> list[ListItem]:
        return [
            self._item(section.body + token.map[0], section.body + token.map[1], token)
            for token in _tokens(self.text(section.body, section.end))
            if token.type == "list_item_open" and token.level == 1
        ]

    @cached_property
    def _items(self) -> dict[int, list[ListItem]]:
        return {}

    def _item(self, start: int, end: int, token: Any) -> ListItem:
        while end > start + 1 and not self.lines[end - 1].strip():
            end -= 1
        first = self.lines[start].lstrip()
        marker = token.info + token.markup + " "
        words = " ".join([first[len(token.info + token.markup) :], *self.lines[start + 1 : end]]).split()
        return ListItem(start, end, " ".join(words), marker)

    def spliced(self, start: int, end: int, text: str) -> bytes:
        """The file with these lines replaced."""
        return (self.bom + self.text(0, start) + text + self.text(end)).encode()


def read(raw: bytes, shown: str = "the file") -> MarkdownFile:
    if len(raw) > MAX_BYTES:
        told = f"{shown!r} has {len(raw):,} bytes, a garden file at most {MAX_BYTES:,}"
        raise TooLarge(told, "split it; notes that are no longer needed can go to another file")
    try:
        return _read(raw)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise NotText(f"{shown!r} is not UTF-8 at line {line}", "save it as UTF-8") from None


async def off_loop(raw: bytes, work: Callable[[], T], times: int = 1) -> T:
    """Work on a file, once or so many times: in a thread where it is much, so that nobody else waits for it."""
    return work() if len(raw) * times <= SMALL else await apart(work)


def section_text(raw: bytes, anchor: str) -> tuple[int, str]:
    """The first line of a section, from 1, and all of its text, with its heading."""
    document = read(raw)
    section = document.section(anchor)
    return section.start + 1, document.text(section.start, section.end)


@lru_cache(maxsize=256)
def _read(raw: bytes) -> MarkdownFile:
    text = raw.decode()
    bom = text[:1] if text.startswith("\ufeff") else ""
    lines = tuple(_LINE.findall(text[len(bom) :]))
    front = _front_matter(lines)
    plain = [line.rstrip("\r\n") for line in lines]
    plain[:front] = [""] * front
    joined = "\n".join(plain)
    scan = _parsed_headings if _TRICKY.search(joined) else _plain_headings
    headings, code = scan(joined, plain)
    sections = tuple(_sections(headings, plain))
    known = {section.body - 1 for section in sections if section.anchor}
    strays = () if joined.isascii() and "anchor" not in joined.lower() else tuple(
        number for number, line in enumerate(plain)
        if number not in known and number not in code and LOOKS_LIKE_ANCHOR.search(_as_read(line))
    )  # fmt: skip
    return MarkdownFile(bom, lines, front, sections, strays)


def without_unseen(text: str) -> str:
    """What a reader sees of a text, in the usual form of each letter."""
    shown = (one for one in _UNSEEN.sub("", text) if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", "".join(shown))


def _as_read(line: str) -> str:
    """A line in which letters that pass for those of `anchor` are these."""
    if line.isascii() or not ("<!--" in line or "@" in line or "\uff20" in line):
        return line
    return _SIX_LETTERS.sub(
        lambda word: "anchor" if lookalikes.taken_for(word[0].casefold(), "anchor") else word[0],
        without_unseen(line),
    )


def _front_matter(lines: tuple[str, ...]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 0
    ends = (number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
    return next(ends, -1) + 1


Heading = tuple[int, int, int, str]
"""Level, first line, line after it, text."""


def _plain_headings(joined: str, plain: list[str]) -> tuple[list[Heading], set[int]]:
    found = []
    for number, line in enumerate(plain):
        if line[:1] == "#" and (match := _ATX.fullmatch(line)) and len(match[1]) <= 2:
            text = _CLOSING.sub("", (match[2] or "").strip(" \t")).strip(" \t")
            found.append((len(match[1]), number, number + 1, text))
    return found, set()


def _parsed_headings(joined: str, plain: list[str]) -> tuple[list[Heading], set[int]]:
    found: list[Heading] = []
    code: set[int] = set()
    tokens = _tokens(joined)
    for number, token in enumerate(tokens):
        if token.type in ("fence", "code_block"):
            code.update(range(*token.map))
        if token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2"):
            found.append((int(token.tag[1]), *token.map, tokens[number + 1].content))
    return found, code


def _sections(headings: list[Heading], plain: list[str]) -> list[Section]:
    found = []
    ends = [start for _, start, _, _ in headings[1:]] + [len(plain)]
    for (level, start, after, heading), end in zip(headings, ends, strict=False):
        match = ANCHOR.fullmatch(plain[after]) if level == 2 and after < end else None
        found.append(Section(match[1] if match else "", heading, level, start, after + bool(match), end))
    return found


def _tokens(text: str) -> list[Any]:
    return list(_parser().parse(text))


@lru_cache(maxsize=1)
def _parser() -> Any:
    """Of blocks only: where a heading, a fence or a list stands does not depend on what is in a line."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
