"""What became of a key, however long ago: the projection forgets claims after 48 hours, the journal does not."""

from __future__ import annotations

from toolgate.core.records import dataclass
from toolgate.ledger.ledger import Ledger, View, Work


@dataclass(frozen=True, slots=True)
class Claimed:
    call: str
    state: str
    """`started`, `committed`, `failed`, `unknown` or, as a human said afterwards, `happened`."""
    live: bool
    """Whether a repeated call still gets its stored result."""


async def claim_of(ledger: Ledger, persona: str, key: str) -> Claimed | None:
    """The last call that a persona made with this key."""
    scope = f"key/{persona}/{key}"

    def decide(view: View) -> Claimed | None:
        found = view.claims.get(scope)
        return None if found is None else Claimed(found[1], found[3], found[5] > view.now)

    work = Work(decide, durable=False)
    work.scopes = (scope,)
    return await ledger.do(work)
