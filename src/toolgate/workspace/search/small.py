"""Searches that are over before a thread would have begun.

A search that was small and quick is made again where its caller stands, for a minute. Nothing that could wait for
another machine or another process is touched there: all of it was found on one local file system. What has grown
since is given up before it takes long, and searched as any other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from toolgate.core.paths import MountPath
from toolgate.workspace import inotify
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.content import TooMuch, Unequal, matcher
from toolgate.workspace.search.local import Local
from toolgate.workspace.search.query import Found, Query
from toolgate.workspace.search.starts import Start, opened
from toolgate.workspace.search.tree import Memory, TooMany, Walk

FILES, NAMES, BYTES, HITS, WORK = 32, 128, 128 << 10, 256, 400_000
"""Beyond any of these it is given up: a text may have a line that matches in every second byte."""
QUICK = 0.003
"""Seconds: what a commit may take on the event loop as well."""
_FOR = 60.0
_MOST = 64
Where = tuple[tuple[MountPath, ...], str, tuple[str, ...]]
"""Which files are searched: paths, the glob they match, those they do not."""
_known: WeakKeyDictionary[Mounts, dict[Where, tuple[float, Memory]]] = WeakKeyDictionary()
"""What was small, until when that is believed, and what is in its directories."""
_UNKNOWN: tuple[float, Memory] = (0.0, {})


def search_small(mounts: Mounts, query: Query, where: Where) -> Found | None:
    """None where it is not known to be small, or is not so any more."""
    known = _known.get(mounts, {})
    now = time.monotonic()
    until, memory = known.get(where, _UNKNOWN)
    matched = matcher(query.pattern, query.case_sensitive) if until > now else None
    if matched is None:
        return None
    try:
        with opened(mounts, *where) as groups:
            limits = (now + QUICK, BYTES, NAMES, FILES, HITS, WORK)
            return Local(matched, query, *limits, memory=memory, secrets=mounts.secrets()).search(groups[0])
    except (Unequal, TooMuch):
        known.pop(where, None)
        return None


def remember(mounts: Mounts, where: Where, starts: Sequence[Start]) -> None:
    """After a quick search, while its starts are open."""
    if not all(_small(start) for start in starts):
        return
    known = _known.setdefault(mounts, {})
    if len(known) >= _MOST:
        known.clear()
    known[where] = (time.monotonic() + _FOR, {})


def _small(start: Start) -> bool:
    """Also: whether nothing that is searched lies on another file system, or on one that others serve."""
    if not inotify.available() or not inotify.local(start.handle):
        return False
    top = os.fstat(start.handle)
    if not start.directory:
        return top.st_size <= BYTES
    walk = Walk(start.selection, NAMES, directories=True)
    files = size = 0
    try:
        for entry in walk.entries(start.handle, start.relative):
            status = entry.status()
            if status.st_dev != top.st_dev:
                return False
            if not entry.directory:
                files += 1
                size += status.st_size
    except (OSError, TooMany):
        return False
    return files <= FILES and size <= BYTES
