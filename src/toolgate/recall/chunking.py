"""Chunking of documents: pieces of Markdown within a token budget, for an index that reads them one by one.

Code blocks and tables stay whole as long as they fit the budget; each piece says under which headings it stands, and
begins with the end of the piece before it. Tokens are counted by the model's own tokenizer, or by words without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from toolgate.core.errors import InvalidArgs

BUDGET = 320
OVERLAP = 40
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n")
Count = Callable[[str], int]


class Chunk(NamedTuple):
    text: str
    """What is indexed: the headings, then the piece."""
    headings: tuple[str, ...]
    line: int
    """Where the piece begins, from 1."""


class _Block(NamedTuple):
    text: str
    headings: tuple[str, ...]
    line: int
    whole: bool


def token_counter(tokenizer: Any | None) -> Count:
    """Of a `tokenizers.Tokenizer`, without the tokens that stand around a text."""
    if tokenizer is None:
        return lambda text: len(re.findall(r"\w+|[^\w\s]", text))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def chunk(text: str, count: Count, budget: int = BUDGET, overlap: int = OVERLAP) -> list[Chunk]:
    if not 0 <= overlap < budget:
        raise InvalidArgs(
            f"an overlap of {overlap} in a budget of {budget}", "the overlap is smaller than the budget"
        )
    found: list[Chunk] = []
    pending: list[_Block] = []
    fresh = False  # whether anything is pending beyond what the last piece ended with

    def close() -> None:
        nonlocal pending, fresh
        if fresh:
            found.append(_made(pending))
            pending = _tail(pending, count, overlap)
            fresh = False

    for block in _fitting(text, count, budget, overlap):
        if pending and pending[-1].headings != block.headings:
            close()
            pending = []
        if pending and count(_made([*pending, block]).text) > budget:
            close()
            if pending and count(_made([*pending, block]).text) > budget:
                pending = []  # a large block has no room for what came before it
        pending.append(block)
        fresh = True
    close()
    return found


def _made(blocks: list[_Block]) -> Chunk:
    first = blocks[0]
    heading = " > ".join(first.headings)
    body = "\n\n".join(block.text for block in blocks)
    return Chunk(f"{heading}\n\n{body}" if heading else body, first.headings, first.line)


def _tail(blocks: list[_Block], count: Count, overlap: int) -> list[_Block]:
    """The last sentences of a piece, as many as the overlap allows; never a part of a code block or table."""
    last = blocks[-1]
    if last.whole or not overlap:
        return []
    kept: list[str] = []
    for sentence in reversed([part for part in _SENTENCE.split(last.text) if part.strip()]):
        if count(" ".join([sentence, *kept])) > overlap:
            break
        kept.insert(0, sentence)
    return [last._replace(text=" ".join(kept))] if kept and len(" ".join(kept)) < len(last.text) else []


def _fitting(text: str, count: Count, budget: int, overlap: int) -> Iterator[_Block]:
    for block in _blocks(text):
        room = max(budget - count(" > ".join(block.headings)) - 2, budget // 2)
        if count(block.text) <= room:
            yield block
        else:
            yield from _cut(block, count, room if block.whole else max(room - overlap, room // 2))


def _cut(block: _Block, count: Count, room: int) -> Iterator[_Block]:
    """Larger than a budget: by lines where it is code or a table, by sentences otherwise, by characters at last."""
    parts = block.text.split("\n") if block.whole else [p for p in _SENTENCE.split(block.text) if p.strip()]
    glue = "\n" if block.whole else " "
    line, held = block.line, ""
    for part in (piece for each in parts for piece in _small(each, count, room)):
        if held and count(held + glue + part) > room:
            yield block._replace(text=held, line=line)
            line += held.count("\n") + block.whole
            held = part
        else:
            held = held + glue + part if held else part
    if held.strip():
        yield block._replace(text=held, line=line)


def _small(part: str, count: Count, room: int) -> Iterator[str]:
    if count(part) <= room:
        yield part
        return
    half = len(part) // 2
    space = part.rfind(" ", 1, half + 1)
    at = space if space > 0 else half
    if not 0 < at < len(part):
        yield part
        return
    yield from _small(part[:at], count, room)
    yield from _small(part[at:].lstrip(" ") or part[at:], count, room)


def _blocks(text: str) -> Iterator[_Block]:
    """Paragraphs, fenced code and tables, each under its headings."""
    headings: list[tuple[int, str]] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        heading = _HEADING.match(line)
        if heading:
            level = len(heading.group(1))
            headings = [each for each in headings if each[0] < level] + [(level, heading.group(2))]
            at += 1
            continue
        if not line.strip():
            at += 1
            continue
        end, whole = _end(lines, at)
        yield _Block("\n".join(lines[at:end]), tuple(name for _, name in headings), at + 1, whole)
        at = end


def _end(lines: list[str], at: int) -> tuple[int, bool]:
    fence = _FENCE.match(lines[at])
    if fence:
        mark = fence.group(1)
        for end in range(at + 1, len(lines)):
            if lines[end].strip().startswith(mark) and not lines[end].strip().strip(mark[0]):
                return end + 1, True
        return len(lines), True  # it is never closed: all the rest is code
    table = lines[at].lstrip().startswith("|")
    end = at + 1
    while (
        end < len(lines)
        and lines[end].strip()
        and not _HEADING.match(lines[end])
        and not _FENCE.match(lines[end])
    ):
        if table and not lines[end].lstrip().startswith("|"):
            break
        end += 1
    return end, table
