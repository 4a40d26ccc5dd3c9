"""How a rule looks for something, in time linear in the content.

A rule has anchors, which are found by plain search, and says what must stand at or around each. Every repetition in a
pattern is bounded or cannot start twice in one run of characters, so hostile content costs no more than long content.
Content is bytes throughout: what is searched for is ASCII in every encoding that counts as text here.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from toolgate.core.display import visible
from toolgate.core.finding import FindingKind
from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.records import dataclass, field

_NEAR = 2000
_GUESSES = 300
_BYTES_A_GUESS = 80
_GUESSED_RIGHT = 400
UNJUDGED = "too-many-to-judge"
MANY = 1000
"""Hits of one rule in one file that are told apart; with more, none of them counts as old."""


_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = (
    ("utf-16-le", (0, 2), (1, 3)),
    ("utf-16-be", (1, 3), (0, 2)),
    ("utf-32-le", (0,), (1, 2, 3)),
    ("utf-32-be", (3,), (0, 1, 2)),
)
"""Which of four bytes are letters, and which are NULs."""
_WIDE_SAMPLE = 4 << 10
_LETTERS = late_pattern(rb"(?:[\x01-\x7f]\0{1,3}){4,}")
"""Wide letters in a row, which are read as such."""
CONTROLS = bytes({*range(1, 7), *range(14, 27), *range(28, 32), 127})
"""Characters that no text has."""
_NO_LETTERS = b"\0" + CONTROLS


def plain(content: bytes) -> bytes:
    """The text as UTF-8, where a byte order mark or every other NUL says that it is something else.

    Neither needs to be true of all of it, and an interpreter takes no notice of them: what else is there follows as it is.
    """
    if b"\0" not in content:
        return content.removeprefix(codecs.BOM_UTF8)
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _both(content[len(mark) :], encoding)
    wide = _without_mark(content[:_WIDE_SAMPLE])
    return _both(content, wide) if wide else content.removeprefix(codecs.BOM_UTF8)


def _both(content: bytes, encoding: str) -> bytes:
    return content.decode(encoding, "replace").encode() + b"\n" + _LETTERS.sub(b" ", content)


def _without_mark(head: bytes) -> str:
    """UTF-16 or UTF-32 whose letters are mostly ASCII, told by where its NULs stand. Tables of numbers have them there
    too, but no letters."""
    if len(head) < 8:
        return ""
    nul = [head[at::4].count(0) * 4 / len(head) for at in range(4)]
    for encoding, filled, empty in _WIDE:
        letters = b"".join(head[at::4] for at in filled)
        if all(nul[at] > 0.6 for at in empty) and len(letters.translate(None, _NO_LETTERS)) > 0.9 * len(
            letters
        ):
            return encoding
    return ""


class Source(NamedTuple):
    """A content, and the same in small letters for what is spelled either way."""

    content: bytes
    folded: bytes

    @classmethod
    def of(cls, content: bytes) -> Source:
        return cls(content, content.lower())


@dataclass(frozen=True, slots=True)
class SecretHit:
    kind: FindingKind
    rule: str
    start: int
    end: int
    excerpt: str
    values: tuple[bytes, ...] = field(default=(), repr=False)
    """The secret, in pieces that stand on one line each."""
    first: int = -1
    last: int = -1
    """What belongs to it, where that is more than the hit itself: new if any line of it is."""

    @property
    def span(self) -> tuple[int, int]:
        return (self.start, self.end) if self.first < 0 else (self.first, self.last)


class Scanned(NamedTuple):
    """All that is in one content, by where it stands."""

    hits: list[SecretHit]
    crowded: frozenset[str] = frozenset()
    """Rules of which there may be more than was looked at."""


@dataclass(frozen=True, slots=True)
class Token:
    """Something that begins like no other text. Group 1 is what counts where it is less than the match."""

    name: str
    anchors: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    folded: bool = False
    kind: FindingKind = "payload"

    def hits(self, source: Source) -> Iterator[SecretHit]:
        text = source.folded if self.folded else source.content
        for anchor in self.anchors:
            at = text.find(anchor)
            while at >= 0:
                match = self.pattern.match(text, at)
                if match is None:
                    at = following(text, anchor, at + 1)
                    continue
                start, end = match.span(1) if self.pattern.groups else match.span()
                yield SecretHit(self.kind, self.name, start, end, shown(source.content[start:end]))
                at = following(text, anchor, max(match.end(), at + 1))


@dataclass(frozen=True, slots=True)
class Around:
    """Something that is harmless alone and not in this company: all of `needs` within reach of the anchor."""

    name: str
    anchors: tuple[bytes, ...]
    needs: tuple[re.Pattern[bytes], ...]
    reach: int = 300
    one_line: bool = False
    kind: FindingKind = "payload"

    def hits(self, source: Source) -> Iterator[SecretHit]:
        text = source.folded
        for anchor in self.anchors:
            at = text.find(anchor)
            while at >= 0:
                low, high = max(0, at - self.reach), min(len(text), at + len(anchor) + self.reach)
                if self.one_line:
                    low = max(low, text.rfind(b"\n", low, at) + 1)
                    line_end = text.find(b"\n", at, high)
                    high = high if line_end < 0 else line_end
                found = self._found(text, low, high)
                if found:
                    end = at + len(anchor)
                    first = min(at, *(match.start() for match in found))
                    last = max(end, *(match.end() for match in found))
                    around = shown(source.content[first : min(last, first + 120)])
                    yield SecretHit(self.kind, self.name, at, end, around, (), first, last)
                # the next window overlaps this one by a half, so that many anchors do not mean many searches
                at = following(text, anchor, at + max(len(anchor), self.reach // 2))

    def _found(self, text: bytes, low: int, high: int) -> list[re.Match[bytes]]:
        """All of the needs, or nothing."""
        found = []
        for need in self.needs:
            match = need.search(text, low, high)
            if match is None:
                return []
            found.append(match)
        return found


Rule = Token | Around


def at_most(hits: Iterable[SecretHit]) -> Iterator[SecretHit]:
    """So many of each rule: what finds hits of several rules is not cut short by one of them."""
    counts: Counter[str] = Counter()
    for hit in hits:
        counts[hit.rule] += 1
        if counts[hit.rule] <= MANY:
            yield hit


def back(text: bytes, at: int, far: int, letters: bytes) -> int:
    """Where the run of these letters begins that ends here, looking back so far."""
    low = max(0, at - far)
    return low + len(text[low:at].rstrip(letters))


class Effort:
    """How many guesses a content may cost. Each is worth some microseconds, and a text can be made of nothing else.

    Ordinary texts are far below it. What is told by its form is no guess and always looked at.
    """

    def __init__(self, source: Source) -> None:
        self.left = _GUESSES + len(source.content) // _BYTES_A_GUESS
        self.hits = _GUESSED_RIGHT

    def spent(self) -> bool:
        self.left -= 1
        return self.left < 0 or self.hits < 0

    def right(self, hit: SecretHit) -> SecretHit:
        self.hits -= 1
        return hit

    def rest(self, at: int) -> SecretHit:
        """A human is told that it was too much, and nothing of such a content is shown or recorded as if it were clean."""
        return SecretHit("secret", UNJUDGED, at, at, "too many possible secrets from here on to judge each")


def following(text: bytes, anchor: bytes, at: int) -> int:
    """The next anchor. Nearby first: a search of a long text is dear to begin, and hostile texts have many anchors."""
    found = text.find(anchor, at, at + _NEAR)
    return found if found >= 0 else text.find(anchor, at + _NEAR - len(anchor))


def shown(piece: bytes) -> str:
    """For a human: one line, nothing invisible, not too long."""
    text = visible(piece[:200].decode("utf-8", "replace").strip())
    return text if len(text) <= 80 else text[:79] + "…"


def token(name: str, anchors: str, pattern: str, **more: object) -> Token:
    return Token(name, tuple(anchors.encode().split(b" ")), late_pattern(pattern.encode()), **more)  # type: ignore[arg-type]
