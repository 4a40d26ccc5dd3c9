"""JobsPort: what jobs can do with a gate, which is what their persona may do. They have no other way to do anything."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Trail
from toolgate.core.errors import InvalidArgs, NotAllowed
from toolgate.core.names import HUMAN
from toolgate.core.result import Result
from toolgate.gate.reconcile import reconcile_dead
from toolgate.gate.stored import Claimed, claim_of

if TYPE_CHECKING:
    from toolgate.facade import Gate

Progress = Callable[[float, str], None]


class JobsPort:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def call(
        self, tool: str, args: Mapping[str, Any], *, persona: str, key: str, conversation: str, job: str,
        reason: str, progress: Progress,
    ) -> Result:  # fmt: skip
        """One call through the gate, handed back as `pending` where it asks."""
        trail = Trail(conversation=conversation, transaction=job, reason=reason)
        return await self._gate.pipeline.call(
            tool, args, persona, key=key, trail=trail, wait=False, progress=progress, own_key=True
        )

    async def answered(self, question: str) -> None:
        """Until the question is approved; a refusal and an expiry raise."""
        await self._gate.services.desk.wait(question)

    async def claim(self, persona: str, key: str) -> Claimed | None:
        """What became of an earlier call with this key."""
        return await claim_of(self._gate.services.ledger, persona, key)

    async def reconcile(self) -> None:
        """Settle what dead processes left running."""
        await reconcile_dead(self._gate.services)

    def seal(self, text: str) -> str:
        """A keyed hash: only a gate of this project can have made it."""
        key = self._gate.services.ledger.keys.derived("jobs")
        return hmac.new(key, text.encode(), "sha256").hexdigest()

    async def check(self, tool: str, args: Mapping[str, Any], persona: str) -> None:
        """Refuse now what could never run: an unknown tool or persona, wrong arguments, secrets in them."""
        policy = self._gate.policy
        if persona == HUMAN:
            raise NotAllowed("a job runs when nobody is there, so it is never the human's", "name a persona")
        if persona not in policy.personas:
            raise NotAllowed(f"there is no persona {persona[:80]!r}", f"the personas are: {policy.listed()}")
        facts = await self._gate.facts(tool, args, persona)
        if self._gate.services.redactor.mask(facts.tool, facts.args) is not facts.args:
            raise InvalidArgs(
                f"the arguments of {facts.tool.name} hold a secret, and a job's arguments are kept as they are",
                "hand over secrets by name, or make the call by itself",
            )
