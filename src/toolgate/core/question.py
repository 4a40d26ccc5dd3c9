"""A Question: what a human is asked about one call, as every channel shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.effects import Effects


@dataclass(frozen=True, slots=True)
class Question:
    """An open question as a channel shows it."""

    id: str
    digest: str
    tool: str
    args: Mapping[str, Any]
    persona: str
    preview: str
    effects: Effects
    reason: str
    rule: str
    asked_at: int
    expires_at: int
    undoable: bool
    state: str = "open"
    conversation: str = ""
    rationale: str = ""
    channels: tuple[str, ...] = ()
    again: str = ""
    repeats: tuple[str, ...] = ()
    """Arguments that the preview shows already."""
    findings: tuple[Mapping[str, Any], ...] = ()
    """What the content scan found in what would be written."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Secrets of the vault that are named where their values stand, each with its fingerprint."""
    unkept: str = ""
    """Why it cannot be undone, where it otherwise could."""
    cut: int = 0
    """Where this holds only the beginning: bytes of the whole, which `Desk.question` loads."""
    problem: str = ""
    """Why the whole cannot be shown; then it cannot be approved."""
