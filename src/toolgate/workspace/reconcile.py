"""What became of a change whose process died: the hashes of its files tell, and the kept images finish it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from toolgate.core.change import DIRECTORY
from toolgate.core.combine import Entry, Place, place_of
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.core.tool import Outcome

Side = Literal["before", "after"]


class Rollable(Protocol):
    """The part of the files' service that settling needs."""

    async def sweep(self, paths: Sequence[MountPath]) -> None: ...

    async def hashes(self, paths: Sequence[MountPath]) -> list[str | None]: ...

    async def roll_manifest(self, manifest: Sequence[Mapping[str, Any]], to: Side) -> None: ...


class Settlement(NamedTuple):
    outcome: Outcome
    why: str


async def settle_change(files: Rollable, manifest: Sequence[Mapping[str, Any]]) -> Settlement:
    """Only for a change whose owner is dead. Never guesses: a third content is `unknown`, and is left alone."""
    paths = [MountPath.parse(entry["path"]) for entry in manifest]
    try:
        await files.sweep(paths)
        found = await files.hashes(paths)
    except CallError as error:
        return Settlement("unknown", f"the files cannot be examined: {error}")
    places = {place_of(entry) for entry in manifest}
    pairs = [(entry, _part(entry, hash_, places)) for entry, hash_ in zip(manifest, found, strict=True)]
    if all(hash_ == entry["after"] for entry, hash_ in pairs) and not _modes(manifest):
        return Settlement("happened", "every file has its new content")
    if all(hash_ == entry["before"] for entry, hash_ in pairs) and not _same(manifest):
        return Settlement("not", "every file still has its old content")
    for entry, hash_ in pairs:
        if hash_ not in (entry["before"], entry["after"]):
            return Settlement("unknown", f"{entry['path']} has neither its old nor its new content")
    return await _finish(files, manifest)


def _part(entry: Entry, found: str | None, places: set[Place]) -> str | None:
    """Where a file becomes a directory or the other way round, each entry sees only what is its own."""
    path, of_directory = place_of(entry)
    if (path, not of_directory) in places and (found == DIRECTORY) != of_directory:
        return None
    return found


def _modes(manifest: Sequence[Mapping[str, Any]]) -> bool:
    """Whether finishing may still have to give files their bits, which no hash shows."""
    return any("after_mode" in entry for entry in manifest)


def _same(manifest: Sequence[Mapping[str, Any]]) -> bool:
    """A change of nothing but bits: before and after cannot be told apart, and finishing is harmless."""
    return _modes(manifest) and all(entry["before"] == entry["after"] for entry in manifest)


async def _finish(files: Rollable, manifest: Sequence[Mapping[str, Any]]) -> Settlement:
    """Some files are new and some old: forward if the new contents are kept, else back."""
    forward = await _problem(files, manifest, "after")
    if forward is None:
        return Settlement("happened", "it was interrupted; the rest was written from the kept images")
    back = await _problem(files, manifest, "before")
    if back is None:
        return Settlement("not", "it was interrupted; what was written was taken back from the kept images")
    return Settlement("unknown", f"it was interrupted; finishing: {forward}; taking back: {back}")


async def _problem(files: Rollable, manifest: Sequence[Mapping[str, Any]], to: Side) -> str | None:
    try:
        await files.roll_manifest(manifest, to)
    except CallError as error:
        return str(error)
    return None
