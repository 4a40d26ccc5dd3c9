"""The official conformance suite, run as its users run it, and what it found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from node.programs import run

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
SECONDS = 240.0
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass(frozen=True)
class Outcome:
    passed: int
    failures: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.passed > 0 and not self.failures


Found = dict[str, Outcome]


async def of_server(url: str, version: str, out: Path, only: str = "") -> Found:
    """Every scenario that the suite has for this version, or one."""
    which = ("--scenario", only) if only else ("--suite", "all")
    await run(
        "conformance", "server", "--url", url, *which, "--spec-version", version, "-o", str(out), seconds=SECONDS
    )  # fmt: skip
    return {_STAMP.sub("", one.name).removeprefix("server-"): _read(one) for one in out.iterdir()}


async def of_client(command: str, scenario: str, version: str, out: Path) -> Outcome:
    ended = await run(
        "conformance", "client", "--command", command, "--scenario", scenario, "--spec-version", version, "-o", str(out),
        seconds=SECONDS,
    )  # fmt: skip
    found = _read(next(out.iterdir()))
    assert found.failures or ended.code == 0, ended
    return found


def _read(directory: Path) -> Outcome:
    checks = json.loads((directory / "checks.json").read_text())
    failures = [f"{one['id']}: {one.get('errorMessage', '')}" for one in checks if one["status"] == "FAILURE"]
    return Outcome(sum(one["status"] == "SUCCESS" for one in checks), tuple(failures))
