"""Syntax colours, from the parsing worker: lexers were not written for hostile text, so none runs in this process."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import PurePosixPath

from toolgate.faces.console.marks import Colours, Span, texts
from toolgate.kits.diffs import FileDiff
from toolgate.workspace.outline.outline import Outliner

MAX_CHARS = 64 << 10
SECONDS = 1.5
"""How long a page waits for its colours, all files together."""
KEPT = 200
_CLASSES = (
    ("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "m"),
    ("Name.Function", "nf"), ("Name.Class", "nf"), ("Name.Decorator", "nd"), ("Name.Builtin", "nb"),
    ("Name.Tag", "k"), ("Name.Attribute", "nd"), ("Operator.Word", "k"), ("Generic.Heading", "k"),
)  # fmt: skip


class Painter:
    """Asks for each text once; what is late stays plain."""

    def __init__(self) -> None:
        self._outliner = Outliner()
        self._known: OrderedDict[tuple[str, str], list[tuple[int, Span]]] = OrderedDict()

    def close(self) -> None:
        self._outliner.close()

    async def files(self, files: Sequence[FileDiff]) -> list[Colours]:
        until = time.monotonic() + SECONDS
        return [await self._file(file, until) for file in files]

    async def _file(self, file: FileDiff, until: float) -> Colours:
        found: dict[tuple[str, int], list[Span]] = {}
        for side, lines in texts(file).items():
            for at, span in await self.text(file.path, "\n".join(line.text for line in lines), until):
                if at < len(lines):
                    number = lines[at].old if side == "old" else lines[at].new
                    found.setdefault((side, number), []).append(span)
        return found

    async def text(self, path: str, text: str, until: float) -> list[tuple[int, Span]]:
        """Line from 0, and what to colour in it."""
        name = PurePosixPath(path).name
        if not text or len(text) > MAX_CHARS or time.monotonic() > until:
            return []
        key = (PurePosixPath(path).suffix or name, text)
        if key not in self._known:
            sent = text.replace("\r", " ")  # a lexer would take it for the end of a line
            said = await asyncio.to_thread(self._outliner.tokens, name, sent, 0)
            self._known[key] = [
                (line, (column - 1, column - 1 + len(part), dress))
                for line, column, part, kind in said
                if (dress := _class(kind))
            ]
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return self._known[key]


def _class(kind: str) -> str:
    return next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "")
