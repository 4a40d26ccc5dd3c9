"""What a call reads and writes depends on the mount that its paths are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from toolgate.core.effects import Effects
from toolgate.policy.hard import WHOLE_BY_DEFAULT


def by_mount(*paths: str, writes: bool) -> Callable[[Mapping[str, Any]], Effects]:
    """Effects from the arguments of these names. A mount without a word of its own counts as the project."""

    def effects_of(args: Mapping[str, Any]) -> Effects:
        mounts = (str(args[name]).partition(":")[0] for name in paths)
        words = frozenset(mount if mount in WHOLE_BY_DEFAULT else "project" for mount in mounts)
        return _effects(words, writes)

    return effects_of


@lru_cache(maxsize=32)
def _effects(words: frozenset[str], writes: bool) -> Effects:
    return Effects.of(tuple(words), tuple(words) if writes else ())
