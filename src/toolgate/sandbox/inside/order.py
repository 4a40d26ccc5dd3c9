"""What the host asks of the zygote: first what to build, then, when there is a program, what to run in it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Literal

Mode = Literal["root", "userns", "landlock"]
Kind = Literal["python", "javascript", "shell"]

WORK, PROJECT, PACKAGES, SCRAP = "/work", "/project", "/packages", ".tmp"
"""SCRAP is for temporary files, in the work directory; it does not come back."""
PROXY_PORT = 3128
ELSEWHERE = "/host"
"""Where something is put whose own place is taken."""
_TAKEN = (WORK, PROJECT, PACKAGES, ELSEWHERE, "/tmp", "/proc", "/dev", "/sys", "/run")  # noqa: S108
INSIDE_UID = 1000
"""Who a program is inside a user namespace."""

LAYERS = frozenset(
    {
        "mounts",
        "processes",
        "network",
        "ipc",
        "host name",
        "cgroup",
        "uid",
        "capabilities",
        "rlimits",
        "landlock",
        "seccomp",
    }
)
"""What can be left out by a test that wants to see what each layer stops."""


def placed(path: str) -> str:
    """Where in the new root a path of the host's is: the same place, unless the new root has its own use for it."""
    taken = any(path == each or path.startswith(each + "/") for each in _TAKEN)
    return ELSEWHERE + path if taken else path


@dataclass(frozen=True)
class Order:
    """What is fixed when the walls are raised, before a program is known."""

    kind: Kind
    uid: int
    """The job's own user, in root mode."""
    place: str
    """A directory of the host's to work in; empty: a new one, in memory, with the two limits below."""
    disk: int
    inodes: int
    read: list[str]
    execute: list[str]
    hide: list[str]
    packages: list[str]
    view: dict[str, Any] | None
    processes: bool
    network: bool
    off: list[str]

    def has(self, layer: str) -> bool:
        return layer not in self.off


@dataclass(frozen=True)
class Go:
    """What is run behind the walls."""

    code: str
    argv: list[str]
    env: dict[str, str]
    cpu: int
    memory: int
    processes: int
    files: int
    disk: int
    in_project: bool = False
    """It starts in its view of the project."""


def read_order(handle: int) -> Order:
    return Order(**_value(handle))


def read_go(handle: int) -> Go:
    return Go(**_value(handle))


def _value(handle: int) -> dict[str, Any]:
    """From a file in memory, which unlike a socket takes any size at once."""
    with open(handle, "rb", closefd=True) as stream:
        os.lseek(handle, 0, os.SEEK_SET)
        found: dict[str, Any] = json.loads(stream.read())
    return found
