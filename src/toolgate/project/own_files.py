"""Files that decide what toolgate does, read once and from a place that no tool can write.

What is checked is what was opened: the bytes come from one handle, and the name is compared with that handle.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.core.errors import ConfigError
from toolgate.workspace.placing import Placing

if TYPE_CHECKING:
    from toolgate.policy.model import MountSpec


class WritableConfig(ConfigError):
    """What the file says is not believed, not even which ledger it means: a tool may have written it."""


def read_once(file: Path, most: int) -> tuple[bytes, os.stat_result]:
    """Up to one byte more than the most, and what was read from. Raises OSError; ValueError for no regular file."""
    # Without O_NONBLOCK, a FIFO in its place would hold us until somebody writes into it.
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a regular file")
        return stream.read(most + 1), status


def mount_roots(root: Path, mounts: Mapping[str, MountSpec]) -> dict[str, Path]:
    return {name: (root / mount.path).resolve() for name, mount in mounts.items()}


def exposed(file: Path, status: os.stat_result, placing: Placing) -> tuple[str, str]:
    """Why a tool might write what was read, and what to do; empty words where none can.

    A file that lies in a mount under its own name is shut by policy, under every name it has there. A link is not
    accepted: what it leads to would be another file tomorrow.
    """
    spelled, real = os.path.normpath(file), os.path.realpath(file)
    try:
        now = os.stat(real)
    except OSError:
        now = None
    if now is None or (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
        return "it was replaced while it was read", "try again"
    names = placing.names(real)
    if names and spelled != real:
        return (
            f"it is or passes through a symbolic link and leads to {real}, which tools can reach as {names[0]}",
            "put the file itself there, or link to a place outside every mount",
        )
    if status.st_nlink > 1:
        return (
            "it has several names (hard links), and tools might write it by another one",
            f"replace it by a copy: cp {file} {file}.new && mv {file}.new {file}",
        )
    return "", ""


def check_config(file: Path, status: os.stat_result, root: Path, mounts: Mapping[str, MountSpec]) -> None:
    check_place(file, status, mount_roots(root, mounts))


def check_place(file: Path, status: os.stat_result, roots: Mapping[str, Path]) -> None:
    message, fix = exposed(file, status, Placing(roots))
    if message:
        raise WritableConfig(message, fix, str(file))
