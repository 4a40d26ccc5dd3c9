"""Proposals that are kept until they are applied or forgotten.

The contents are images, by hash; what is here is a small manifest for each, named by its own hash. So what was shown
is what is applied, or nothing is: a manifest or an image that is not what its name says is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolgate.core.canonical import digest
from toolgate.core.change import Change
from toolgate.core.clock import SECOND
from toolgate.core.errors import Failed, NotFound
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.holdings import SCRATCH

IDENT = re.compile(r"x_[0-9a-f]{32}")
MOST_PROPOSALS = 100
KEPT_HOURS = 24


class Proposals:
    """A directory for each persona: nobody's push out another's."""

    def __init__(self, directory: Path, files: WorkspaceFiles, now: Callable[[], int]) -> None:
        self._directory, self._files, self._now = directory, files, now

    async def keep(self, change: Change, persona: str) -> str:
        """Its id, which stands for exactly this change by this persona. Refuses what its persona has no room to keep."""
        manifest = [dict(entry) for entry in change.manifest]
        ident = _ident(manifest, persona)
        until = self._now() + KEPT_HOURS * 3600 * SECOND
        body = {"persona": persona, "until": until, "manifest": manifest}

        def work() -> None:
            place = self._directory / persona
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sweep(place)
            _write(place / f"{ident}.json", json.dumps(body))

        await self._files.hold(ident, persona, SCRATCH, change, until)
        await self._files.run(work)
        return ident

    async def load(self, ident: str, persona: str) -> Change:
        body = await self._files.run(lambda: self._read(ident, persona))
        if body is None or body["until"] < self._now():
            raise NotFound(
                f"there is no proposal {ident} of {persona}'s any more",
                f"run the program again; proposals are kept for {KEPT_HOURS} hours, a persona's last {MOST_PROPOSALS}",
            )
        return await self._files.load(body["manifest"])

    def _read(self, ident: str, persona: str) -> Mapping[str, Any] | None:
        if not IDENT.fullmatch(ident):
            return None
        try:
            body: dict[str, Any] = json.loads((self._directory / persona / f"{ident}.json").read_bytes())
            if _ident(body["manifest"], persona) == ident and isinstance(body["until"], int):
                return body
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            pass
        raise Failed(f"the kept proposal {ident} is damaged", "run the program again")


def _sweep(place: Path) -> None:
    """Make room for one: the oldest go, whether or not their time has come."""
    aged = []
    for file in place.glob("x_*.json"):
        with suppress(FileNotFoundError):
            aged.append((file.stat().st_mtime_ns, file))
    aged.sort()
    for _, file in aged[: max(len(aged) - MOST_PROPOSALS + 1, 0)]:
        file.unlink(missing_ok=True)


def _ident(manifest: list[dict[str, Any]], persona: str) -> str:
    return "x_" + digest({"manifest": manifest, "persona": persona}).rpartition(":")[2][:32]


def _write(file: Path, text: str) -> None:
    """Whole or not at all; losing one to a power cut only means to run the program again."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
    os.replace(temporary, file)
