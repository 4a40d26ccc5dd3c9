"""Which walls stand on this machine, tried rather than guessed, and why the others do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolgate.core.errors import Unavailable
from toolgate.sandbox import uids
from toolgate.sandbox.job import Mode

ORDER: tuple[Mode, ...] = ("root", "userns", "landlock")
"""The strongest first."""
Wanted = Literal["auto", "root", "userns", "landlock"]
ZYGOTE = Path(__file__).parent / "inside" / "zygote.py"
SECONDS = 20


@dataclass(frozen=True)
class Standing:
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


def look(wanted: Wanted = "auto") -> Standing:
    """The first mode that holds; with a mode named, that one or none."""
    if sys.platform != "linux":
        return Standing(None, dict.fromkeys(ORDER, f"programs are only run on Linux, not on {sys.platform}"))
    refused: dict[Mode, str] = {}
    version = 0
    for mode in ORDER if wanted == "auto" else (wanted,):
        reason, version = _try(mode)
        if not reason:
            return Standing(mode, refused, version)
        refused[mode] = reason
    return Standing(None, refused, version)


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
        if not uids.available():
            return "too few user numbers are mapped here for a job to have its own", 0
        uid = uids.Uids.choose().take()
    try:
        done = subprocess.run(  # noqa: S603  Our own program, with arguments of our own.
            command("probe", mode, str(uid)),
            capture_output=True,
            timeout=SECONDS,
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
