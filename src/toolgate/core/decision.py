"""What policy says of a call: one closed word, the reason, and the rule that said it; and the Question that a human is
asked where the word is `ask`, as every channel shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.core.effects import Effects


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        return ("allow", "ask", "deny").index(self.value)


@dataclass(frozen=True, slots=True)
class Decision:
    verdict: Verdict
    reason: str
    rule: str
    """Stable name of the line that decided: `rule:source-changes`, `deny:builder`, `phase:observe/reading`, `silence`."""
    step: int = 6
    """Which of the six steps of evaluation spoke; 7 if the content scan made it stricter."""
    channels: tuple[str, ...] = ()
    """Where the answer must come from; empty means anywhere a human can answer."""
    singly: bool = False
    """Asked because of what was found in the content: only an approval of this very call counts, no grant."""
    fix: str = ""
    """What the owner can write into toolgate.yaml so that it would be otherwise, where one line does it."""

    def stricter(self, other: Decision) -> Decision:
        return other if other.verdict.strictness > self.verdict.strictness else self


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
