"""Syntax tokens, for faces that colour what they show."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict  # typing's own, before 3.12, is not enough for pydantic

MAX_CHARS = 64 << 10
"""Lexers are regular expressions that were not written for hostile files; they get only so much."""


class SyntaxToken(TypedDict):
    line: int
    column: int
    text: str
    type: str


def syntax_tokens(path: str, lines: Sequence[str], first: int) -> list[SyntaxToken]:
    """The tokens of some lines, without white space. Empty where the language is not known."""
    from pygments.lexers import find_lexer_class_for_filename
    from pygments.token import Token, Whitespace

    lexer = find_lexer_class_for_filename(path.rpartition("/")[2])
    text = "\n".join(lines)[:MAX_CHARS]
    if lexer is None:
        return []
    found: list[SyntaxToken] = []
    line, column = first, 1
    for kind, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        for index, part in enumerate(value.split("\n")):
            if index:
                line, column = line + 1, 1
            if part.strip() and kind not in Whitespace:
                name = ".".join(kind) if kind is not Token else "Token"
                found.append({"line": line, "column": column, "text": part, "type": name or "Text"})
            column += len(part)
    return found
