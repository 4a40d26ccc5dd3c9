"""Attempts on a project full of traps: each goes through a gate, and afterwards all must be as it was and nothing said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import toolgate
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.ledger.keys import Keys
from toolgate.storage.port import Filter

from .reach import Way
from .traps import CANARY, SECRET, Place

ROOM = {"per_minute": 1_000_000, "per_hour": 1_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "scan": {"hidden": "allow"},  # odd names must be stopped by the mounts, or be harmless; not by a question
    "default_persona": "thief",
    "personas": {
        "thief": {
            "phase": "collaborate",
            "allow": ["fs.*", "code.*"],
            "mounts": ["project", "scratch", "garden"],
        },
        "poor": {"phase": "collaborate", "allow": ["fs.*", "code.*"], "mounts": ["project", "scratch"]},
    },
    "mounts": {
        "garden": {"path": "garden", "kind": "files", "writable": ["**"], "hidden": ["private/**", "private"]}
    },
    "limits": {"global": ROOM, "persona": ROOM},
    "ledger": {"key_file": "keys/ledger.json"},
}
HISTORY = ("code.log", "code.diff", "code.show", "code.blame")
"""They speak of names that were, and open none of them."""


@asynccontextmanager
async def attacked(place: Place) -> AsyncIterator[Gate]:
    """One gate for many attempts; afterwards nothing of what is shut is in any event, log or image."""
    async with toolgate.open(place.root, CONFIG, "memory", keys=Keys({1: b"k" * 32}, b"s" * 32)) as gate:
        yield gate
        kept = "".join(row.body for row in await gate.events(Filter(limit=100_000)))
    for file in (place.root / ".toolgate").rglob("*"):
        if file.is_file() and not file.is_symlink():
            kept += file.read_bytes().decode("latin-1")
    silent(kept, "what was recorded")


def silent(said: str, about: str) -> None:
    for word in (CANARY, SECRET, "root:x:0"):  # the last is /etc/passwd
        assert word not in said, about


def told(result: Result) -> str:
    return json.dumps(asdict(result), default=str)


async def attempt(gate: Gate, place: Place, path: str, those: Iterable[Way]) -> dict[Way, Result]:
    """One trick, every way. Whatever it is, it ends, says nothing and harms nothing."""

    async def one(way: Way) -> Result:
        result = await asyncio.wait_for(gate.call(way.tool, way.args(path)), 20)
        silent(told(result), f"{way} {path!r}")
        return result

    writers = [way for way in those if gate.services.registry.resolve(way.tool).effects.writes]
    readers = [way for way in those if way not in writers]  # these do not get into each other's way
    found = dict(zip(readers, await asyncio.gather(*map(one, readers)), strict=True))
    for way in writers:
        found[way] = await one(way)
        place.mend()
    place.check(repr(path))
    place.clear()
    return found


def let_in(path: str, found: dict[Way, Result]) -> list[str]:
    """The ways in which it was taken for the name of a file."""
    return [f"{way} {path!r}" for way, result in found.items() if result.ok and way.kind in ("path", "diff")]


def neutral(result: Result, name: str) -> tuple[Any, ...]:
    """What was answered, without the name and the id that make every answer another."""
    error = result.error
    if error is None:
        return (json.dumps(result.data, default=str).replace(json.dumps(name)[1:-1], "•"),)
    words = f"{error.message} {error.fix}".replace(result.meta.call_id, "its id")
    for part in (name, name.partition(":")[2] or name, name.rpartition("/")[2]):
        words = words.replace(part, "•") if len(part) > 2 else words
    return error.code, words
