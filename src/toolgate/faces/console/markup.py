"""Markup of text from outside: escaped, with nothing in it that cannot be seen; and of diffs, line by line.

Lines of a diff have syntax colours, and within changed lines the words that differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from toolgate.core.display import visible
from toolgate.core.lookalikes import positions
from toolgate.kits.diffs import FileDiff, Hunk, Line

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_LONGEST_LINE = 2000
Span = tuple[int, int, str]
"""Start, end, class."""
Colours = Mapping[tuple[str, int], Sequence[Span]]
"""By side (`old`, `new`) and line number."""


def marked(text: str, *, keep_lines: bool = False, alike: Collection[int] | None = None) -> Markup:
    """Escaped; what is invisible stands out as `⟨U+XXXX⟩`, told apart from the same letters in the text itself. What may
    be taken for another character is followed by the same; `alike` says where such stand, if that is known."""
    if text.isascii() and text.isprintable():
        return escape(text)
    alike = positions(text) if alike is None else alike
    parts: list[str] = []
    plain: list[str] = []
    for at, char in enumerate(text):
        drawn = visible(char, keep_lines=keep_lines)
        if drawn == char:
            plain.append(char)
            if at not in alike:
                continue
            drawn = f"⟨U+{ord(char):04X}⟩"
        parts.append(str(escape("".join(plain))))
        parts.append(f'<span class="inv" title="{escape(name_of(char))}">{escape(drawn)}</span>')
        plain.clear()
    return Markup("".join(parts) + str(escape("".join(plain))))  # noqa: S704 - every part was escaped above


def line_of(text: str, alike: Collection[int] | None = None) -> Markup:
    """One line of a file: tabs stay, a carriage return at its end is a sign of its own."""
    if text.endswith("\r"):
        return marked(text[:-1], keep_lines=True, alike=alike) + Markup(
            '<span class="inv" title="carriage return">CR</span>'
        )
    return marked(text, keep_lines=True, alike=alike)


def ticked(text: str) -> Markup:
    """A description, with what it has in backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return marked(text)
    dressed = (
        Markup("<code>{}</code>").format(marked(part)) if at % 2 else marked(part)
        for at, part in enumerate(parts)
    )
    return Markup("").join(dressed)


def name_of(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, 'control character')}"


def finalize(value: Any) -> Any:
    """What every expression in a template passes through: only markup of our own stays as it is."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else visible(str(value))


def plural(count: int, word: str) -> str:
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("ry") else f"{count:,} {word}s"


@dataclass
class Drawn:
    mark: str
    old: int
    new: int
    html: Markup
    ends: bool


@dataclass
class Block:
    """Lines that stay, or lines that give way to others."""

    same: list[Drawn] = field(default_factory=list)
    old: list[Drawn] = field(default_factory=list)
    new: list[Drawn] = field(default_factory=list)


def blocks(hunk: Hunk, colours: Colours) -> list[Block]:
    made: list[Block] = []
    for group in _groups(hunk):
        if group[0].mark == " ":
            made.append(Block(same=[_drawn(line, colours) for line in group]))
            continue
        old = [line for line in group if line.mark == "-"]
        new = [line for line in group if line.mark == "+"]
        pairs = [differing(a.text, b.text) for a, b in zip(old, new, strict=False)]
        made.append(
            Block(
                old=[
                    _drawn(line, colours, pairs[at][0] if at < len(pairs) else None)
                    for at, line in enumerate(old)
                ],
                new=[
                    _drawn(line, colours, pairs[at][1] if at < len(pairs) else None)
                    for at, line in enumerate(new)
                ],
            )
        )
    return made


def _groups(hunk: Hunk) -> list[list[Line]]:
    groups: list[list[Line]] = []
    for line in hunk.lines:
        if groups and (groups[-1][-1].mark == " ") == (line.mark == " "):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def differing(old: str, new: str) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The part of each line that the other has not, if most of them is the same."""
    if max(len(old), len(new)) > _LONGEST_LINE:
        return None, None
    left, right = _WORD.findall(old), _WORD.findall(new)
    shorter = min(len(left), len(right))
    head = next((at for at in range(shorter) if left[at] != right[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if left[-1 - at] != right[-1 - at]), rest)
    same = "".join(left[:head] + left[len(left) - tail :]).strip()
    if len(same) * 3 < max(len(old.strip()), len(new.strip())):
        return None, None
    start = len("".join(left[:head]))
    ends = [len("".join(words[: len(words) - tail])) for words in (left, right)]
    return (start, ends[0]), (start, ends[1])


def _drawn(line: Line, colours: Colours, word: tuple[int, int] | None = None) -> Drawn:
    side, number = ("old", line.old) if line.mark == "-" else ("new", line.new)
    return Drawn(
        line.mark, line.old, line.new, draw(line.text, colours.get((side, number), ()), word), line.ends
    )


def draw(text: str, spans: Sequence[Span], word: tuple[int, int] | None = None) -> Markup:
    """The text cut at every edge, each piece escaped by itself and dressed once."""
    if not spans and word is None:
        return line_of(text)
    edges = {0, len(text), *(edge for start, end, _ in spans for edge in (start, end)), *(word or ())}
    cuts = sorted(edge for edge in edges if 0 <= edge <= len(text))
    classes = {start: (end, name) for start, end, name in spans}
    made, until, name = Markup(""), 0, ""
    alike = positions(text)  # of the whole line: a word may be cut into pieces
    for start, end in pairwise(cuts):
        if start in classes:
            until, name = classes[start]
        dress = [name] if start < until and name else []
        dress += ["w"] if word is not None and word[0] <= start < word[1] else []
        last = end == len(text)
        here = {at - start for at in alike if start <= at < end} if alike else alike
        piece = (
            line_of(text[start:end], here) if last else marked(text[start:end], keep_lines=True, alike=here)
        )
        made += Markup('<span class="{}">{}</span>').format(" ".join(dress), piece) if dress else piece
    return made


def texts(file: FileDiff) -> dict[str, list[Line]]:
    """The lines of each side, as a lexer needs them."""
    lines = list(file.lines)
    return {
        "old": [line for line in lines if line.mark == "-" or line.mark == " "],
        "new": [line for line in lines if line.mark == "+" or line.mark == " "],
    }
