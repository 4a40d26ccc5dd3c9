"""Trying a mode: raise all its walls around a process that does nothing, and say what failed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile

from . import child, landlock
from .loop import Zygote
from .order import Mode, Order


def run(mode: Mode, uid: int) -> None:
    """One line of JSON on stdout."""
    print(json.dumps({"error": _error(mode, uid), "landlock": landlock.version()}), flush=True)  # noqa: T201
    os._exit(0)


def _error(mode: Mode, uid: int) -> str:
    if mode == "landlock" and landlock.version() < landlock.NEEDED_ALONE:
        return (
            f"the kernel's Landlock has version {landlock.version()}; alone it needs {landlock.NEEDED_ALONE}"
        )
    place = tempfile.mkdtemp(prefix="toolgate-trial-") if mode == "landlock" else ""
    try:
        return _try(mode, place, uid)
    except OSError as error:
        return str(error)
    finally:
        if place:
            shutil.rmtree(place, ignore_errors=True)


def _try(mode: Mode, place: str, uid: int) -> str:
    ours, theirs = socket.socketpair()
    control, _other = socket.socketpair()
    nothing = os.open("/dev/null", os.O_RDWR)
    order = Order(
        kind="python", uid=uid, place=place, disk=1 << 20, inodes=16, read=[], execute=[], hide=[],
        packages=[], view=None, processes=False, network=mode != "landlock", off=[],
    )  # fmt: skip
    pid = Zygote(control, mode, False, 0).fork(order)
    if pid == 0:
        try:
            child.live(order, mode, [nothing, nothing, theirs.fileno()], 0)
        finally:
            os._exit(0)
    theirs.close()
    ours.settimeout(10)
    word = ours.recv(4096)
    ours.close()
    os.waitpid(pid, 0)
    if not word:
        return "the process ended before its walls stood"
    said = json.loads(word)
    return "" if said["op"] == "ready" else str(said["error"])
