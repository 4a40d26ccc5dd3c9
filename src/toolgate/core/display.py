"""Text from outside, made safe to show: nothing invisible, nothing that moves the cursor or reorders the line."""

from __future__ import annotations

import unicodedata

_KEEP = frozenset("\n\t")
# What shows as nothing or as a blank although its category is that of a letter, mark or symbol: the grapheme joiner,
# fillers of Hangul and Khmer, variation selectors, the empty Braille pattern.
_BLANK = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800),
        (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)  # fmt: skip


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Control, bidirectional, blank and other invisible characters as `⟨U+XXXX⟩`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _plain(char, keep_lines) else f"⟨U+{ord(char):04X}⟩" for char in text)


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates, as in undecodable file names) as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def key_shown(key: str) -> str:
    """A key of somebody's file, for a message: short, and of an address only its kind, as it may hold a password."""
    scheme, colon, _ = key[:80].partition("://")
    return f"{scheme}://…" if colon else scheme


def _plain(char: str, keep_lines: bool) -> bool:
    if char in _KEEP:
        return keep_lines
    if char == " ":
        return True
    # Cc control, Cf format (bidirectional marks, zero-width, tags), Cs surrogates, Zl/Zp line separators,
    # Zs every other space
    category = unicodedata.category(char)
    return char not in _BLANK and category not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
