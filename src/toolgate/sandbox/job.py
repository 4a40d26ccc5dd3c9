"""What a program in the sandbox is given, and what comes back. Everything here is a plain value."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

Language = Literal["python", "javascript", "shell"]
Mode = Literal["root", "userns", "landlock"]
"""Which walls stand: namespaces made by root, by a user namespace, or none but Landlock and seccomp."""

Limit = Literal["time", "cpu", "memory", "processes", "files", "disk", "inodes", "output", "requests"]
"""What a program can run into; an Outcome names the one that ended it or that it hit."""

WORK = "/work"
"""Where a program starts and may write; what it leaves there comes back."""
PROJECT = "/project"
"""Where the project's view is, if it has one."""
PROXY_PORT = 3128
"""The egress proxy, on the program's own loopback: its own listening socket, served by the host."""


@dataclass(frozen=True, slots=True)
class Limits:
    wall_s: float = 30.0
    cpu_s: int = 30
    memory_bytes: int = 512 << 20
    """For each process; programs that may start others are also held by `processes`."""
    processes: int = 1
    """Including the program itself: 1 means that it can start none."""
    files: int = 256
    """Open at once."""
    disk_bytes: int = 64 << 20
    inodes: int = 4096
    output_bytes: int = 1 << 20
    """stdout and stderr together."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a project keeps its programs and packages. They are shown whole and read-only, and run in the sandbox alone."""

    python: str = ""
    """A virtual environment, relative to the project."""
    version: str = ""
    """Of its Python: `3.12`."""
    base: str = ""
    """The installation that it was made from: a directory of the machine, which is then readable too."""
    node: str = ""
    """A directory `node_modules`, relative to the project."""
    shut: tuple[str, ...] = ()
    """Names in these that must not be seen, relative to the project."""

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.python, self.node)))

    @property
    def programs(self) -> tuple[str, ...]:
        """Where its programs are, relative to the project."""
        found = (self.python and f"{self.python}/bin", self.node and f"{self.node}/.bin")
        return tuple(filter(None, found))


@dataclass(frozen=True, slots=True)
class View:
    """The project as a program sees it: without the hidden names, and nothing it writes reaches the real files."""

    root: Path
    hidden: tuple[str, ...] = ()
    """Relative names that must not be seen, files or whole directories."""
    writable: bool = False
    """Copy on write: what it changed comes back as `Outcome.delta`."""
    environment: Environment | None = None
    """What the project's own programs need; only where there are namespaces."""

    @property
    def known_as(self) -> str:
        """Where the project is on this machine, if programs in it are to find it there too."""
        return os.path.realpath(self.root) if self.environment is not None else ""


@dataclass(frozen=True, slots=True)
class Job:
    language: Language
    code: str = ""
    """The program's text; for `shell` a script, unless there is an argv."""
    argv: tuple[str, ...] = ()
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)
    secrets: tuple[str, ...] = ()
    """Names only. What the program holds is a placeholder, unless the owner lets a value be revealed."""
    view: View | None = None
    files: tuple[Left, ...] = ()
    """Put into the work directory before it starts."""
    packages: tuple[Path, ...] = ()
    """Extra directories of Python packages, read-only."""
    in_project: bool = False
    """It starts in its view of the project, and not in the work directory."""


@dataclass(frozen=True, slots=True)
class Left:
    """A file that was left in the work directory."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Altered:
    """One name in the project's view that is not as it was."""

    path: str
    kind: Literal["file", "directory", "gone", "other"]
    """`other` is what cannot be taken over: links, sockets, devices."""
    content: bytes = b""
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request that a program made through the egress proxy, let through or not. No secret is in it."""

    method: str
    url: str
    allowed: bool
    status: int = 0
    reason: str = ""
    """Why it was refused or failed."""
    address: str = ""
    sent: int = 0
    received: int = 0
    injected: tuple[str, ...] = ()
    """Names of the secrets that the proxy put in."""


@dataclass(frozen=True, slots=True)
class Outcome:
    stdout: bytes
    stderr: bytes
    exit_code: int | None
    """None where it was ended from outside."""
    limit: Limit | None = None
    signal: int = 0
    duration_s: float = 0.0
    cpu_s: float = 0.0
    memory_bytes: int = 0
    outputs: tuple[Any, ...] = ()
    """What the program gave to `output(...)`, as JSON values."""
    left: tuple[Left, ...] = ()
    delta: tuple[Altered, ...] = ()
    requests: tuple[Request, ...] = ()
    dropped: tuple[str, ...] = ()
    """What came back but could not be taken (too many, too large, not a file), in words."""


class Broker(Protocol):
    """Answers what a program asks over its own pipe: one JSON object in, one out. Must be quick."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]: ...


class Egress(Protocol):
    """The only way out: serves HTTP proxy requests on a listening socket that lives inside the job's network."""

    async def serve(self, listener: socket.socket) -> None:
        """Until cancelled; must not outlive the job."""
        ...

    @property
    def requests(self) -> tuple[Request, ...]: ...


class Sandbox(Protocol):
    @property
    def mode(self) -> Mode: ...

    def check(self, job: Job, *, networked: bool = False) -> None:
        """Refuses what could not be run, as far as that can be known before it is tried."""
        ...

    async def run(self, job: Job, *, egress: Egress | None = None, broker: Broker | None = None) -> Outcome:
        """Run one program to its end. Cancelling ends the program first. `Unavailable` where no wall holds."""
        ...
