"""Code: `code.*` reads, lists, searches and outlines source files and their history. It changes nothing."""

from __future__ import annotations

from toolgate.feature import Family, Feature

FEATURE = Feature(
    name="code",
    summary="Read, search and outline source code, and its history",
    families=(
        Family("toolgate.features.code.listing:tools", ("code.list",), needs_files=True),
        Family("toolgate.features.code.reading:tools", ("code.outline", "code.read"), needs_files=True),
        Family("toolgate.features.code.searching:tools", ("code.search", "fs.search"), needs_files=True),
        Family(
            "toolgate.features.code.history:tools",
            ("code.blame", "code.diff", "code.log", "code.show"),
            needs_files=True,
        ),
    ),
    renderings="toolgate.features.code.rendering:RENDERINGS",
    drawings="toolgate.features.code.drawings:DRAWINGS",
    docs="docs/tools-code.md",
)
