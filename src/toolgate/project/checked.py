"""Checked configurations: what a toolgate.yaml says, as it was found when the file was read in full.

Reading the file in full takes longer than all else that `pause` does, and half as long as opening a gate. So the answer is
kept in the user's own state directory, with the hash of the file's bytes and this version of toolgate: another byte,
another version or anything odd, and the file is read in full again. Where it lies, and whether a tool could write it there,
is looked at every time. This module has what the file means for its ledger; `known_config.py` has all of it, for a gate.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.errors import NotAllowed
from toolgate.core.named_tuples import NamedTuple
from toolgate.core.names import HUMAN
from toolgate.project.own_files import check_place, read_once
from toolgate.project.trust import FILE
from toolgate.storage import durable
from toolgate.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from toolgate.project.config import Config

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
