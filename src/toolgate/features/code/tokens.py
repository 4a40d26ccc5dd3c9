"""Syntax tokens, for faces that colour what they show."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict  # typing's own, before 3.12, is not enough for pydantic

from toolgate.workspace.outline.outline import Outliner

MAX_CHARS = 64 << 10
"""Lexers are regular expressions that were not written for hostile files; they get only so much."""


class SyntaxToken(TypedDict):
    line: int
    column: int
    text: str
    type: str


def syntax_tokens(outliner: Outliner, path: str, lines: Sequence[str], first: int) -> list[SyntaxToken]:
    """The tokens of some lines, without white space. Empty where the language is not known."""
    text = "\n".join(lines)[:MAX_CHARS]
    found = outliner.tokens(path.rpartition("/")[2], text, first)
    return [
        {"line": line, "column": column, "text": part, "type": kind} for line, column, part, kind in found
    ]
