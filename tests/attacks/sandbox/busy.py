"""A host that is always busy: `python -m attacks.sandbox.busy MODE UID`. It ends in order when its input ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from sandbox import as_user
from toolgate.core.errors import Unavailable
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job, Limits

_PROGRAMS = (
    "open('f', 'w').write('x' * 100_000); import time; time.sleep(0.2)",
    "import threading, time; threading.Thread(target=time.sleep, args=(0.3,)).start()",
    "import os, time\nfor n in range(200): os.makedirs(f'd{n}/e')\ntime.sleep(0.1)",
    # Its first thread is gone, and what is left hears no signal but the last one.
    "import ctypes, signal, threading, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
    "threading.Thread(target=time.sleep, args=(5,)).start()\nctypes.CDLL(None).syscall(60 if __import__('platform').machine() == 'x86_64' else 93, 0)",
)  # fmt: skip
_SCRIPT = "trap '' TERM HUP INT; (setsid sleep 20 &); sleep 20 & sleep 0.2"


def programs(mode: str) -> list[Job]:
    limits = Limits(wall_s=0.8)
    found = [Job("python", code, limits=limits) for code in _PROGRAMS]
    return (
        found
        if mode == "landlock"
        else [*found, Job("shell", _SCRIPT, limits=Limits(wall_s=0.8, processes=8))]
    )


async def keep_running(host: Host, job: Job) -> None:
    while True:
        try:
            await host.run(job)
        except Unavailable:  # somebody has killed what ran it
            await asyncio.sleep(0.01)


async def main(mode: Any) -> None:
    host = Host(mode)
    await host.run(Job("python", "pass"))
    tasks = [asyncio.ensure_future(keep_running(host, job)) for job in programs(mode)]
    print("up", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    outcome = await host.run(Job("python", "print('well')"))
    await host.close()
    print(outcome.stdout.decode(), flush=True)


if __name__ == "__main__":
    signal.alarm(60)
    if int(sys.argv[2]):
        as_user.become(int(sys.argv[2]))
    asyncio.run(main(sys.argv[1]))
