"""What a question holds, as lines that can be shown a few at a time: counted first, made only as far as they are wanted.

A text has its own lines, any other value those of its JSON. A line that is too long is folded, so that one line of a
megabyte is many pieces and not one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolgate.core.display import visible
from toolgate.core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from toolgate.core.decision import Question

WIDE = 500
"""Characters of one piece."""
PREVIEW = "what it would do"


class Piece(NamedTuple):
    part: str
    """The argument that it is of, or the preview."""
    number: int
    """Of the line, counted from 1; 0 for the rest of one that is folded."""
    text: str


class Extent(NamedTuple):
    lines: int
    chars: int

    def __add__(self, other: object) -> Extent:
        return (
            Extent(self.lines + other.lines, self.chars + other.chars) if isinstance(other, Extent) else self
        )


def extent(value: Any) -> Extent:
    """How much there is to show, without making it."""
    if isinstance(value, str):
        return Extent(value.count("\n") + 1, len(value))
    lines = chars = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            chars += len(one)
            lines += 1
        elif isinstance(one, Mapping):
            lines += 2 if one else 1
            chars += sum(len(str(key)) for key in one)
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            lines += 2 if one else 1
            waiting.extend(one)
        else:
            lines += 1
            chars += 8
    return Extent(lines, chars)


def extent_of(question: Question) -> Extent:
    total = Extent(0, 0)
    for value in (question.preview, *question.args.values()):
        total += extent(value)
    return total


def lines(value: Any) -> Iterator[str]:
    return _text(value) if isinstance(value, str) else _json(value)


def _text(value: str) -> Iterator[str]:
    start = 0
    while (end := value.find("\n", start)) >= 0:
        yield value[start:end]
        start = end + 1
    yield value[start:]


def _json(value: Any) -> Iterator[str]:
    """The lines of its JSON, one after the other; nobody waits for the last."""
    held: list[str] = []
    for part in json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value):
        first, *rest = part.split("\n")
        held.append(first)
        for more in rest:
            yield "".join(held)
            held = [more]
    yield "".join(held)


def beginning(value: Any, most: int) -> str:
    """So many characters of its JSON on one line; a longer one ends with an ellipsis."""
    made: list[str] = []
    size = 0
    for part in json.JSONEncoder(ensure_ascii=False, default=str, indent=0).iterencode(value):
        part = part[: most + 1].replace("\n", " " if part.startswith(",") else "")
        made.append(part)
        size += len(part)
        if size > most:
            return "".join(made)[: most - 1] + "…"
    return "".join(made)


def folded(part: str, value: Any) -> Iterator[Piece]:
    for number, line in enumerate(lines(value), 1):
        yield Piece(part, number, line[:WIDE])
        for at in range(WIDE, len(line), WIDE):
            yield Piece(part, 0, line[at : at + WIDE])


def count(value: Any) -> int:
    """How many pieces that is."""
    return sum(max(1, -(-len(line) // WIDE)) for line in lines(value))


def all_of(question: Question) -> Iterator[Piece]:
    """Every argument, then what it would do: nothing is left out, whatever else shows it."""
    for name, value in question.args.items():
        yield from folded(name, value)
    if question.preview:
        yield from folded(PREVIEW, question.preview)


def total(question: Question) -> int:
    shown = [*question.args.values(), *([question.preview] if question.preview else [])]
    return sum(map(count, shown))


def some_of(pieces: Iterable[Piece], start: int, most: int) -> list[Piece]:
    return list(islice(pieces, start, start + most))


def is_long(value: Any) -> bool:
    """A text that needs more than a line, which need not be shown twice."""
    return isinstance(value, str) and (len(value) > 80 or "\n" in value.rstrip("\n"))


def is_empty(value: Any) -> bool:
    """Nothing was given: no text, no list, no object. A number or a yes or no is always something."""
    return value is None or value == "" or (isinstance(value, list | tuple | Mapping) and not value)


def arguments(question: Question, cut: Callable[[str, Any], str] = lambda name, value: "") -> str:
    """As JSON, each once: a long text that the preview shows is told by its length, without the quotes of a value. Those
    that are left empty stand on one line, each with what it is: no list is not an empty one. `cut` may give something shorter
    for a value."""
    lines: list[str] = []
    empty: dict[str, list[str]] = {}
    for name, value in question.args.items():
        spelled = json.dumps(name, ensure_ascii=False)
        if is_empty(value):
            plain = name.isidentifier() and name.isascii()
            empty.setdefault(json.dumps(value), []).append(name if plain else spelled)
            continue
        if name in question.repeats and question.preview and is_long(value):
            shown = f"({len(value):,} characters, shown below)"
        else:
            shown = cut(name, value) or as_json(value, 2).replace("\n", "\n  ")
        lines.append(f"  {spelled}: {shown}")
    told = "; ".join(f"{', '.join(names)} = {value}" for value, names in empty.items())
    return "{\n" + ",\n".join([*lines, *([f"  (left empty: {told})"] if told else [])]) + "\n}"


def as_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def numbered(text: str) -> list[str]:
    """A program, line by line, in which nothing is hidden."""
    found = text.removesuffix("\n").split("\n")
    width = len(str(len(found)))
    return [f"{number:>{width}}  {visible(line)}" for number, line in enumerate(found, 1)]


def preview_beside_arguments(question: Question) -> str:
    """What it would do, for a page on which the arguments stand in full: a program of theirs is not said twice. Only what is
    one of them to the last letter is left out."""
    text = question.preview
    for name in question.repeats:
        value = question.args.get(name)
        if isinstance(value, str) and is_long(value) and (block := "\n".join(numbered(value))) in text:
            text = text.replace(block, f"(line by line above, as `{name}`)", 1)
    return text


def as_text(question: Question, only: str = "") -> Iterator[str]:
    """All of it as plain lines in which nothing is hidden, or one argument of it; each is set in, so that none can pose as
    the words around it."""
    if not only:
        yield visible(f"{question.persona} wants to call {question.tool} ({question.id}, {question.digest})")
    shown = [*question.args.items(), *([(PREVIEW, question.preview)] if question.preview else [])]
    for name, value in shown:
        if only in ("", name):
            yield ""
            yield visible(f"{name}: {extent(value).lines:,} lines")
            yield from (f"  {visible(line, keep_lines=True)}" for line in lines(value))
