"""What policy says of a call: one closed word, the reason, and the rule that said it."""

from __future__ import annotations

from enum import StrEnum

from toolgate.core.records import dataclass


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
