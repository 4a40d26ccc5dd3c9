"""The mounts whose names are known: learned in the background once one is searched again, for no search to wait."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from toolgate.core.records import dataclass, field
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.names import Names, learn
from toolgate.workspace.search.query import EXCLUDED
from toolgate.workspace.search.selection import Start
from toolgate.workspace.watch import Watches

log = logging.getLogger("toolgate.search")
AGAIN_S = 10.0
"""A tree in which directories are made and unmade is not learned anew more often than this."""
IN_VAIN_S = 300.0
"""And one that could not be known, not more often than this."""


@dataclass(slots=True)
class _Mount:
    names: Names | None = None
    not_before: float | None = None
    """When it may be learned; None before its first search."""
    learning: threading.Thread | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


_known: WeakKeyDictionary[Mounts, dict[str, _Mount]] = WeakKeyDictionary()


def names_of(mounts: Mounts, starts: Sequence[Start]) -> Names | None:
    """The names of the mount that these starts are in. None where they are not known, this time."""
    first = starts[0]
    if not mounts.watches.allowed or not all(start.directory for start in starts):
        return None
    if not first.selection.excluded.plain.issuperset(EXCLUDED):
        return None  # it looks into directories of which nothing was learned
    mount = _known.setdefault(mounts, {}).setdefault(first.mount, _Mount())
    names = mount.names
    if names is not None and names.selection.rules is first.selection.rules and names.shut() is not None:
        return names if all(names.cover(start.relative) for start in starts) else None
    _want(mount, first, mounts.watches)
    return None


def learned(mounts: Mounts) -> None:
    """Wait until nothing is being learned; for measurements and tests."""
    for mount in list(_known.get(mounts, {}).values()):
        if mount.learning is not None:
            mount.learning.join()


def _want(mount: _Mount, start: Start, watches: Watches) -> None:
    """From the second search on: watching costs a walk."""
    now = time.monotonic()
    with mount.lock:
        if mount.not_before is None:
            mount.not_before = now
            return
        if now < mount.not_before or (mount.learning is not None and mount.learning.is_alive()):
            return
        mount.not_before = now + AGAIN_S
        try:
            handle = os.dup(start.root.handle)
        except OSError:
            return  # no more handles: this search shall not be the one to fail
        thread = threading.Thread(target=_learn, args=(mount, start, handle, watches), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads, or this process is about to end
            os.close(handle)
        else:
            mount.learning = thread


def _learn(mount: _Mount, start: Start, handle: int, watches: Watches) -> None:
    names = None
    try:
        with held(handle):
            names = learn(handle, start.selection.rules, lambda: watches.ended)
    except Exception:
        log.exception("the names of the mount %s cannot be learned", start.mount)
    if names is None:
        mount.not_before = time.monotonic() + IN_VAIN_S
        return
    if mount.names is not None:
        mount.names.watch.close()
    watches.keep(names.watch)
    mount.names = names
