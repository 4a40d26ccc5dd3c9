"""Texts as tools handle them: the canonical form that hashes compare, and the ends of lines."""

from __future__ import annotations

from typing import Literal

from toolgate.core.late_pattern import late_pattern

LineEnd = Literal["lf", "crlf"]
_LONE_LF = late_pattern(r"(?<!\r)\n")


def canonical_text(text: str) -> str:
    """LF only, no white space at the ends of lines, a newline at the end. An empty text stays empty."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = "\n".join(line.rstrip() for line in plain.split("\n"))
    return lines if not lines or lines.endswith("\n") else lines + "\n"


def line_end(text: str) -> LineEnd | None:
    """What every line ends with; None where there is only one line, or where they differ."""
    crlf = text.count("\r\n")
    lone = text.count("\n") - crlf
    if crlf and not lone:
        return "crlf"
    return "lf" if lone and not crlf else None


def with_line_end(text: str, wanted: LineEnd | None) -> str:
    """A text that fits into one whose lines end so. One that mixes them, or has CRLF itself, is left alone."""
    if wanted != "crlf" or "\r" in text:
        return text
    return _LONE_LF.sub("\r\n", text)
