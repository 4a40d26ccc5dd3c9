"""Search of text in mounts, whichever engine runs: in process where that is plainly equal and quicker, else rg."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal
from weakref import WeakKeyDictionary

from toolgate.core.errors import InvalidArgs
from toolgate.core.evidence import spoil
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.content import TooMuch, Unequal, matcher
from toolgate.workspace.search.local import QUICK, Local, join, remember, search_small
from toolgate.workspace.search.names import Names, learn
from toolgate.workspace.search.query import EXCLUDED, FoundMatches, SearchQuery, Tell
from toolgate.workspace.search.ripgrep import Ripgrep
from toolgate.workspace.search.selection import Start, opened
from toolgate.workspace.watch import Watches

# The mounts whose names are known: learned in the background once one is searched again, for no search to
# wait.

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


Engine = Literal["auto", "local", "rg"]
TIME_LIMIT = 10.0
ROOT = MountPath("project:.")
_LARGE_FOR = 60.0
_large: dict[tuple[int, int, int], float] = {}
"""Directories that were too much for the engine in process, and until when that is believed without looking."""


def search(
    mounts: Mounts,
    query: SearchQuery,
    paths: Sequence[MountPath] = (),
    files: str = "",
    excluded: Sequence[str] = EXCLUDED,
    *,
    seconds: float = TIME_LIMIT,
    progress: Callable[[str], None] | None = None,
    tell: Tell | None = None,
    engine: Engine = "auto",
) -> FoundMatches:
    """`tell` gets matches as they are found, some of them perhaps twice. `engine` is for comparing the two; a named one that cannot answer raises."""
    _check(query.pattern)
    begun = time.monotonic()
    where = (tuple(paths) or (ROOT,), files, tuple(excluded))
    with opened(mounts, *where) as groups:
        parts = [
            _search_mount(mounts, starts, query, begun + seconds, progress, tell, engine) for starts in groups
        ]
        if len(groups) == 1 and time.monotonic() - begun < QUICK:
            remember(mounts, where, groups[0])
    found = parts[0] if len(parts) == 1 else join(parts, query)
    if found.truncated:
        spoil()  # where it stopped may have been a matter of time
    return found


def search_at_once(
    mounts: Mounts, query: SearchQuery, paths: Sequence[MountPath], files: str, excluded: Sequence[str]
) -> FoundMatches | None:
    """For a caller who must not be held up: None where the search may take longer than a thread takes to begin."""
    _check(query.pattern)
    found = search_small(mounts, query, (tuple(paths) or (ROOT,), files, tuple(excluded)))
    if found is not None and found.truncated:
        spoil()
    return found


def _search_mount(
    mounts: Mounts,
    starts: Sequence[Start],
    query: SearchQuery,
    deadline: float,
    progress: Callable[[str], None] | None,
    tell: Tell | None,
    engine: Engine,
) -> FoundMatches:
    matched = matcher(query.pattern, query.case_sensitive)
    if engine != "rg":
        try:
            if matched is None:
                raise Unequal
            if engine == "auto" and _known_large(starts):
                raise Unequal
            return Local(matched, query, deadline, tell=tell, secrets=mounts.secrets()).search(starts)
        except Unequal:
            if engine == "local":
                raise
        except TooMuch:
            if engine == "local":
                raise
            _remember_large(starts)
    names, secrets = names_of(mounts, starts), mounts.secrets()
    return Ripgrep(query, matched, deadline, progress, names, tell, secrets).search(starts)


def _known_large(starts: Sequence[Start]) -> bool:
    """Only a hint about speed: both engines give the same answer."""
    now = time.monotonic()
    return any(_large.get(_identity(start), 0.0) > now for start in starts)


def _remember_large(starts: Sequence[Start]) -> None:
    if len(starts) != 1:
        return  # which of them it was is not known
    if len(_large) > 256:
        _large.clear()
    _large[_identity(starts[0])] = time.monotonic() + _LARGE_FOR


def _identity(start: Start) -> tuple[int, int, int]:
    """With its time: the number of a removed directory is given to a new one."""
    status = os.fstat(start.handle)
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _check(pattern: str) -> None:
    if not pattern:
        raise InvalidArgs("an empty pattern matches every line", "say what to look for")
    if any(char in pattern for char in "\n\r\0"):
        raise InvalidArgs(
            "the pattern has a line ending or a NUL", "search for what is within one line; `$` is its end"
        )
    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise InvalidArgs("the pattern has half a character (a lone surrogate)", "remove it") from None
