"""What a reading call reads: the mounts that its paths name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolgate.core.effects import Effects
from toolgate.policy.hard import WHOLE_BY_DEFAULT


def reads_of(args: Mapping[str, Any]) -> Effects:
    mounts = {path.partition(":")[0] for path in _paths(args)} or {"project"}
    return Effects.of(tuple(mount if mount in WHOLE_BY_DEFAULT else "project" for mount in mounts))


def _paths(args: Mapping[str, Any]) -> Iterator[str]:
    for name in ("path", "directory"):
        if isinstance(args.get(name), str):
            yield args[name]
    yield from args.get("paths") or ()
