"""The `undone` rows that stand beside the row that settles an undo, whoever comes to settle it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolgate.core.event import Undone
from toolgate.ledger.effects import undoes_of

if TYPE_CHECKING:
    from toolgate.storage.port import Row


def undone_ref(event: int) -> str:
    return f"event:{event}"


def undone_rows(started: Row) -> Iterable[Undone]:
    """One for each event that this call takes back; none if it takes back nothing."""
    for event in undoes_of(json.loads(started.body)):
        yield Undone(
            call=started.call, persona=started.persona, tool=started.tool, conversation=started.conversation,
            ref=undone_ref(event), event=event, by=started.persona,
        )  # fmt: skip
