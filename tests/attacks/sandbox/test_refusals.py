"""Where only Landlock and seccomp stand, what they could not hold is refused before anything runs."""

from __future__ import annotations

import json
import subprocess

import pytest

from .hosts import command, environment

_PROGRAM = """
import asyncio, json, sys
from attacks.sandbox.ablate import Door
from toolgate.core.errors import Unavailable
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job, Limits

async def main():
    host, said = Host("landlock"), {}
    for name, job, egress in (
        ("fork", Job("python", "print(1)", limits=Limits(processes=2)), None),
        ("fork of a shell", Job("shell", "echo 1", limits=Limits(processes=32)), None),
        ("network", Job("python", "print(1)"), Door()),
        ("nothing", Job("python", "print(1)"), None),
    ):
        try:
            said[name] = (await host.run(job, egress=egress)).stdout.decode()
        except Unavailable as error:
            said[name] = f"refused: {error}"
    await host.close()
    return said

print(json.dumps(asyncio.run(main())))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    own = command("attacks.sandbox.runner", "landlock")
    argv = [
        own[0],
        "-c",
        f"import sys\nfrom sandbox import as_user\nas_user.become({own[-1]}) if {own[-1]} else None\n{_PROGRAM}",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/", env=environment())
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("grant", ["fork", "fork of a shell", "network"])
def test_what_needs_namespaces_is_refused_where_there_are_none(said: dict[str, str], grant: str) -> None:
    assert said[grant].startswith("refused: ")
    assert "needs namespaces" in said[grant]


def test_a_program_without_grants_runs(said: dict[str, str]) -> None:
    assert said["nothing"] == "1\n"
