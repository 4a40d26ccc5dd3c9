"""What a call left, file by file: as it was before, and as it is after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOTHING = "nothing"
_DEEDS = {"create": "created", "modify": "changed", "delete": "deleted"}


@dataclass(frozen=True)
class Artifact:
    path: str
    deed: str
    before: str
    after: str
    facts: list[tuple[str, str]]


def artifact(entry: Mapping[str, Any]) -> Artifact:
    """From an entry of a Change's manifest, whose keys are recorded in the order of the alphabet."""
    op, size = str(entry.get("op", "")), entry.get("size")
    facts = [("size", f"{size:,} bytes")] if isinstance(size, int) else []
    modes = [_mode(entry.get(name)) for name in ("before_mode", "after_mode")]
    if modes[0] != modes[1]:
        facts.append(("mode", " → ".join(mode for mode in modes if mode)))
    return Artifact(
        str(entry.get("path", "")).removeprefix("project:"), _DEEDS.get(op, op),
        str(entry.get("before") or NOTHING), str(entry.get("after") or NOTHING), facts,
    )  # fmt: skip


def _mode(bits: Any) -> str:
    return f"{bits:o}" if isinstance(bits, int) else ""
