"""The table `attachments`: whole bodies of events that are too long for their rows.

It is under no chain, because what it holds is let go in time; the row has the hash. A body is there before its row
is, in the same transaction. An open question's is never let go.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolgate.core.named_tuples import NamedTuple
from toolgate.storage.schema import marks

COLUMNS = ("seq", "persona", "expires", "bytes", "body")
_FREE = "seq NOT IN (SELECT seq FROM questions)"
SELECT = "SELECT body FROM attachments WHERE seq = {}"
DUE = f"DELETE FROM attachments WHERE expires <= {{}} AND {_FREE}"
KEPT = (
    "SELECT persona, COUNT(*), CAST(SUM(bytes) AS BIGINT) FROM attachments GROUP BY persona ORDER BY persona"
)
GROWN = (
    "SELECT persona, COUNT(*), CAST(SUM(LENGTH(body) + LENGTH(hash) * 3) AS BIGINT) FROM journal "
    "WHERE {} GROUP BY persona ORDER BY persona"
)
"""A row's size, nearly: its body, hash, link and seal."""
_OVER = f"""
  DELETE FROM attachments WHERE seq IN (SELECT seq FROM (
    SELECT seq, SUM(bytes) OVER (ORDER BY seq DESC) AS total FROM attachments WHERE persona = {{}} AND {_FREE}
  ) AS mine WHERE total > CAST({{}} AS BIGINT))"""


class Attachment(NamedTuple):
    seq: int
    """The event whose body this is."""
    persona: str
    expires: int
    bytes: int
    body: str


class Grown(NamedTuple):
    """What one persona brought into the journal."""

    persona: str
    events: int
    size: int


class AttachedBytes(NamedTuple):
    """What is kept for one persona."""

    persona: str
    events: int
    size: int


def insert(mark: str) -> str:
    return f"INSERT INTO attachments ({', '.join(COLUMNS)}) VALUES ({', '.join(marks(mark, len(COLUMNS)))})"


def trims(
    attached: Sequence[Attachment], now: int, budget: int, mark: str
) -> list[tuple[str, tuple[int | str, ...]]]:
    """What goes when something comes: whatever is due, and the oldest of a persona that has more than its budget."""
    first, second = marks(mark, 2)
    over = _OVER.format(first, second)
    personas = dict.fromkeys(one.persona for one in attached)
    return [(DUE.format(first), (now,)), *((over, (persona, budget)) for persona in personas)]
