"""How matches are told: one sentence, then by file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def group(matches: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    """The matching lines that are shown, by file; without line numbers their places among the matches, from 1."""
    found: dict[str, list[int]] = {}
    for place, match in enumerate(matches, 1):
        found.setdefault(match["file"], []).append(match.get("line", place))
    return found


def search_summary(data: Mapping[str, Any]) -> str:
    total, files, shown = data["total_matches"], data["files_matched"], len(data["matches"])
    least = "at least " if data["truncated"] and shown == total else ""
    some = f", the first {shown:,} shown" if shown < total else ""
    return f"Found {least}{counted(total, 'match', 'matches')} in {counted(files, 'file', 'files')}{some}"


def counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
