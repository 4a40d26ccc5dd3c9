"""Watch over a garden: people's edits in an editor are recorded within seconds, and what they break is said with its repair.

Every process that stays looks at the status of each file every few seconds, and reads what has changed. Of several that
do, one records. `toolgate garden status` and `toolgate doctor` tell what is broken.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import ToolgateError

if TYPE_CHECKING:
    from toolgate.core.paths import MountPath
    from toolgate.feature import FeatureContext
    from toolgate.features.garden.rows import GardenEdit
    from toolgate.features.garden.service import Garden
    from toolgate.kits.terminal.checkup import Diagnosis, Patient

log = logging.getLogger("toolgate.garden")
EVERY_S = 2.0
_SHARE = 20
"""A look that takes long is made less often: it has a twentieth of the time."""
_AT_ONCE = 200
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class GardenFileStatus:
    """A file that a person edited last, or that breaks a rule."""

    path: str
    event: int
    """Of the last version."""
    at: int
    by_person: bool
    broken: list[str]
    repair: str


class GardenWatch:
    def __init__(self, garden: Garden) -> None:
        self._garden = garden
        self._seen: dict[MountPath, str] = {}

    async def run(self) -> None:
        while True:
            begun = time.monotonic()
            try:
                for edit in await self.look():
                    log.info("%s: a person's edit, event %s%s", edit.path, edit.event, _told(edit.lint))
            except (ToolgateError, OSError) as error:
                log.warning("the garden could not be looked at: %s", error)
            await asyncio.sleep(max(EVERY_S, _SHARE * (time.monotonic() - begun)))

    async def look(self) -> list[GardenEdit]:
        """What people have edited since the last look; it is on record now."""
        found: list[GardenEdit] = []
        for mount in self._garden.mounts:
            files = [
                file
                for file in await self._garden.scan("", mount, statuses=True)
                if not file.status or self._seen.get(file.path) != file.status
            ]
            for start in range(0, len(files), _AT_ONCE):
                some = files[start : start + _AT_ONCE]
                noticed = await self._garden.notice_these([file.path for file in some])
                found += noticed.edits
                self._seen.update((file.path, file.status) for file in some if file.path not in noticed.left)
        return found


def run(context: FeatureContext) -> Coroutine[Any, Any, None] | None:
    files = context.files
    if files is None or not any(files.mounts.kind(mount.name).name == "garden" for mount in files.mounts):
        return None
    return _watch(context)


async def _watch(context: FeatureContext) -> None:
    await asyncio.sleep(EVERY_S)  # whoever starts a server waits for its first answer, not for this
    await GardenWatch(context.gate.feature("garden")).run()


async def status_of(garden: Garden, user: str, mount: str) -> list[GardenFileStatus]:
    """Files that a person edited last, and those that break a rule, with the repair of each."""
    from toolgate.features.garden.ledger_course import PERSON_EDIT
    from toolgate.features.garden.rows import believed

    below = f"{mount}:users/{user}/" if user else f"{mount}:users/"
    await garden.record.sync()
    said, found = await garden.lint_all(user, mount), []
    for path, row in sorted((await garden.record.latest(below)).items()):
        edit = believed(garden.record.ledger.keys, row)
        by_person = edit.op == PERSON_EDIT and edit.number > 1
        if path not in said:
            repair = f"toolgate garden restore {path} {edit.event}"
            found.append(GardenFileStatus(path, edit.event, edit.at, True, ["it was deleted"], repair))
            continue
        blocked = [one for one in said[path] if one.severity == "blocked"]
        rules = [one for one in edit.lint if "(rule garden:" in one] if by_person else []
        broken = [*(one.shown() for one in blocked), *rules]
        if not broken and not by_person:
            continue
        # where every section is lost, nothing is left to mend
        left = edit.section_hashes or path.endswith("/notes.md") or not edit.before_hash
        mends = blocked and left and all(one.fixable for one in blocked)
        repair = f"toolgate garden fix {path}" if mends else _back(edit, by_person) if broken else ""
        found.append(GardenFileStatus(path, edit.event, edit.at, by_person, broken, repair))
    return found


def _back(edit: GardenEdit, by_person: bool) -> str:
    """To the version before a person's; where what is there is not on record, to the last one. Mending it by hand is a repair,
    too: the next look finds nothing."""
    digest = edit.before_hash if by_person else edit.after_hash
    return f"toolgate garden restore {edit.path} {digest[7:19]}" if digest else "mend it by hand"


def _told(said: list[str]) -> str:
    return "; ".join(["", *said])


async def garden(patient: Patient) -> AsyncIterator[Diagnosis]:
    from toolgate.kits.terminal.checkup import Diagnosis

    gate = patient.gate
    if gate is None or gate.files is None:
        return
    found: Garden = gate.feature("garden")
    for mount in found.mounts:
        files = await found.files("", mount)
        if not files:
            continue
        broken = [one for one in await status_of(found, "", mount) if one.broken]
        for one in broken[:_SHOWN]:
            yield Diagnosis("warn", "garden", f"{one.path}: {one.broken[0]}", one.repair)
        if len(broken) > _SHOWN:
            yield Diagnosis("warn", "garden", f"and {len(broken) - _SHOWN} more", "`toolgate garden status`")
        changed = await found.unrecorded("", mount)
        if changed:
            told = f"{len(changed)} file{'s' * (len(changed) != 1)} changed outside the gate: {changed[0]}"
            yield Diagnosis(
                "warn", "garden", told, "`toolgate garden verify --record` records it as a person's"
            )
        if not broken and not changed:
            yield Diagnosis("ok", "garden", f"{len(files):,} files in {mount}, all as recorded")


CHECKS = (garden,)
