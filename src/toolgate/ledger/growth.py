"""How the ledger grows: bytes per persona and period, what is kept beside it, how large all of it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgate.core.clock import SECOND
from toolgate.ledger.stats import PERIODS

if TYPE_CHECKING:
    from toolgate.storage.port import Backend


async def growth(backend: Backend, period: str, now: int, persona: str = "") -> dict[str, Any]:
    seconds = PERIODS[period]
    grown = await backend.grown(now - seconds * SECOND if seconds else 0)
    kept = await backend.attachments()
    days = seconds / 86400 if seconds else 0
    return {
        "database_bytes": await backend.size(),
        "bytes": sum(one.size for one in grown if persona in ("", one.persona)),
        "personas": [
            {"persona": one.persona, "events": one.events, "bytes": one.size}
            | ({"bytes_per_day": round(one.size / days)} if days else {})
            for one in grown
            if persona in ("", one.persona)
        ],
        "kept": [
            {"persona": one.persona, "events": one.events, "bytes": one.size}
            for one in kept
            if persona in ("", one.persona)
        ],
    }
