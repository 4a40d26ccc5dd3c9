"""Verification of a garden: every file by its hash against the ledger, every row of the record by its seal.

The bytes of each file are read and hashed each time; nothing is believed because it was so before. What differs is looked at
again after the ledger: a call may have been changing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolgate.core.change import content_hash
from toolgate.core.errors import CallError
from toolgate.core.paths import MountPath
from toolgate.features.garden.grammar import read
from toolgate.features.garden.ledger_course import ExpectedFiles
from toolgate.features.garden.rows import GardenEdit, is_genuine

if TYPE_CHECKING:
    from toolgate.features.garden.record import GardenRecord
    from toolgate.workspace.files import WorkspaceFiles

Tell = Callable[[int, int], None]
"""Hears how many files are done, and of how many."""
_AT_ONCE = 200
_PAUSES = (0.0, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    path: str
    state: str
    """`ok`, `changed` without an event, `unrecorded`, `missing`, `forged`."""
    event: int = 0
    sections: list[str] = field(default_factory=list)
    """Which of them are not as recorded."""


async def verified(
    record: GardenRecord, files: WorkspaceFiles, paths: Sequence[MountPath], below: str, tell: Tell | None
) -> list[VerifiedFile]:
    hashes: dict[str, str | None] = {}
    for start in range(0, len(paths), _AT_ONCE):
        hashes.update(await _hashes(files, paths[start : start + _AT_ONCE]))
        if tell is not None:
            tell(len(hashes), len(paths))
    expected = ExpectedFiles(
        record.ledger, lambda path: path.startswith(below) and record.place(MountPath(path)) is not None
    )
    await expected.look()
    for pause in _PAUSES:
        doubtful = _differing(hashes, expected)
        await asyncio.sleep(pause if doubtful else 0)
        now = await _hashes(files, [MountPath(path) for path in doubtful])
        steady = all(now[path] == hashes.get(path) and path not in expected.busy for path in doubtful)
        hashes |= now
        if steady:
            break  # as it was before the ledger was read, and nobody was at it
        await expected.look()
    await record.sync()
    rows = await record.latest(below)
    return [
        await _judged(record, files, path, hashes[path], expected.found.get(path), rows.get(path))
        for path in sorted(hashes)
    ]


async def _hashes(files: WorkspaceFiles, paths: Sequence[MountPath]) -> dict[str, str | None]:
    contents = await files.read_many(paths) if paths else []
    return {str(path): content_hash(content) for path, content in zip(paths, contents, strict=True)}


def _differing(hashes: Mapping[str, str | None], expected: ExpectedFiles) -> list[str]:
    gone = [path for path, (digest, _) in expected.found.items() if digest and path not in hashes]
    return gone + [
        path for path, digest in hashes.items() if (expected.found.get(path) or ("",))[0] != digest
    ]


async def _judged(
    record: GardenRecord, files: WorkspaceFiles, path: str, digest: str | None,
    known: tuple[str | None, int] | None, row: Mapping[str, Any] | None,
) -> VerifiedFile:  # fmt: skip
    if known is None:
        return VerifiedFile(path, "unrecorded")
    expected, event = known
    if digest == expected:
        if row is not None and row["event"] >= event and is_genuine(record.ledger.keys, row):
            return VerifiedFile(path, "ok", event)
        altered = await _altered(record, files, path, row)
        return VerifiedFile(path, "forged", event, altered or ["(who wrote it)"])
    if digest is None and not await _is_there(files, path):
        return VerifiedFile(path, "missing", event)
    return VerifiedFile(path, "changed", event, await _altered(record, files, path, row))


async def _is_there(files: WorkspaceFiles, path: str) -> bool:
    try:
        return await files.look_at(MountPath(path)) is not None
    except CallError:
        return True  # something that may not be opened


async def _altered(
    record: GardenRecord, files: WorkspaceFiles, path: str, row: Mapping[str, Any] | None
) -> list[str]:
    """Sections that are not as recorded, by the HMAC of each, with the version of the key that it was made with."""
    if row is None:
        return []
    try:
        edit = GardenEdit.of(row)
        document = read((await files.read(MountPath(path))) or b"")
    except (CallError, ValueError, TypeError):
        return ["(unreadable)"]

    def mac(text: str | None) -> str:
        return record.mac(text, edit.integrity_salt_version)[1] if text is not None else ""

    now = {one.anchor: document.text(one.start, one.end) for one in document.sections if one.anchor}
    names = dict.fromkeys([*edit.section_hashes, *now])
    wrong = [name for name in names if mac(now.get(name)) != edit.section_hashes.get(name, "-")]
    whole = mac(document.text()) != edit.line_hash
    return wrong or (["(outside the sections)"] if whole else [])
