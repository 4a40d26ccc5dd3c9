"""The database's log is folded into its file, also when one caller writes without a pause."""

from __future__ import annotations

from pathlib import Path

from toolgate.core.event import Noted
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.sqlite import FOLD_EVERY, SqliteBackend

MEGABYTE = 1 << 20


def note(view: View) -> None:
    view.emit(Noted(type="observation", rationale="x" * 4000))


async def test_a_lone_writer_that_never_pauses_does_not_let_the_log_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(SqliteBackend(path), Keys.new())
    await ledger.open()
    log = tmp_path / "ledger.db-wal"
    sizes = []
    for _ in range(6):
        for _ in range(FOLD_EVERY):
            await ledger.do(Work(note, durable=False))
        sizes.append(log.stat().st_size)
    await ledger.close()
    assert max(sizes) < 12 * MEGABYTE, sizes  # unfolded, it would hold some 30
    assert path.stat().st_size > 4 * MEGABYTE
