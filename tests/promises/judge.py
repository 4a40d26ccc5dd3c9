"""An independent opinion about what may run. It shares no code with the gate: what humans said is kept here as they
said it, what ran comes from the witness, and the journal is read as plain rows."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import rfc8785

from gates import NOON

SECOND = 1_000_000
TWO_DAYS = 48 * 3600 * SECOND
EFFECTFUL = ("t.act", "t.fail", "t.write")


@dataclass
class Approval:
    """What a human saw and approved."""

    tool: str
    args: dict[str, Any]
    persona: str
    digest: str
    expires: int
    rule: str
    used: bool = False


@dataclass
class Grant:
    tool: str
    persona: str
    glob: str
    paths: tuple[str, ...]
    conversation: str
    uses: int
    expires: int
    used: int = 0
    revoked: bool = False

    def covers(self, row: Any, body: dict[str, Any]) -> bool:
        args = body["args"]
        return (
            not self.revoked
            and (row.tool, row.persona) == (self.tool, self.persona)
            and row.at < self.expires
            and (not self.uses or self.used < self.uses)
            and (not self.conversation or row.conversation == self.conversation)
            and (not self.glob or fnmatch.fnmatchcase(str(args.get("x", args.get("text", ""))), self.glob))
            and (
                not self.paths
                or all(any(fnmatch.fnmatchcase(p, g) for g in self.paths) for p in _paths(args))
            )
        )


def _paths(args: dict[str, Any]) -> list[str]:
    return [str(args["path"]).removeprefix("project:")] if "path" in args else ["(none)"]


@dataclass
class Judge:
    mode: str = "ask"
    rule: str = "rule:asks"
    paused: set[str] = field(default_factory=set)
    now: int = NOON
    approvals: dict[str, Approval] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    grants: dict[str, Grant] = field(default_factory=dict)
    judged: int = 0
    seen: int = 0

    def judge(self, ran: list[tuple[str, str, str]], rows: list[Any]) -> None:
        """After every step: everything that ran in it was permitted, and the journal tells the same story."""
        started = {row.call: row for row in rows if row.kind == "started"}
        for call, tool, argument in ran[self.judged :]:
            assert call in started, f"{tool} ran without a started row"
            self._permitted(started[call], tool, argument)
        self.judged = len(ran)
        self._once(ran, rows)
        self._agree(ran, rows)

    def _permitted(self, row: Any, tool: str, argument: str) -> None:
        body = json.loads(row.body)
        args = body["args"]
        assert row.tool == tool
        assert argument == (
            args["x"] if "x" in args else f"{args['path'].removeprefix('project:')}={args['text']}"
        )
        assert body["digest"] == digest(row, body), "the digest is not that of what ran"
        assert self.mode != "broken", f"{tool} ran under a policy that cannot be read"
        assert not self.paused & {"", row.persona}, f"{tool} ran for {row.persona}, who is paused"
        if tool not in EFFECTFUL:
            return
        assert self.mode != "deny", f"{tool} ran under a policy that denies it"
        if self.mode == "allow":
            return
        self._consented(row, body)

    def _consented(self, row: Any, body: dict[str, Any]) -> None:
        approval, grant = self.approvals.get(row.ref), self.grants.get(row.ref)
        assert approval or grant, f"{row.tool} ran without consent ({row.ref!r})"
        if approval is not None:
            assert not approval.used, f"approval {row.ref} was used twice"
            assert row.ref not in self.refused
            assert approval.digest == body["digest"], "what ran is not what was approved"
            assert (approval.tool, approval.persona, approval.args) == (row.tool, row.persona, body["args"])
            assert row.at < approval.expires, "the approval had expired"
            assert approval.rule == self.rule, "it was approved under another rule"
            approval.used = True
        elif grant is not None:
            assert grant.covers(row, body), f"the grant {row.ref} does not cover it"
            grant.used += 1

    def _once(self, ran: list[tuple[str, str, str]], rows: list[Any]) -> None:
        calls = Counter(call for call, _, _ in ran)
        assert not calls or max(calls.values()) == 1, "a call ran twice"
        for kinds in (("started",), ("committed", "failed", "unknown")):
            told = Counter(row.call for row in rows if row.kind in kinds)
            assert not told or max(told.values()) == 1, f"a call is {kinds} twice"
        used = Counter(row.ref for row in rows if row.kind == "started" and row.ref.startswith("q_"))
        assert not used or max(used.values()) == 1, "an approval was used twice"
        self._keys(ran, rows)

    def _keys(self, ran: list[tuple[str, str, str]], rows: list[Any]) -> None:
        witnessed = {call for call, _, _ in ran}
        ends = {row.call: row.kind for row in rows if row.kind in ("committed", "failed", "unknown")}
        last: dict[str, Any] = {}
        for row in rows:
            if row.kind != "started" or not row.claim or row.call not in witnessed:
                continue
            before = last.get(row.claim)
            if before is not None and row.at < before.at + TWO_DAYS:
                assert ends.get(before.call) == "failed", f"the key {row.claim} ran twice"
            last[row.claim] = row

    def _agree(self, ran: list[tuple[str, str, str]], rows: list[Any]) -> None:
        """The witness and the committed rows name the same calls."""
        committed = {row.call for row in rows if row.kind == "committed" and row.tool.startswith("t.")}
        failed = {row.call for row in rows if row.kind == "failed" and row.tool.startswith("t.")}
        witnessed = {call for call, _, _ in ran}
        assert committed <= witnessed, "the journal says committed, and nothing ran"
        assert witnessed <= committed | failed, "something ran, and the journal does not say how it ended"


def digest(row: Any, body: dict[str, Any]) -> str:
    """As docs/ledger.md describes it, computed with another library."""
    identity = {
        "tool": row.tool,
        "definition": body["definition"],
        "args": body["args"],
        "persona": row.persona,
    }
    if body.get("change"):
        identity["change"] = body["change"]
    return "sha256:" + hashlib.sha256(rfc8785.dumps(identity)).hexdigest()
