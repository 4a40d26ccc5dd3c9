"""Text from outside, made safe to show: nothing invisible, nothing that moves the cursor or reorders the line.

How much of it is shown otherwise than it is depends on what for: to decide on it (`visible`), to read it (`legible`), or to
hand it to a program (`harmless`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from toolgate.core.late_pattern import late_pattern

_PIECE = 64 << 10
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


# What may end at a terminal through any pipe and speak to it (C0, C1), reorder a line, smuggle words past a reader (tags)
# or be no UTF-8. The second also has what ends a line.
_HARMFUL = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f"
_IN_TEXT = late_pattern(f"[{_HARMFUL}]")
_IN_LINE = late_pattern(f"[{_HARMFUL}\n\f\r\u2028\u2029]")


def visible(text: str, *, keep_lines: bool = False) -> str:
    """For a human who decides: control, bidirectional, blank and other invisible characters as `⟨U+XXXX⟩`."""
    if text.isascii() and text.isprintable():
        return text
    return spelled_out(text, lambda char: _plain(char, keep_lines))


def spelled_out(text: str, plain: Callable[[str], bool]) -> str:
    """Each character that is not plain as `⟨U+XXXX⟩`. Asked once for each kind of character in a piece; in pieces, so that
    no step of it stops other threads for long."""
    made = []
    for at in range(0, len(text), _PIECE):
        piece = text[at : at + _PIECE]
        odd = {ord(char): _spelled(char) for char in set(piece) if not plain(char)}
        made.append(piece.translate(odd) if odd else piece)
    return "".join(made)


def legible(text: str, *, keep_lines: bool = False) -> str:
    """For reading at a terminal: as `visible`, but tabs, all spaces and what puts emoji together stay ordinary text."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char
        if char == "\t" or _plain(char, keep_lines) or (char > "\x7f" and _ordinary(text, at))
        else _spelled(char)
        for at, char in enumerate(text)
    )


def harmless(text: str, *, keep_lines: bool = False) -> str:
    """For a pipe: the text as it is, but for what could speak to a terminal at its end, reorder a line or hide words."""
    return (_IN_TEXT if keep_lines else _IN_LINE).sub(lambda found: _spelled(found[0]), text)


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates, as in undecodable file names) as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def key_shown(key: str) -> str:
    """A key of somebody's file, for a message: short, and of an address only its kind, as it may hold a password."""
    scheme, colon, _ = key[:80].partition("://")
    return f"{scheme}://…" if colon else scheme


def _spelled(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"


def _plain(char: str, keep_lines: bool) -> bool:
    if char in _KEEP:
        return keep_lines
    if char == " ":
        return True
    # Cc control, Cf format (bidirectional marks, zero-width, tags), Cs surrogates, Zl/Zp line separators,
    # Zs every other space
    category = unicodedata.category(char)
    return char not in _BLANK and category not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")


def _ordinary(text: str, at: int) -> bool:
    """Whether a space, selector or joiner stands where writing puts it. A run of selectors can hold a message: it does not."""
    char, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if unicodedata.category(char) == "Zs":
        return True
    if unicodedata.name(char, "").startswith("VARIATION SELECTOR"):
        return (before > "\x7f" and _plain(before, False)) or after == "\u20e3"  # ⃣ makes a key of a digit
    return char == "\u200d" and _is_picture(after) and (before == "\ufe0f" or _is_picture(before))


def _is_picture(char: str) -> bool:
    return char > "\x7f" and char not in _BLANK and unicodedata.category(char) in ("So", "Sk", "Sm")
