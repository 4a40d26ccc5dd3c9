"""What no page can show, page by page: and how far each session has come, as nobody approves what they have not been shown."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from markupsafe import Markup

from toolgate.core.ports import Question
from toolgate.faces.console.markup import draw
from toolgate.kits import pieces

LEAF_PIECES = 2000
LEAF_ROOM = 200_000
"""Characters of HTML on one page, and pieces of lines."""
_REMEMBERED = 256


@dataclass(frozen=True)
class Leaf:
    """One page of it."""

    parts: list[tuple[str, list[tuple[int, Markup]]]]
    """By argument; a line's number, or 0 for the rest of one that is folded."""
    start: int
    end: int
    total: int


class ReadingProgress:
    """How far each session has read each question, from its beginning on without a gap."""

    def __init__(self) -> None:
        self._reach: OrderedDict[tuple[str, str], int] = OrderedDict()

    def took(self, session: str, digest: str, start: int, end: int) -> None:
        key = session, digest
        if start <= self._reach.get(key, 0):
            self._reach[key] = max(end, self._reach.get(key, 0))
            self._reach.move_to_end(key)
        while len(self._reach) > _REMEMBERED:
            self._reach.popitem(last=False)

    def read(self, session: str, question: Question) -> bool:
        reach = self._reach.get((session, question.digest), 0)
        return reach > 0 and reach >= pieces.total(question)


def leaf(question: Question, start: int) -> Leaf:
    parts: list[tuple[str, list[tuple[int, Markup]]]] = []
    room, end = LEAF_ROOM, start
    for piece in pieces.some_of(pieces.all_of(question), start, LEAF_PIECES):
        line = draw(piece.text, ())
        room -= len(line) + 60
        if room < 0 and end > start:
            break
        if not parts or parts[-1][0] != piece.part:
            parts.append((piece.part, []))
        parts[-1][1].append((piece.number, line))
        end += 1
    return Leaf(parts, start, end, pieces.total(question))
