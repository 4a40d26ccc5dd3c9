"""Checked files: those that decide what toolgate does, and what was found in a toolgate.yaml when it was read in full.

They are read once and from a place that no tool can write. What is checked is what was opened: the bytes come from one
handle, and the name is compared with that handle.

Reading a toolgate.yaml in full takes longer than all else that `pause` does, and half as long as opening a gate. So the
answer is kept in the user's own state directory, with the hash of the file's bytes and this version of toolgate: another byte,
another version or anything odd, and the file is read in full again. Where it lies, and whether a tool could write it there,
is looked at every time. This module has what the file means for its ledger; `known_config.py` has all of it, for a gate.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.errors import ConfigError, NotAllowed
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.names import HUMAN
from toolgate.project.trust import FILE
from toolgate.storage import durable
from toolgate.version import VERSION
from toolgate.workspace.placing import Placing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolgate.policy.model import MountSpec
    from toolgate.project.config import Config


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


MAX_BYTES = 1 << 20


class Checked(NamedTuple):
    """All that a command needs which opens the ledger and no gate."""

    database: str | None
    key_file: str | None
    expires_s: float
    max_open: int
    unattended: bool
    personas: tuple[str, ...]
    mounts: Mapping[str, str]
    """Their paths, as written."""


class HasPersonas(Protocol):
    @property
    def personas(self) -> Iterable[str]: ...


def check_persona(name: str, config: HasPersonas) -> None:
    """Raise NotAllowed where the configuration has no such persona."""
    if name != HUMAN and name not in config.personas:
        listed = ", ".join(config.personas) or "none"
        raise NotAllowed(f"there is no persona {name!r}", f"the personas are: {listed}")


def of(config: Config) -> Checked:
    consent = config.consent
    mounts = {name: mount.path for name, mount in config.mounts.items()}
    return Checked(
        config.ledger.database, config.ledger.key_file, consent.expires_s, consent.max_open, consent.unattended,
        tuple(config.personas), mounts,
    )  # fmt: skip


def known(root: Path, state_dir: Path) -> Checked | None:
    """What the file at this place says, where these very bytes were checked before. Raises WritableConfig."""
    file = root / FILE
    try:
        raw, status = read_once(file, MAX_BYTES)
        before = kept(root, state_dir)
        if before["file"] != hashlib.sha256(raw).hexdigest():
            return None
        found = _checked(before["says"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    check_place(file, status, {name: (root / path).resolve() for name, path in found.mounts.items()})
    return found


def kept(root: Path, state_dir: Path) -> dict[str, Any]:
    """What this version found when it read the file last. Raises OSError, ValueError, KeyError or TypeError."""
    found = json.loads(_place(root, state_dir).read_bytes())
    if not isinstance(found, dict) or found["toolgate"] != VERSION:
        raise ValueError("another version's")
    return found


def _checked(says: dict[str, Any]) -> Checked:
    return Checked(**(says | {"personas": tuple(says["personas"]), "mounts": dict(says["mounts"])}))


def remember(root: Path, state_dir: Path, config: Config, digest: str, whole: Mapping[str, Any]) -> None:
    """Keep what the file with this hash says. What cannot be kept is read in full again."""
    told = {"toolgate": VERSION, "file": digest, "says": of(config)._asdict(), "whole": whole}
    with suppress(OSError):
        durable.replace(_place(root, state_dir), json.dumps(told).encode())


def _place(root: Path, state_dir: Path) -> Path:
    return state_dir / "checked" / f"{hashlib.sha256(str(root).encode()).hexdigest()}.json"
