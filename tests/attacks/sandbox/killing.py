"""Kills hosts, zygotes and jobs at random moments, and says what they leave: `python -m attacks.sandbox.killing MODE`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from attacks.sandbox.hosts import command, environment
from toolgate.sandbox.inside.kernel import prctl

HOSTS, INNER = 5, 10
GONE_S = 5.0
_PR_SET_CHILD_SUBREAPER = 36


class Killing:
    def __init__(self, mode: str, tmp: Path) -> None:
        self.mode = mode
        self.tmp = tmp
        self.kills: list[str] = []

    def start(self) -> subprocess.Popen[str]:
        host = subprocess.Popen(
            command("attacks.sandbox.busy", self.mode), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd="/", env=environment() | {"TMPDIR": str(self.tmp)},
        )  # fmt: skip
        assert host.stdout is not None
        assert host.stdout.readline() == "up\n"
        return host

    def kill_hosts(self) -> list[str]:
        """What is still alive after each."""
        left = []
        for _ in range(HOSTS):
            host = self.start()
            time.sleep(random.random() * 0.5)
            host.kill()
            host.communicate()
            self.kills.append("host")
            left += self.others()
        return left

    def kill_inside(self) -> tuple[list[str], str]:
        """The host goes on, and ends in order: what is left then, and its last word."""
        host = self.start()
        for number in range(INNER):
            time.sleep(random.random() * 0.3)
            self._kill_one(host.pid, "zygote" if number % 2 else "job")
        said, _ = host.communicate(timeout=40)
        return self.others(), said

    def _kill_one(self, host: int, kind: str) -> None:
        for _ in range(100):
            with contextlib.suppress(psutil.Error, IndexError):
                zygotes = [
                    each
                    for each in psutil.Process(host).children()
                    if "zygote.py" in " ".join(each.cmdline())
                ]
                chosen = random.choice(zygotes if kind == "zygote" else _below(zygotes))
                chosen.send_signal(signal.SIGKILL)
                self.kills.append(kind)
                return
            time.sleep(0.02)

    def others(self) -> list[str]:
        """Everything that was started here is ours, whoever its parent was: nothing may be left in a moment."""
        deadline = time.monotonic() + GONE_S
        while found := _alive():
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        return found


def _below(zygotes: list[psutil.Process]) -> list[psutil.Process]:
    """In the modes with namespaces, their first processes are among them."""
    return [inner for each in zygotes for inner in each.children(recursive=True)]


def _alive() -> list[str]:
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, ChildProcessError):
            if each.status() == "zombie":
                os.waitpid(each.pid, os.WNOHANG)
            else:
                found.append(f"{each.pid} {' '.join(each.cmdline())[:150]}")
    return found


def _mounts() -> list[str]:
    return sorted(Path("/proc/self/mountinfo").read_text().splitlines())


def main(mode: str) -> dict[str, Any]:
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    before = _mounts()
    with tempfile.TemporaryDirectory(prefix="killing-") as directory:
        tmp = Path(directory)
        tmp.chmod(0o777)
        killing = Killing(mode, tmp)
        processes = killing.kill_hosts()
        more, last_word = killing.kill_inside()
        files = sorted(path.name for path in tmp.iterdir())
    return {
        "kills": killing.kills,
        "processes": processes + more,
        "last_word": last_word.strip(),
        "files": files,
        "mounts": [line for line in _mounts() if line not in before],
    }


if __name__ == "__main__":
    signal.alarm(100)
    print(json.dumps(main(sys.argv[1])))
