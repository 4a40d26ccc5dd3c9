"""Hostile JavaScript in every mode, judged by what happened outside: with Deno as we start it, and with Deno's own
permissions opened, so that only the walls of the operating system are left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from attacks.javascript import FILES, FLOODS, NETWORK, PROCESSES, SMALL, Attack, Flood
from attacks.outside import CANARY, Outside
from sampling import sampled
from sandbox import as_user, opened
from sandbox.remote import Remote, modes
from toolgate.sandbox import javascript
from toolgate.sandbox.job import Job, Limits, Outcome

ATTACKS = [*FILES, *PROCESSES, *NETWORK]
AT_ONCE = 4
FEW = 15
"""Of the attacks, in a sample."""


@pytest.fixture(autouse=True)
def canary_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", CANARY)


@pytest.fixture(params=modes())
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def world(attack: str, host: int, mode: str) -> AsyncIterator[Outside]:
    outside = Outside(attack, host, as_user.command([]) if mode != "root" else ())
    knocking = asyncio.create_task(_knock(outside)) if "$FREE" in attack else None
    try:
        yield outside
    finally:
        if knocking:
            knocking.cancel()
        outside.close()


async def _knock(outside: Outside) -> None:
    while True:
        await asyncio.sleep(0.05)
        await asyncio.to_thread(outside.knock)


async def harms(remote: Remote, attacks: Sequence[Attack]) -> dict[str, list[str]]:
    """What each attack did outside; those that did nothing are not in it."""
    found: dict[str, list[str]] = {}
    room = asyncio.Semaphore(AT_ONCE)

    async def one(attack: Attack) -> None:
        async with room, world(attack.code, remote.process.pid, remote.mode) as outside:
            outcome = await remote.run(Job("javascript", outside.code, limits=Limits(wall_s=8.0)))
            if harm := outside.harm(outcome):
                found[attack.name] = harm

    await asyncio.gather(*map(one, attacks))
    return found


def test_there_are_enough_and_each_says_what_it_tries_and_what_stops_it() -> None:
    names = [each.name for each in (*ATTACKS, *FLOODS)]
    assert len(names) == len(set(names)) >= 40
    assert all(each.tries and each.stopped_by for each in ATTACKS)


async def test_nothing_outside_is_reached(mode: str) -> None:
    with Remote(mode) as remote:
        assert await harms(remote, sampled(ATTACKS, FEW, mode)) == {}
        assert remote.process.poll() is None


async def test_nothing_outside_is_reached_if_deno_lets_everything_through(mode: str) -> None:
    with Remote(mode, ["deno"]) as remote:
        assert await harms(remote, sampled(ATTACKS, FEW, f"{mode} without deno")) == {}
        assert remote.process.poll() is None


DANGEROUS = {"kill all", "the runtime itself"}
"""Never tried without walls."""
INVISIBLE = {
    "memory by proc", "wasi", "native addon", "internals", "packages", "vsock", "cluster",
    "left symlink", "left directory symlink", "outputs symlink", "fetch", "http client",
}  # fmt: skip
"""They show nothing outside by themselves, need the host that collects files, or are led to the proxy by the prelude."""


async def test_without_walls_the_attacks_do_what_they_try(tmp_path: Path) -> None:
    """An attack that fails everywhere would prove nothing."""
    failed = []
    room = asyncio.Semaphore(AT_ONCE)

    async def one(attack: Attack) -> None:
        async with room, world(attack.code, os.getpid(), "root") as outside:
            work = tmp_path / attack.name
            work.mkdir()
            if not outside.harm(await _bare(outside.code, work)):
                failed.append(attack.name)

    shown = [each for each in ATTACKS if each.name not in DANGEROUS | INVISIBLE]
    await asyncio.gather(*map(one, sampled(shown, FEW, "without walls")))
    assert not failed, failed


async def _bare(code: str, work: Path) -> Outcome:
    job = Job("javascript", code)
    given = javascript.Given.of(job, None, True)
    process = await asyncio.create_subprocess_exec(
        *opened.argv(javascript.command(str(javascript.find()), job, True)), cwd=work,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said = asyncio.ensure_future(process.communicate(given.stream()))
    await asyncio.wait([said], timeout=6)  # nobody answers those that reach a server
    if not said.done():
        process.kill()
    stdout, stderr = await said
    return Outcome(stdout, stderr, process.returncode)


@pytest.mark.sample(1, over="mode")
async def test_whoever_takes_too_much_is_stopped_and_told_by_which_limit(mode: str) -> None:
    room = asyncio.Semaphore(AT_ONCE)
    with Remote(mode) as remote:

        async def one(flood: Flood) -> tuple[str, str | None]:
            async with room:
                outcome = await remote.run(Job("javascript", flood.code, limits=flood.limits))
            assert outcome.memory_bytes < flood.limits.memory_bytes + (192 << 20), flood.name
            return flood.name, outcome.limit

        named = await asyncio.gather(*map(one, FLOODS))
    assert dict(named) == {flood.name: flood.limit for flood in FLOODS}


# ---- what only one layer stops

STRONGEST = modes()[0]


async def given_off(
    mode: str, off: Sequence[str], code: str, limits: Limits = SMALL
) -> tuple[Outcome, list[str]]:
    with Remote(mode, off) as remote:
        async with world(code, remote.process.pid, mode) as outside:
            outcome = await remote.run(Job("javascript", outside.code, limits=limits))
            return outcome, outside.harm(outcome)


async def test_only_deno_keeps_the_machine_and_its_libraries_from_a_program() -> None:
    code = "console.log(Deno.systemMemoryInfo().total, Deno.readFileSync('/etc/ld.so.cache').length > 0)"
    closed, _ = await given_off(STRONGEST, [], code)
    without, _ = await given_off(STRONGEST, ["deno"], code)
    assert closed.stdout == b""
    assert without.stdout.decode() == f"{psutil.virtual_memory().total} true\n"


async def test_only_seccomp_keeps_a_program_from_starting_another() -> None:
    code = (
        "const made = new Deno.Command(Deno.execPath(), { args: ['--version'] }).outputSync();"
        "console.log(new TextDecoder().decode(made.stdout))"
    )
    limits = Limits(processes=1)
    closed, _ = await given_off(STRONGEST, ["deno"], code, limits)
    without, _ = await given_off(STRONGEST, ["deno", "seccomp"], code, limits)
    assert b"deno " not in closed.stdout
    assert b"deno " in without.stdout, without


async def test_only_the_mounts_keep_a_program_from_learning_what_exists() -> None:
    code = "console.log(Deno.statSync('$SECRET').size)"
    closed, _ = await given_off(STRONGEST, ["deno"], code)
    without, _ = await given_off(STRONGEST, ["deno", "mounts"], code)
    assert closed.stdout == b""
    assert int(without.stdout) > len(CANARY)


async def test_only_landlock_keeps_files_closed_where_there_are_no_namespaces() -> None:
    for attack in (each for each in FILES if each.name in ("read", "write")):
        _, closed = await given_off("landlock", ["deno"], attack.code)
        _, without = await given_off("landlock", ["deno", "landlock"], attack.code)
        assert closed == []
        assert len(without) == 1


async def test_only_the_limits_of_the_kernel_bound_what_is_not_on_the_heap() -> None:
    code = "const all = []; for (let i = 0; i < 30; i++) all.push(new Uint8Array(1e7).fill(1)); console.log('all')"
    closed, _ = await given_off(STRONGEST, [], code)
    without, _ = await given_off(STRONGEST, ["rlimits"], code)
    assert (closed.limit, closed.stdout) == ("memory", b"")
    assert without.stdout == b"all\n"
    assert without.memory_bytes > 3e8
