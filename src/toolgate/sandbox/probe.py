"""Probe of this machine: which walls stand, tried rather than guessed, why the others do not, and which user ids are free."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolgate.core.errors import Unavailable
from toolgate.sandbox.job import Mode

UID_BLOCK = 1024
_LOWEST_UID = 100_000
"""Below are people, services and, usually, the ranges that are given to containers."""


class Uids:
    """A block of numbers chosen at random from all that are mapped here, so that two toolgates do not meet."""

    def __init__(self, first: int, count: int) -> None:
        self._free = list(range(first, first + count))

    @classmethod
    def choose(cls) -> Uids:
        low, high = _uid_range()
        count = min(UID_BLOCK, (high - low) // 4)
        return cls(random.SystemRandom().randrange(low, high - count), count)

    def take(self) -> int:
        """The one that has been free for the longest time."""
        if not self._free:
            raise Unavailable("every user number of this block runs a program", "wait until some have ended")
        return self._free.pop(0)

    def give_back(self, uid: int) -> None:
        """Only when no process of it is left."""
        self._free.append(uid)


def uids_available() -> bool:
    low, high = _uid_range()
    return os.geteuid() == 0 and high - low >= 64


def _uid_range(uid_map: str = "/proc/self/uid_map") -> tuple[int, int]:
    """The largest range of numbers that can be used here; in a container there may be few."""
    extents = [tuple(map(int, line.split())) for line in Path(uid_map).read_text().splitlines()]
    start, _, count = max(extents, key=lambda extent: extent[2])
    end = min(start + count, 1 << 31)
    low = _LOWEST_UID if end > 2 * _LOWEST_UID else start + count // 2
    # The number that stands for nobody, and its neighbours.
    return (low, end) if low > 65534 or end <= 65500 else (low, 65500)


MODES: tuple[Mode, ...] = ("root", "userns", "landlock")
"""The strongest first."""
Wanted = Literal["auto", "root", "userns", "landlock"]
ZYGOTE = Path(__file__).parent / "inside" / "zygote.py"
TRIAL_SECONDS = 20


@dataclass(frozen=True)
class ProbedWalls:
    mode: Mode | None
    refused: dict[Mode, str] = field(default_factory=dict)
    """Why the stronger modes, or all of them, do not hold."""
    landlock: int = 0
    """The kernel's version of Landlock, 0 where it has none."""

    def held(self) -> Mode:
        if self.mode is None:
            why = "; ".join(f"{mode}: {reason}" for mode, reason in self.refused.items())
            raise Unavailable(f"no sandbox holds on this machine ({why})", fix())
        return self.mode


def interpreter() -> str:
    """The one that a virtual environment stands on: it needs nothing but its own prefix."""
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def command(*args: str) -> list[str]:
    return [interpreter(), "-I", "-S", "-X", "utf8", str(ZYGOTE), *args]


def look(wanted: Wanted = "auto") -> ProbedWalls:
    """The first mode that holds; with a mode named, that one or none."""
    if sys.platform != "linux":
        return ProbedWalls(
            None, dict.fromkeys(MODES, f"programs are only run on Linux, not on {sys.platform}")
        )
    refused: dict[Mode, str] = {}
    version = 0
    for mode in MODES if wanted == "auto" else (wanted,):
        reason, version = _try(mode)
        if not reason:
            return ProbedWalls(mode, refused, version)
        refused[mode] = reason
    return ProbedWalls(None, refused, version)


def fix() -> str:
    return (
        "use Linux 6.2 or newer with Landlock, or let this user make user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), "
        "or run as root; `toolgate doctor` says what was tried"
    )


def _try(mode: Mode) -> tuple[str, int]:
    uid = 0
    if mode == "root":
        if os.geteuid() != 0:
            return "this user is not root", 0
        if not uids_available():
            return "too few user numbers are mapped here for a job to have its own", 0
        uid = Uids.choose().take()
    try:
        done = subprocess.run(  # noqa: S603  Our own program, with arguments of our own.
            command("probe", mode, str(uid)),
            capture_output=True,
            timeout=TRIAL_SECONDS,
            env={},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be tried: {error}", 0
    try:
        said = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return (lines[-1] if lines else f"the trial ended with status {done.returncode}"), 0
    return said["error"], said["landlock"]
