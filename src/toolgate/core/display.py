"""Text from outside, made safe to show: nothing invisible, nothing that moves the cursor or reorders the line."""

from __future__ import annotations

import unicodedata

_KEEP = frozenset("\n\t")


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Control, bidirectional and other invisible characters as `⟨U+XXXX⟩`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _plain(char, keep_lines) else f"⟨U+{ord(char):04X}⟩" for char in text)


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates, as in undecodable file names) as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _plain(char: str, keep_lines: bool) -> bool:
    if char in _KEEP:
        return keep_lines
    category = unicodedata.category(char)
    # Cc control, Cf format (bidirectional marks, zero-width, tags), Cs surrogates, Zl/Zp line separators
    return category not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
