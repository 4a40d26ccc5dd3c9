"""Definitions of a server's tools: kept as it says them, named so that no name can pose as another; and what else is
remembered of a server between processes: which of them were approved, the last listing, its health.

That lives in the user's state directory, beside keys and trust: no tool reaches it, and neither does somebody who can
only write the project's files.
"""

from __future__ import annotations

import difflib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from toolgate.core.canonical import canonical, digest
from toolgate.core.errors import CallError, Unavailable
from toolgate.storage import durable

KEYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
MAX_TOOLS = 1000
MAX_DEFINITION = 256 * 1024
MAX_NAME = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Definition:
    raw: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name at the server."""
        return str(self.raw["name"])

    @property
    def description(self) -> str:
        return str(self.raw.get("description") or "")

    @property
    def input_schema(self) -> dict[str, Any]:
        return dict(self.raw.get("inputSchema") or {})

    @property
    def output_schema(self) -> dict[str, Any] | None:
        found = self.raw.get("outputSchema")
        return dict(found) if isinstance(found, Mapping) else None

    @cached_property
    def digest(self) -> str:
        return digest(dict(self.raw))

    def hint(self, name: str) -> bool | None:
        annotations = self.raw.get("annotations")
        value = annotations.get(name) if isinstance(annotations, Mapping) else None
        return value if isinstance(value, bool) else None

    @property
    def says_read_only(self) -> bool:
        return self.hint("readOnlyHint") is True and self.hint("destructiveHint") is not True

    def pretty(self) -> str:
        return json.dumps(dict(self.raw), indent=2, ensure_ascii=False, sort_keys=True)


def safe_name(name: str) -> str:
    """The verb under which a tool of a server is known here."""
    made = _UNSAFE.sub("_", name)
    return made if made[:1].isalnum() else f"t{made}"


def sort_out(raws: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Definition], dict[str, str]]:
    """Definitions by the name they are known by here, and what is wrong with those that cannot enter."""
    good: dict[str, Definition] = {}
    taken: dict[str, str] = {}
    bad: dict[str, str] = {}
    found = [Definition(dict(raw)) for raw in raws]
    # whoever is spelled exactly so, in lower case, comes first: a look-alike cannot take its name
    for one in sorted(
        found, key=lambda one: (safe_name(one.name) != one.name, not one.name.islower(), one.name)
    ):
        problem = _problem(one)
        local = safe_name(one.name)
        first = taken.get(local.casefold())
        if problem is None and first is not None:
            problem = f"its name would be `{local}`, which the tool {first!r} has"
        if problem is not None:
            bad[one.name[:MAX_NAME]] = problem
            continue
        taken[local.casefold()] = one.name
        good[local] = one
    return good, bad


def _problem(one: Definition) -> str | None:
    if not one.name or len(one.name) > MAX_NAME:
        return f"its name has {len(one.name)} characters; 1 to {MAX_NAME} are possible"
    if not isinstance(one.raw.get("inputSchema"), Mapping):
        return "it has no input schema"
    try:
        size = len(canonical(dict(one.raw)))
    except CallError as error:
        return f"its definition has no exact form: {error.message}"
    if size > MAX_DEFINITION:
        return f"its definition has {size:,} characters; the most is {MAX_DEFINITION:,}"
    return None


def difference(old: Definition | None, new: Definition | None) -> str:
    """What changed, line by line, for a human to read."""
    before = _lines(old)
    after = _lines(new)
    names = ("approved" if old else "/dev/null", "as it is now" if new else "/dev/null")
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


SUMMARY = 160
"""Characters of a description that a summary has."""


def summary(one: Definition | None) -> str:
    """One line: what it claims about itself, its arguments, and the beginning of what it says."""
    if one is None:
        return "it is not there any more"
    text = " ".join(one.description.split())
    cut = f"… (cut: {len(one.description):,} characters)" if len(text) > SUMMARY else ""
    claims = [said for name, said in _CLAIMS if one.hint(name)] or ["claims nothing"]
    properties = one.input_schema.get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    args = ", ".join(str(name)[:40] for name in names[:8]) + ("…" if len(names) > 8 else "")
    return f"{', '.join(claims)} · takes {args or 'nothing'} · {text[:SUMMARY] or 'says nothing'}{cut}"


_CLAIMS = (("readOnlyHint", "says it only reads"), ("destructiveHint", "says it may destroy"))


def _lines(one: Definition | None) -> list[str]:
    """A description is shown line by line, so that one changed sentence is one changed line."""
    if one is None:
        return []
    rest = {key: value for key, value in one.raw.items() if key != "description"}
    text = json.dumps(rest, indent=2, ensure_ascii=False, sort_keys=True).split("\n")
    # not splitlines, which would swallow the rarer line breaks; the mark keeps a description from posing as a schema
    return ["description:", *(f"  | {line}" for line in one.description.split("\n")), *text]


# What is remembered.

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


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class ServerStore:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def stamp(self, name: str) -> tuple[Stamp, Stamp]:
        """Changes whenever another process approved or listed something."""
        return _stamp(self.directory / f"{name}.pins.json"), _stamp(self.directory / f"{name}.seen.json")

    def changed(self) -> Stamp:
        """Of the whole directory: every write puts a new file into it."""
        return _stamp(self.directory)

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
        return _stamp(self.directory / f"{name}.restart.json")

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
