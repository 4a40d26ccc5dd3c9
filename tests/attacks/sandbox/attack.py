"""One attack on the sandbox: a program with full control of its code, what it wants, and what stops it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ALL = ("root", "userns", "landlock")
NAMESPACES = ("root", "userns")
"""The modes with namespaces, a root of its own and a file system in memory."""
ALONE = ("landlock",)
"""The mode with none of them: Landlock, seccomp, rlimits and the host."""

BREACH = "BREACH"
"""Printed by a program only when it got what it wanted."""
HELD = "held"
"""Printed by a program that tried and was refused: an attack that never ran proves nothing."""

LAYERS = {
    "mounts": "a root of its own, read-only, with a work directory in memory",
    "processes": "a namespace of processes, which ends with its first one",
    "network": "a network namespace with nothing in it",
    "ipc": "a namespace for System V and POSIX IPC",
    "host name": "a namespace for the machine's name",
    "cgroup": "a namespace for control groups",
    "uid": "a user that nothing else has (root mode)",
    "capabilities": "none, and none can be had",
    "rlimits": "the kernel's limits for each process",
    "landlock": "files, TCP ports, signals and abstract sockets",
    "seccomp": "an allow-list of system calls",
    "no new privileges": "set-user-id programs gain nothing",
    "not dumpable": "the kernel shows nothing of the process, to itself neither",
    "closed handles": "nothing is open but 0, 1, 2 and the line to the host",
    "clean start": "the zygote has no environment, no secret and no program of another job in it",
    "own process": "every program has a process of its own, forked from one that ran none",
    "host limits": "the host counts time, output, disk and requests, and kills",
    "line limits": "the host takes small, shallow JSON, one request at a time, and a thousand of them",
    "collector": "the host takes plain files only, through a handle, after the program is gone",
    "killed by handle": "the host holds a handle of the first process and kills that one",
}
"""What can stop an attack, in the words of the page."""

Language = Literal["python", "shell"]


@dataclass(frozen=True)
class Attack:
    name: str
    """What it tries, as the page says it."""
    code: str
    stopped_by: tuple[str, ...]
    """The layers, the first one it meets first; in the weakest mode at least one of them stands."""
    language: Language = "python"
    modes: tuple[str, ...] = ALL
    then: str = ""
    """A second program, run after the first, that looks for what the first one left."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[str, ...] = ()
    """How it may end instead of saying that it was refused: names of limits, `killed`, `exit N`, `any`."""
    ends_alone: tuple[str, ...] = ()
    """The same, in the mode without namespaces only."""
    broker: bool = False
    stdin: bytes = b""

    def __post_init__(self) -> None:
        unknown = set(self.stopped_by) - set(LAYERS)
        if unknown or not self.stopped_by:
            raise ValueError(f"{self.name!r} is stopped by nothing that is there: {sorted(unknown)}")


def shell(name: str, code: str, *stopped_by: str, ends: tuple[str, ...] = (), **more: Any) -> Attack:
    """A script; where it may start nothing, it may also end at the first program it wants to start."""
    return Attack(
        name, code, stopped_by, language="shell", ends=ends, ends_alone=("processes", "exit 2"), **more
    )
