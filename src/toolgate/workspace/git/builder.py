"""The git that writes a commit-graph, left to itself when whoever started it goes.

Two locks say what it is at, and they are its standard input and output: a lock on an open file is given up when the last
process that has it open ends. While it holds the one nobody else builds; while it holds the other its view is not swept.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolgate.workspace.git.program import ENVIRONMENT, limit_memory
from toolgate.workspace.git.view import View

LOOK_S = 0.05
FAILED_S = 3600.0
"""What was begun and never finished is begun again, but not more often than this, whatever process asks."""
_STAMP = "tips"
CAN_LEAVE = hasattr(resource, "prlimit")
"""Without its time limit nothing is left running."""


@dataclass(slots=True)
class Building:
    pid: int
    complaint: Path
    code: int | None = None

    async def over(self, seconds: float) -> str:
        """Wait for its end. Empty, or what git said about its failure."""
        until = time.monotonic() + seconds
        while self._runs():
            if time.monotonic() > until:
                self._kill()
            await asyncio.sleep(LOOK_S)
        said = ""
        with suppress(OSError):
            said = self.complaint.read_text("utf-8", "replace")[:300].strip()
        return "" if self.code == 0 else said or f"exit code {self.code}"

    def leave(self) -> bool:
        """Let it go on alone. False if it has ended or had to be."""
        if not self._runs():
            return False
        if not CAN_LEAVE:
            self._kill()
            _collect(self.pid)
            return False
        with suppress(RuntimeError):  # this process is about to end, and need not collect it
            threading.Thread(target=_collect, args=(self.pid,), daemon=True).start()
        return True

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _runs(self) -> bool:
        if self.code is None:
            self.code = _collected(self.pid)
        return self.code is None


def settled(info: Path, tips: str) -> bool:
    """Whether these tips have their graph, made by whatever process, or were tried lately."""
    try:
        if (info / _STAMP).read_text() != tips:
            return False
        begun = (info / _STAMP).stat().st_mtime
    except (OSError, ValueError):
        return False
    with suppress(OSError):
        if (info / "commit-graph").stat().st_mtime >= begun:
            return True
    return 0 <= time.time() - begun < FAILED_S


def start(view: View, info: Path, tips: str, commits: bytes, seconds: float) -> Building | None:
    """None if another process is at it. `tips` is a name for what the graph is of."""
    wanted = os.open(info / "building", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        (info / "commit-graph.lock").unlink(missing_ok=True)  # of a builder that was killed
        os.ftruncate(wanted, 0)
        with os.fdopen(os.dup(wanted), "wb") as file:
            file.write(commits)
        os.lseek(wanted, 0, os.SEEK_SET)
        (info / _STAMP).write_text(tips)
        complaint = info / "complaint"
        pid = _spawn(view, wanted, complaint)
    finally:
        os.close(wanted)
    limit_memory(pid)
    if CAN_LEAVE:
        with suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    return Building(pid, complaint)


def _spawn(view: View, stdin: int, complaint: Path) -> int:
    argv = [
        view.program, "-C", str(view.cwd), "--no-pager",
        "commit-graph", "write", "--stdin-commits", "--changed-paths", "--no-progress",
    ]  # fmt: skip
    return os.posix_spawn(
        view.program,
        argv,
        {**ENVIRONMENT, **view.env()},
        file_actions=[
            *((os.POSIX_SPAWN_CLOSE, handle) for handle in _handed_down()),
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, view.lock, 1),  # git prints nothing there
            (os.POSIX_SPAWN_OPEN, 2, str(complaint), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ],
        setpgroup=0,  # a Ctrl-C at the terminal is not for it
    )


def _handed_down() -> Iterator[int]:
    """What we were started with and would pass on: whoever waits for a pipe or a lock of theirs waits for us, not for git."""
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                yield int(name)


def _collect(pid: int) -> None:
    """Wait for its end: whoever lives longer than it would keep a dead process in the list."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _collected(pid: int) -> int | None:
    """Its exit code, or None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0  # somebody else has collected it
    return os.waitstatus_to_exitcode(status) if ended else None
