"""What the content scan found in something that is about to be written: where, by which rule, never the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.core.paths import MountPath

FindingKind = Literal["secret", "payload", "hidden"]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
RECORDED = 100
"""How many of a call's findings are recorded and shown one by one; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: FindingKind
    rule: str
    path: MountPath
    line: int
    """From 1; 0 means the file's name itself, or a file that has no lines."""
    column: int
    """From 1; 0 means too far into a line of many thousand characters to be counted."""
    excerpt: str
    """What a human needs to recognise it. It never shows a secret."""

    @property
    def word(self) -> str:
        """As rules of the policy name it: `secret:aws-access-key`."""
        return f"{self.kind}:{self.rule}"

    @property
    def where(self) -> str:
        column = f":{self.column}" if self.column else ""
        return f"{self.path.shown}:{self.line}{column}" if self.line else self.path.shown

    def described(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "rule": self.rule, "path": self.path.shown, "line": self.line,
            "column": self.column, "excerpt": self.excerpt,
        }  # fmt: skip


def recorded(findings: Sequence[Finding]) -> list[Mapping[str, Any]]:
    """As results, events and questions hold them; what is beyond the limit is counted in a last entry."""
    shown: list[Mapping[str, Any]] = [finding.described() for finding in findings[:RECORDED]]
    return [*shown, {"more": len(findings) - RECORDED}] if len(findings) > RECORDED else shown


def named(findings: Sequence[Finding], most: int = 3) -> str:
    """In one sentence: rules and places."""
    listed = ", ".join(f"{finding.rule} at {finding.where}" for finding in findings[:most])
    rest = len(findings) - most
    return listed + (f" and {rest} more" if rest > 0 else "")
