"""Things outside the sandbox that a program must not reach, and how it shows if it did."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolgate.sandbox.javascript import PRELUDE
from toolgate.sandbox.job import Outcome

CANARY = "canary-" + secrets.token_hex(16)
"""The content of the secret file, and a variable in the environment of the victim and of the host."""
SLEEP = ["/bin/sleep", "60"]


class Outside:
    def __init__(self, code: str, host: int, as_user: Sequence[str] = ()) -> None:
        self._code = code
        self._host = host
        self.directory = Path(tempfile.mkdtemp(prefix="outside-"))
        self.directory.chmod(0o777)
        self.secret = self._file("secret.json", f'{{"token": "{CANARY}"}}')
        self.target = self._file("target", "untouched")
        self.tcp = _listening(socket.AF_INET, ("127.0.0.1", 0))
        self.unix = _listening(socket.AF_UNIX, str(self.directory / "socket"))
        (self.directory / "socket").chmod(0o777)
        self.abstract = _listening(socket.AF_UNIX, f"\0outside-{secrets.token_hex(8)}")
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.free: int = probe.getsockname()[1]
        self.nap = f"61.{secrets.randbelow(10**9)}"
        """How long a process sleeps that is to outlive its program."""
        self.reached = False
        self.victim = subprocess.Popen([*as_user, *SLEEP]) if "$VICTIM" in code else None

    @property
    def code(self) -> str:
        words: dict[str, Any] = {
            "$SECRET": self.secret, "$TARGET": self.target, "$DIRECTORY": self.directory, "$PRELUDE": PRELUDE,
            "$PORT": self.tcp.getsockname()[1], "$UDP": self.udp.getsockname()[1], "$FREE": self.free,
            "$SOCKET": self.directory / "socket", "$ABSTRACT": self.abstract.getsockname()[1:].decode(),
            "$HOST": self._host, "$NAP": self.nap, "$VICTIM": self.victim.pid if self.victim else 0,
        }  # fmt: skip
        code = self._code
        for word, value in words.items():
            code = code.replace(word, str(value))
        return code

    def knock(self) -> None:
        """At the port that a program might listen on."""
        with socket.socket() as knocking:
            knocking.settimeout(0.2)
            self.reached = self.reached or knocking.connect_ex(("127.0.0.1", self.free)) == 0

    def harm(self, outcome: Outcome) -> list[str]:
        """What happened that must not."""
        came_back = b"".join([outcome.stdout, outcome.stderr, repr(outcome.outputs).encode()])
        came_back += b"".join(file.content for file in outcome.left)
        signs = {
            "read": CANARY.encode() in came_back,
            "written": not self.target.exists() or self.target.read_text() != "untouched",
            "mode": self.target.exists() and self.target.stat().st_mode & 0o777 != 0o666,
            "created": {each.name for each in self.directory.iterdir()} - {"secret.json", "target", "socket"},
            "tcp": _touched(self.tcp), "unix": _touched(self.unix), "abstract": _touched(self.abstract),
            "udp": _touched(self.udp), "listened": self.reached,
            "killed": self.victim is not None and self.victim.poll() is not None,
            "left running": self.sleepers(),
            "prelude": not PRELUDE.read_bytes(),
        }  # fmt: skip
        return [sign for sign, happened in signs.items() if happened]

    def sleepers(self) -> list[int]:
        """Processes that a program left."""
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.nap.encode() in each.read_bytes():
                    found.append(int(each.parent.name))
            except OSError:
                continue
        return found

    def close(self) -> None:
        for pid in self.sleepers():
            os.kill(pid, signal.SIGKILL)
        for each in (self.tcp, self.unix, self.abstract, self.udp):
            each.close()
        if self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        shutil.rmtree(self.directory)

    def _file(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o666)
        return path


def _listening(family: int, address: Any) -> socket.socket:
    made = socket.socket(family)
    made.bind(address)
    made.listen()
    return made


def _touched(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(1)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
