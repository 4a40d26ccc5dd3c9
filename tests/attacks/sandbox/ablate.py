"""Runs the attacks of ablations.py twice, with all layers and without one: `python -m attacks.sandbox.ablate MODE UID ATTACK...`."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import sys
from typing import Any

import psutil

from attacks.sandbox.ablations import ABLATIONS, Ablation
from attacks.sandbox.runner import prepared
from attacks.sandbox.scene import Scene
from sandbox import as_user
from toolgate.core.errors import Unavailable
from toolgate.sandbox.host import Host, Pool, Walls
from toolgate.sandbox.job import Job, Limits, Request
from toolgate.sandbox.prepared import WallShape


class Door:
    """An egress that answers nobody."""

    requests: tuple[Request, ...] = ()

    async def serve(self, listener: socket.socket) -> None:
        await asyncio.Event().wait()


async def attempt(one: Ablation, off: frozenset[str], scene: Scene, given: dict[str, Any]) -> dict[str, Any]:
    # The network is named by its port, which one host can have at a time where there is no namespace for it.
    host = Host(one.mode, walls=Walls(off), warm=0)  # type: ignore[arg-type]
    limits = Limits(wall_s=8, processes=one.processes, **one.limits)
    code = prepared(one.language, one.code, given)
    packages = (scene.base / "given",) if one.package else ()
    try:
        job = Job(one.language, code, limits=limits, packages=packages)  # type: ignore[arg-type]
        outcome = await host.run(job, egress=Door() if one.network else None)
    finally:
        behind = [each.pid for each in psutil.Process().children(recursive=True) if "7.25" in _argv(each)]
        await host.close()
        for pid in behind:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    said = outcome.stdout.decode("latin-1")
    return {
        "breach": "BREACH" in said or bool(behind),
        "stdout": said,
        "stderr": outcome.stderr.decode("latin-1")[-2000:],
    }


def _argv(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def main(mode: str, names: list[str], scene: Scene, given: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for one in ABLATIONS:
        if one.mode == mode and one.title in names:
            layers = frozenset(one.also_off)
            runs = [await attempt(one, off, scene, given) for off in (layers, layers | {one.layer})]
            found[one.title] = runs
            scene.canary.chmod(0o666)
    return found


def run(mode: str, names: list[str]) -> dict[str, Any]:
    scene = Scene()
    package = scene.base / "given"
    package.mkdir()
    for name, bits in (("locked", 0), ("owned", 0o600)):
        (package / name).write_text("x")
        (package / name).chmod(bits)
    shutil.copy("/bin/true", package / "program")
    segment = ctypes.CDLL(None).shmget(0x7001, 4096, 0o1666)
    with socket.create_server(("127.0.0.2", 3128)):
        try:
            return asyncio.run(main(mode, names, scene, {**scene.names(), "KEY": 0x7001}))
        finally:
            ctypes.CDLL(None).shmctl(segment, 0, None)
            scene.close()


async def refusal() -> str:
    """An order that leaves a layer out, to a zygote that was not told that it may."""
    pool = Pool("landlock", 0, False)
    shape = WallShape.of(Job("python"), None, False, frozenset({"seccomp"}))
    try:
        await pool.take(shape)
    except Unavailable as error:
        return str(error)
    finally:
        await pool.close()
    return "it did"


if __name__ == "__main__":
    signal.alarm(110)
    if len(sys.argv) > 2 and int(sys.argv[2]):
        as_user.become(int(sys.argv[2]))
    print(json.dumps(asyncio.run(refusal()) if sys.argv[1] == "refusal" else run(sys.argv[1], sys.argv[3:])))
