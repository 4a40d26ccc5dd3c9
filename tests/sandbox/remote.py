"""A sandbox in a process of its own, which runs as root or, in the other modes, as an unprivileged user.

with Remote("userns") as sandbox:                # Remote("root", off=["seccomp"]) leaves a layer out
    outcome = await sandbox.run(Job("python", "print(1)"))
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from lacking import in_ci
from sandbox import as_user
from toolgate.sandbox.job import Job, Outcome

WORKER = Path(__file__).parent / "worker.py"


class Remote:
    def __init__(self, mode: str, off: Sequence[str] = (), tmp: str = "") -> None:
        self.mode = mode
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, str(WORKER), str(theirs.fileno()), mode, *off]
        self.process = subprocess.Popen(
            argv if mode == "root" else as_user.command(argv),
            pass_fds=[theirs.fileno()],
            env=as_user.environment() | ({"TMPDIR": tmp} if tmp else {}),
        )
        theirs.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def run(self, job: Job, *, broker: bool = False, egress: bool = False) -> Outcome:
        """Raises what the sandbox raised. Cancelling it cancels the job."""
        found = await self._ask({"do": "run", "job": job, "broker": broker, "egress": egress})
        assert isinstance(found, Outcome)
        return found

    async def python(self, code: str, **options: Any) -> Outcome:
        return await self.run(Job("python", code), **options)

    async def ask_mode(self) -> Any:
        return await self._ask({"do": "mode"})

    def processes(self) -> list[psutil.Process]:
        """The zygote's, and those of jobs."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        self._control.close()
        self.process.wait(20)

    async def _ask(self, request: dict[str, Any]) -> Any:
        ours, theirs = socket.socketpair()
        socket.send_fds(self._control, [b"r"], [theirs.fileno()])
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            data = pickle.dumps(request)
            writer.write(len(data).to_bytes(4, "big") + data)
            answer = await reader.read()
            if not answer:
                raise ConnectionError("the worker is gone")
            found = pickle.loads(answer)
        finally:
            writer.close()
        if isinstance(found, BaseException):
            raise found
        return found


def modes() -> list[str]:
    """Root's own mode can only be tried by root. In CI that is no excuse: there it is tried, and fails."""
    return ["root", "userns", "landlock"] if os.geteuid() == 0 or in_ci() else ["userns", "landlock"]
