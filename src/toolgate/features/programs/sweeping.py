"""Files that programs left are kept until there are too many: then those of the oldest calls go."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.workspace.confine import held
from toolgate.workspace.mounts import Mounts

BUDGET = 256 << 20
"""Bytes, of all calls together."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def sweep(mounts: Mounts, where: str, newest: str, budget: int = BUDGET) -> int:
    """Remove the directories of the oldest calls, but not the newest one's, until the rest fits; how many went.

    The ids of calls begin with the time, so their names say which is older. Everything is done by handles, and no link
    is followed.
    """
    with suppress(CallError, OSError), mounts.parent(MountPath.parse(f"scratch:{where}/x")) as (above, _):
        calls = sorted(name for name in os.listdir(above) if name.startswith("c_") and name != newest)
        sizes = {name: _size(above, name) for name in [*calls, newest]}
        total, gone = sum(sizes.values()), 0
        for name in calls:
            if total <= budget:
                break
            shutil.rmtree(name, ignore_errors=True, dir_fd=above)
            total -= sizes[name]
            gone += 1
        return gone
    return 0


def _size(above: int, name: str) -> int:
    with suppress(OSError), held(os.open(name, _DIRECTORY, dir_fd=above)) as handle:
        return sum(
            os.stat(file, dir_fd=place, follow_symlinks=False).st_blocks * 512
            for _, _, files, place in os.fwalk(dir_fd=handle)
            for file in files
        )
    return 0
