"""From a gate to its jobs: the hands they work with, and where they are kept."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.context import Trail
from toolgate.core.errors import InvalidArgs, NotAllowed
from toolgate.core.names import HUMAN
from toolgate.core.result import Result
from toolgate.feature import FeatureContext
from toolgate.features.jobs.gate_port import Progress
from toolgate.features.jobs.jobs import Jobs
from toolgate.features.jobs.place import Place
from toolgate.gate.reconcile import reconcile_dead
from toolgate.ledger.claims import Claimed, claim_of
from toolgate.storage.sqlite import SqliteBackend

if TYPE_CHECKING:
    from toolgate.facade import Gate


class GateHands:
    """All that a job can do is what its persona may do through the gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def call(
        self, tool: str, args: Mapping[str, Any], *, persona: str, key: str, conversation: str, job: str,
        reason: str, progress: Progress,
    ) -> Result:  # fmt: skip
        trail = Trail(conversation=conversation, transaction=job, reason=reason)
        return await self._gate.pipeline.call(
            tool, args, persona, key=key, trail=trail, wait=False, progress=progress, own_key=True
        )

    async def answered(self, question: str) -> None:
        await self._gate.services.desk.wait(question)

    async def claim(self, persona: str, key: str) -> Claimed | None:
        return await claim_of(self._gate.services.ledger, persona, key)

    async def reconcile(self) -> None:
        await reconcile_dead(self._gate.services)

    def seal(self, text: str) -> str:
        key = self._gate.services.ledger.keys.derived("jobs")
        return hmac.new(key, text.encode(), "sha256").hexdigest()

    async def check(self, tool: str, args: Mapping[str, Any], persona: str) -> None:
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


def open_jobs(context: FeatureContext) -> Jobs:
    """In the same PostgreSQL as the ledger, or beside its file; nowhere, if it is kept in memory."""
    gate, spec = context.gate, context.config
    backend = gate.services.ledger.backend
    dsn = getattr(backend, "dsn", "")
    place = Place(dsn=dsn) if dsn else None
    if isinstance(backend, SqliteBackend):
        place = Place(backend.path.parent)
    jobs = Jobs(place, GateHands(gate), spec.concurrency, spec.keep_days)
    context.stack.push_async_callback(jobs.close)
    return jobs


async def run(context: FeatureContext) -> None:
    """Beside the server, where the owner wants it."""
    if context.config.run:
        await context.gate.jobs.stand_by()
