"""Serving a read from the cache, and keeping what a read gave, with what proves it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolgate.core.effects import FILE_WORDS
from toolgate.core.evidence import Evidence, gather
from toolgate.core.records import dataclass
from toolgate.gate.deadline import Deadline, Late
from toolgate.gate.flow import Done, Flow, Services

if TYPE_CHECKING:
    from toolgate.gate.cache import Key

log = logging.getLogger("toolgate.gate")


@dataclass(slots=True)
class Serving:
    """One read that may be served from the cache, or kept for the next one."""

    services: Services
    flow: Flow
    key: Key
    evidence: Evidence | None = None

    @classmethod
    def of(cls, services: Services, flow: Flow) -> Serving:
        assert flow.call is not None
        assert flow.rules is not None
        # With the policy in the key, what was read under other rules is never looked at again.
        key = (flow.call.digest, flow.rules.fingerprint, services.redactor.version)
        return cls(services, flow, key)

    async def served(self, seconds: float) -> bool:
        """Proving takes its time too, and has no more of it than the tool."""
        try:
            with Deadline(seconds):
                kept = await self.services.cache.get(self.key)
        except Late:
            return False
        if kept is None or _standing(self.services) != self.key[1:]:
            return False
        import orjson

        self.flow.outcome = Done(orjson.loads(kept), cached=True)
        return True

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Around the run: what it reads is noted."""
        assert self.flow.tool is not None
        again = self.services.cache.again(self.key, self.flow.tool.cache_s)
        with gather(again) as self.evidence:
            yield

    def keep(self, value: object) -> None:
        """As text: whoever gets it may do with it what they like."""
        tool, evidence = self.flow.tool, self.evidence
        if tool is None or evidence is None:
            return
        if evidence.spoiled:
            if evidence.again:
                self.services.cache.in_vain(self.key)
            return
        if not all(proof.stood() for proof in evidence.proofs):
            return
        facts = self.flow.facts
        if facts is not None and not evidence.proofs and not FILE_WORDS.isdisjoint(facts.effects.reads):
            return  # from files, and nothing says which
        if _standing(self.services) != self.key[1:]:
            return  # read under the old rules or the new ones: nobody knows
        import orjson

        try:
            self.services.cache.put(self.key, orjson.dumps(value), tool.cache_s, evidence.proofs)
        except orjson.JSONEncodeError:
            log.debug("a result is not cached, because JSON cannot hold it")


def _standing(services: Services) -> tuple[str, int]:
    return services.rules().fingerprint, services.redactor.version
