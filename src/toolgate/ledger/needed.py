"""Which calls the journal still needs the images of: those that run, and those whose outcome is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgate.ledger.ledger import Ledger


async def calls_needed(ledger: Ledger) -> frozenset[str]:
    """Caught up with every process. Recovery and `ledger resolve` may have to write what these planned."""
    return await ledger.look(lambda state, now: frozenset(state.live) | frozenset(state.doubts))
