"""Text from outside, as HTML: escaped, and with nothing in it that cannot be seen."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Any

from markupsafe import Markup, escape

from toolgate.core.display import visible
from toolgate.core.lookalikes import positions


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
