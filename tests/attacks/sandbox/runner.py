"""A host of its own that runs attacks: `python -m attacks.sandbox.runner MODE UID [LAYER ...] < names`.

It reads a JSON list of names of attacks, and writes a JSON object with what became of each. As root it first becomes
that user, unless it is 0. The layers named are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from attacks.sandbox.attack import Attack
from attacks.sandbox.scene import Scene
from attacks.sandbox.table import ATTACKS
from sandbox import as_user
from toolgate.core.errors import ToolgateError
from toolgate.sandbox.host import Host, Walls
from toolgate.sandbox.inside.kernel import here
from toolgate.sandbox.job import Job, Limits, Outcome

AT_ONCE = 3
WALL_S = 8.0
_TOOLS = (Path(__file__).parent / "tools.py").read_text()


def prepared(language: str, code: str, given: Mapping[str, Any]) -> str:
    """The program with what its attacker knows in front."""
    if language == "shell":
        return "".join(f"{name}='{value}'\n" for name, value in given.items()) + code
    named = "".join(f"{name} = {value!r}\n" for name, value in given.items())
    return f"{_TOOLS}\nCALLS = {here().calls!r}\n{named}{code}"


class Echo:
    """A broker that gives its answer away."""

    def answer(self, message: Any) -> dict[str, Any]:
        return {"echo": message, "big": "x" * min(int(message.get("size", 0)), 1 << 20)}


class Runner:
    def __init__(self, host: Host, scene: Scene) -> None:
        self.host = host
        self.scene = scene
        self.lag = 0.0
        self.given = {**scene.names(), "SECRET_HALF": scene.secret[:8]}

    async def tick(self) -> None:
        """How long the host could not answer anybody."""
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.02)
            self.lag = max(self.lag, time.monotonic() - begun - 0.02)

    async def attack(self, one: Attack) -> dict[str, Any]:
        self.lag = 0.0
        report = await self._run(one, one.code)
        if one.then:
            second = await self._run(one, one.then)
            second["leaked"] |= report["leaked"]
            report = second
        return report | {
            "harm": self.scene.harm(),
            "lag": self.lag,
            "memory": psutil.Process().memory_info().rss,
        }

    async def _run(self, one: Attack, code: str) -> dict[str, Any]:
        limits = Limits(
            **({"wall_s": WALL_S, "processes": 8 if self._may_fork(one) else 1} | dict(one.limits))
        )
        job = Job(one.language, prepared(one.language, code, self.given), stdin=one.stdin, limits=limits)
        begun = time.monotonic()
        try:
            outcome = await self.host.run(job, broker=Echo() if one.broker else None)
        except ToolgateError as error:
            return {"refused": str(error), "leaked": False}
        return self._report(outcome) | {"took": time.monotonic() - begun, "wall": limits.wall_s}

    def _may_fork(self, one: Attack) -> bool:
        return one.language == "shell" and self.host.mode != "landlock"

    def _report(self, outcome: Outcome) -> dict[str, Any]:
        everything = [
            outcome.stdout,
            outcome.stderr,
            repr(outcome.outputs).encode(),
            repr(outcome.dropped).encode(),
        ]
        everything += [part for left in outcome.left for part in (left.content, left.path.encode())]
        secret = self.scene.secret.encode()
        return {
            "stdout": outcome.stdout[:20_000].decode("latin-1"),
            "stderr": outcome.stderr[-4000:].decode("latin-1"),
            "printed": len(outcome.stdout) + len(outcome.stderr),
            "exit": outcome.exit_code,
            "limit": outcome.limit,
            "signal": outcome.signal,
            "outputs": len(outcome.outputs),
            "left": [left.path for left in outcome.left],
            "bytes_left": sum(len(left.content) for left in outcome.left),
            "dropped": list(outcome.dropped),
            "leaked": any(form in part for part in everything for form in (secret, secret[::-1])),
        }


async def main(mode: Any, off: list[str], names: list[str], scene: Scene) -> dict[str, Any]:
    host = Host(mode, walls=Walls(frozenset(off)))
    runner = Runner(host, scene)
    ticking = asyncio.ensure_future(runner.tick())
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> tuple[str, dict[str, Any]]:
        async with limit:
            return name, await runner.attack(ATTACKS[name])

    try:
        await host.run(Job("python", "pass"))
        handles = len(os.listdir("/proc/self/fd"))
        found = dict(await asyncio.gather(*map(one, names)))
        grown = len(os.listdir("/proc/self/fd")) - handles
    finally:
        ticking.cancel()
        await host.close()
    return {"attacks": found, "handles": grown, "behind": scene.left_behind()}


def run(mode: str, off: list[str], names: list[str]) -> dict[str, Any]:
    scene = Scene()
    try:
        return asyncio.run(main(mode, off, names, scene))
    finally:
        scene.close()


if __name__ == "__main__":
    signal.alarm(150)  # whatever happens, this ends
    if int(sys.argv[2]):
        as_user.become(int(sys.argv[2]))
    print(json.dumps(run(sys.argv[1], sys.argv[3:], json.load(sys.stdin))))
