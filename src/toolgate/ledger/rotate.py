"""A new key for what follows. The old ones stay: they verify what they sealed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.core.event import Rotated
from toolgate.ledger import keys as keyfile
from toolgate.ledger.ledger import Ledger, View, Work, no_question


async def rotate(ledger: Ledger, path: Path, by: str) -> tuple[int, int]:
    """The new version and the event that says so. The file has it before the journal needs it."""
    with _alone(path):
        keys = keyfile.load(path).rotated()
        keyfile.save(keys, path)
        ledger.keys = keys

        def decide(view: View) -> None:
            view.emit(Rotated(version=keys.current, by=by))

        work = Work(decide, refs=no_question)  # all that stands is sealed anew
        await ledger.do(work)
    return keys.current, work.rows[0].seq


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two rotations at once must not give two keys one version."""
    handle = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
