"""What is around a sandbox in these tests: things to steal, to break and to reach, and whether that happened."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from toolgate.sandbox.inside.kernel import prctl

_PR_SET_CHILD_SUBREAPER = 36


class Scene:
    """Everything in it belongs to whoever runs the host, and could be used by any program of that user."""

    def __init__(self) -> None:
        self.secret = os.environ["SCENE_SECRET"]  # so that it is in the environment of the host, too
        prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what a job left behind would become a child of this process
        self.base = Path(tempfile.mkdtemp(prefix="scene-"))
        self.base.chmod(0o777)
        self.canary = self._file("canary", self.secret)
        self.private = self._file("private", self.secret)
        self.private.chmod(0o600)
        self.marked = self._file("marked", "nothing")
        self.open_directory = self.base / "open"
        self.open_directory.mkdir()
        self.open_directory.chmod(0o777)
        os.symlink(self.secret, self.base / "link")
        self._mark()
        self.tcp = self._listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.tcp6 = self._listener(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
        self.udp = self._listener(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self.named = self._listener(socket.AF_UNIX, socket.SOCK_STREAM, str(self.base / "socket"))
        (self.base / "socket").chmod(0o777)
        self.datagram = self._listener(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.base / "datagrams"))
        self.abstract_name = f"scene-{secrets.token_hex(4)}"
        self.abstract = self._listener(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract_name}")
        self.victim = self._start_victim()
        self.handle = os.open(self.canary, os.O_RDONLY)
        os.set_inheritable(self.handle, True)
        self._before = self._state()

    def names(self) -> dict[str, Any]:
        """What the attacker is told: he does not even have to look for it."""
        return {
            "CANARY": str(self.canary), "PRIVATE": str(self.private), "MARKED": str(self.marked), "BASE": str(self.base),
            "OPEN": str(self.open_directory), "LINK": str(self.base / "link"), "HOST": os.getpid(),
            "VICTIM": self.victim.pid, "TCP": self.tcp.getsockname()[1], "TCP6": self.tcp6.getsockname()[1],
            "UDP": self.udp.getsockname()[1], "NAMED": str(self.base / "socket"),
            "DATAGRAM": str(self.base / "datagrams"), "ABSTRACT": self.abstract_name, "HANDLE": self.handle,
            "NODE": socket.gethostname(),
        }  # fmt: skip

    def harm(self) -> list[str]:
        """What a program has done out here, in words."""
        now = self._state()
        found = [f"{name} is not as it was" for name, was in self._before.items() if now[name] != was]
        for name in ("tcp", "tcp6", "udp", "named", "datagram", "abstract"):
            found += [f"something reached the {name} socket"] * _reached(getattr(self, name))
        return found

    def left_behind(self) -> list[str]:
        """Processes that are still there when the sandbox is closed, which what is dying may take a moment to leave."""
        deadline = time.monotonic() + 2
        while found := self._others():
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        return found

    def _others(self) -> list[str]:
        found = []
        for each in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, ChildProcessError):
                if each.status() == "zombie":
                    os.waitpid(each.pid, os.WNOHANG)
                elif each.pid != self.victim.pid:
                    found.append(f"{each.pid} {' '.join(each.cmdline())[:200]}")
        return found

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for name in ("tcp", "tcp6", "udp", "named", "datagram", "abstract"):
            getattr(self, name).close()
        os.close(self.handle)
        shutil.rmtree(self.base)

    def _file(self, name: str, content: str) -> Path:
        path = self.base / name
        path.write_text(content)
        path.chmod(0o666)
        return path

    def _mark(self) -> None:
        """A secret beside the content, where the file system keeps such things."""
        try:
            os.setxattr(self.marked, "user.secret", self.secret.encode())
        except OSError:
            self.marked.write_text(self.secret)

    def _listener(self, family: int, kind: int, address: Any) -> socket.socket:
        found = socket.socket(family, kind)
        found.bind(address)
        if kind == socket.SOCK_STREAM:
            found.listen()
        found.setblocking(False)
        return found

    def _start_victim(self) -> subprocess.Popen[bytes]:
        code = "import sys, time; print('up', flush=True); time.sleep(600)"
        env = {"VICTIM_SECRET": self.secret, "PATH": "/usr/bin:/bin"}
        victim = subprocess.Popen(
            [sys.executable, "-S", "-c", code, self.secret],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert victim.stdout is not None
        victim.stdout.readline()
        victim.stdout.close()
        return victim

    def _state(self) -> dict[str, Any]:
        def file(path: Path) -> Any:
            try:
                status = path.stat()
            except OSError as error:
                return str(error)
            return (
                path.read_bytes() if path.is_file() else sorted(os.listdir(path)),
                status.st_mode,
                status.st_mtime_ns,
            )

        try:
            alive = psutil.Process(self.victim.pid).status() in ("sleeping", "running")
        except psutil.Error:
            alive = False
        return {
            "the canary": file(self.canary),
            "the private file": file(self.private),
            "the marked file": file(self.marked),
            "the open directory": file(self.open_directory),
            "the scene": sorted(os.listdir(self.base)),
            "the victim": alive,
            "the host's name": socket.gethostname(),
            "the host's signals": signal.getsignal(signal.SIGIO),
        }


def _reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(100)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
