"""What is remembered of a server between processes: the approved definitions, the last listing, its health.

It lives in the user's state directory, beside keys and trust: no tool reaches it, and neither does somebody who can
only write the project's files.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.features.servers.definitions import Definition, sort_out
from toolgate.storage import durable

Stamp = tuple[int, int, int] | None


@dataclass
class ServerListing:
    """The tools as the server listed them last."""

    good: dict[str, Definition] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    launch: str = ""
    at: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class ToolPins:
    """The definitions that a human has seen and approved, for one way to start the server."""

    launch: str = ""
    tools: dict[str, Definition] = field(default_factory=dict)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] | None = None
    """Hashes of the files that it is started from, by name; None in approvals that knew nothing of them."""


RUNNING = "running"
"""The directory of marks, one for each server and process that has it running; each is locked as long as that is so."""


class RunningMark:
    """Says to other processes that a server runs in this one. The kernel takes it back, however this one ends."""

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / RUNNING / f"{name}.{os.getpid()}"
        self._handle = -1

    def set(self) -> None:
        """Nothing depends on it: where it cannot be written, others do not know."""
        if self._handle < 0:
            with suppress(OSError):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._handle = os.open(
                    self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
                )
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def clear(self) -> None:
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(handle)


class ServerStore:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def stamp(self, name: str) -> tuple[Stamp, Stamp]:
        """Changes whenever another process approved or listed something."""
        return self._stamp(f"{name}.pins"), self._stamp(f"{name}.seen")

    def changed(self) -> Stamp:
        """Of the whole directory: every write puts a new file into it."""
        try:
            status = self.directory.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def pins(self, name: str) -> ToolPins:
        data = self._read(f"{name}.pins")
        tools = data.get("tools", {})
        return ToolPins(
            str(data.get("launch", "")),
            {local: Definition(entry["definition"]) for local, entry in tools.items()},
            {local: {k: v for k, v in entry.items() if k != "definition"} for local, entry in tools.items()},
            data.get("files"),
        )

    def save_pins(self, name: str, pins: ToolPins) -> None:
        tools = {
            local: {**pins.about.get(local, {}), "definition": dict(definition.raw)}
            for local, definition in pins.tools.items()
        }
        self._write(f"{name}.pins", {"launch": pins.launch, "tools": tools, "files": pins.files})

    def listing(self, name: str) -> ServerListing:
        data = self._read(f"{name}.seen")
        good, bad = sort_out(data.get("tools", []))
        for local, problem in data.get("refused", {}).items():
            good.pop(local, None)
            bad[local] = problem
        return ServerListing(good, bad, data.get("launch", ""), data.get("at", 0.0), data.get("facts", {}))

    def save_listing(
        self, name: str, tools: list[dict[str, Any]], refused: Mapping[str, str], launch: str, facts: Any
    ) -> None:
        old = self._read(f"{name}.seen")
        new = {"tools": tools, "refused": dict(refused), "launch": launch, "facts": facts}
        if any(old.get(key) != value for key, value in new.items()):
            self._write(f"{name}.seen", {**new, "at": time.time()})

    def health(self, name: str) -> dict[str, Any]:
        return self._read(f"{name}.health")

    def save_health(self, name: str, health: Mapping[str, Any]) -> None:
        self._write(f"{name}.health", dict(health))

    def running(self, name: str) -> list[int]:
        """Other processes that have it running now. A mark whose process is gone is removed."""
        found = []
        for path in sorted((self.directory / RUNNING).glob(f"{name}.*")):
            pid = path.name.rpartition(".")[2]
            if pid.isdigit() and int(pid) != os.getpid() and path.name == f"{name}.{pid}" and _is_held(path):
                found.append(int(pid))
        return found

    def ask_restart(self, name: str) -> None:
        self._write(f"{name}.restart", {"at": time.time()})

    def restart_stamp(self, name: str) -> Stamp:
        return self._stamp(f"{name}.restart")

    def _stamp(self, file: str) -> Stamp:
        try:
            status = (self.directory / f"{file}.json").stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self, file: str) -> dict[str, Any]:
        path = self.directory / f"{file}.json"
        try:
            data = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise Unavailable(
                f"{path} cannot be read: {error}", "remove it; then approve the server again"
            ) from None
        return data if isinstance(data, dict) else {}

    def _write(self, file: str, data: Mapping[str, Any]) -> None:
        durable.replace(self.directory / f"{file}.json", json.dumps(data, indent=1).encode())
