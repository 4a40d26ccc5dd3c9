"""Which images the journal still needs: those of calls that run, and of calls whose outcome is unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from toolgate.core.change import DIRECTORY
from toolgate.ledger.ledger import Ledger
from toolgate.storage.port import Filter, Row


async def images_needed(ledger: Ledger) -> frozenset[str]:
    """Caught up with every process. Recovery and `ledger resolve` may have to write any of these."""
    live, doubts = await ledger.look(
        lambda state, now: ([item.row for item in state.live.values()], list(state.doubts))
    )
    rows = list(live)
    for call in doubts:
        rows += [row for row in await ledger.backend.rows(Filter(call=call)) if row.kind == "started"]
    return frozenset(_hashes(rows))


def _hashes(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        for entry in json.loads(row.body).get("change", ()):
            yield from (entry[side] for side in ("before", "after") if entry[side] not in (None, DIRECTORY))
