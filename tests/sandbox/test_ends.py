"""However it ends, nothing of a program stays: no process, no mount, no directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from sandbox.remote import Remote, modes
from toolgate.core.errors import Unavailable
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job, Limits
from toolgate.sandbox.prepared import Prepared

FOREVER = "import os\nos.write(1, b'up')\nwhile True: pass"
FORKS = Limits(processes=20)


@pytest.fixture(params=modes())
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    """One that the test may kill."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o777)
        with Remote(request.param, tmp=directory) as remote:
            remote.tmp = Path(directory)  # type: ignore[attr-defined]
            yield remote  # type: ignore[misc]


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False


def spinning(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that use the processor. One that ends while it is looked at does not."""
    found = []
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if one.cpu_percent(0.05) > 50:
                found.append(one)
    return found


async def gone(processes: list[psutil.Process], seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(alive(one) for one in processes):
            return True
        await asyncio.sleep(0.02)
    return False


async def busy(remote: Remote, count: int) -> list[asyncio.Task[object]]:
    """So many programs that never end."""
    await remote.python("print(1)")
    tasks: list[asyncio.Task[object]] = [asyncio.ensure_future(remote.python(FOREVER)) for _ in range(count)]
    await asyncio.sleep(0.3)
    return tasks


def mounts() -> list[str]:
    return [
        line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "/work" in line.split()[4]
    ]


async def test_after_its_time_no_process_is_left(sandbox: Remote) -> None:
    before = {one.pid for one in sandbox.processes()}
    assert (await sandbox.run(Job("python", FOREVER, limits=Limits(wall_s=0.2)))).limit == "time"
    await asyncio.sleep(0.3)
    assert spinning([one for one in sandbox.processes() if one.pid not in before]) == []


async def test_cancelling_ends_the_program(sandbox: Remote) -> None:
    task = asyncio.ensure_future(sandbox.python(FOREVER))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while spinning(sandbox.processes()):
            await asyncio.sleep(0.05)
    assert (await sandbox.python("print(2)")).stdout == b"2\n"


async def test_children_that_left_their_parent_end_with_the_program(roomy: Remote) -> None:
    code = "for i in 1 2 3; do (setsid sleep 300 &) ; done; echo up"
    outcome = await roomy.run(Job("shell", code, limits=FORKS))
    assert outcome.stdout == b"up\n", outcome
    assert "sleep" not in [one.name() for one in roomy.processes()]


async def test_a_fork_bomb_is_contained(roomy: Remote) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    outcome = await roomy.run(Job("python", code, limits=Limits(processes=20, wall_s=1, cpu_s=5)))
    assert outcome.limit == "time"
    await asyncio.sleep(0.2)
    assert len(roomy.processes()) < 10
    assert (await roomy.python("print(3)")).stdout == b"3\n"


async def test_a_host_that_is_killed_takes_everything_with_it(own: Remote) -> None:
    before = mounts()
    tasks = await busy(own, 3)
    processes = own.processes()
    assert len(processes) >= 4
    own.process.kill()
    assert await gone(processes), [one for one in processes if one.is_running()]
    assert mounts() == before
    await asyncio.gather(*tasks, return_exceptions=True)
    if own.mode == "landlock":
        own.process.wait()
        assert list(own.tmp.iterdir()), "the next one removes it"  # type: ignore[attr-defined]
        with Remote("landlock", tmp=str(own.tmp)) as successor:  # type: ignore[attr-defined]
            assert (await successor.python("print(4)")).stdout == b"4\n"
        assert list(own.tmp.iterdir()) == []  # type: ignore[attr-defined]


async def test_a_zygote_that_is_killed_takes_its_programs_with_it_and_is_replaced(own: Remote) -> None:
    tasks = await busy(own, 3)
    processes = own.processes()
    zygote = next(one for one in processes if one.ppid() == own.process.pid)
    if own.mode != "landlock":
        zygote = next(one for one in processes if one.ppid() == zygote.pid)
    zygote.kill()
    for task in tasks:
        with pytest.raises(Unavailable, match="killed while the program ran"):
            await task
    assert await gone(processes)
    assert (await own.python("print(5)")).stdout == b"5\n"


async def test_whatever_is_killed_at_random_the_next_program_runs(own: Remote) -> None:
    choose = random.Random(7)
    for _ in range(4):
        with contextlib.suppress(
            Unavailable
        ):  # the one that was killed before it is told apart from the rest
            await own.python("print(0)")
        tasks = await busy(own, 2)
        choose.choice(own.processes()).kill()
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert (await own.python("print(6)")).stdout == b"6\n"
    processes = own.processes()
    own.close()
    assert await gone(processes)
    assert list(own.tmp.iterdir()) == []  # type: ignore[attr-defined]


async def test_a_cancellation_that_comes_with_the_word_that_the_walls_stand_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`asyncio.wait_for` of Python 3.11 loses it, and the program ran on until its time was up."""
    host = Host(warm=0)
    ready = Prepared._ready

    async def at_that_moment(prepared: Prepared) -> tuple[bytes, list[int]]:
        said = await ready(prepared)
        asyncio.get_running_loop().call_soon(running.cancel)
        return said

    monkeypatch.setattr(Prepared, "_ready", at_that_moment)
    try:
        running = asyncio.ensure_future(host.run(Job("python", FOREVER, limits=Limits(wall_s=2))))
        with pytest.raises(asyncio.CancelledError):
            await running
    finally:
        await host.close()
