"""How the tests run the command line: in this process, as a process, at a terminal."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect.fdpexpect

import toolgate

COMMAND = (sys.executable, "-m", "toolgate")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def data(self) -> Any:
        return self.json["data"]


Cli = Callable[..., Done]


def environment(**more: str) -> dict[str, str]:
    """That of the test, with the toolgate under test wherever the process runs."""
    return os.environ | {"PYTHONPATH": str(Path(toolgate.__file__).parents[1])} | more


def start(*args: str, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    """A real process."""
    return subprocess.Popen(
        [*COMMAND, *args], cwd=cwd, text=True, stdin=more.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), **more,
    )  # fmt: skip


def heard(process: subprocess.Popen[str], stream: str = "stderr") -> str:
    """Its next line; a process that stays silent for too long is ended, and nothing was heard."""
    pipe = getattr(process, stream)
    impatience = threading.Timer(30, process.kill)
    impatience.start()
    try:
        return str(pipe.readline())
    finally:
        impatience.cancel()


def finish(process: subprocess.Popen[str]) -> Done:
    try:
        out, err = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
    return Done(process.returncode, out, err)


def _plain(shown: str) -> str:
    """Without colours and weights; anything else that moves the cursor stays."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


class Terminal:
    """A process at a pseudo-terminal, and what it shows there."""

    def __init__(self, *args: str, cwd: Path) -> None:
        self._master, slave = os.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *args], cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
            env=environment(COLUMNS="100", TERM="xterm", NO_COLOR="1"),
        )  # fmt: skip
        os.close(slave)
        self.screen = pexpect.fdpexpect.fdspawn(self._master, timeout=30, encoding="utf-8")

    def expect(self, text: str) -> str:
        """Everything shown up to and including `text`."""
        self.screen.expect_exact(text)
        return _plain(str(self.screen.before)) + text

    def type(self, line: str) -> None:
        self.screen.send(line + "\n")

    def end(self) -> tuple[int, str]:
        rest = b""
        try:
            # first: a full terminal would hold the process up
            while select.select([self._master], [], [], 60)[0] and (chunk := os.read(self._master, 65536)):
                rest += chunk
        except OSError:  # the other end is closed
            pass
        return self.process.wait(timeout=30), _plain(rest.decode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.screen.close()
