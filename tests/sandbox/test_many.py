"""Many programs, at once and one after the other."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import psutil
import pytest

from sandbox.remote import Remote, modes
from toolgate.sandbox.job import Job

RUNS = 1000


async def test_twenty_at_once_do_not_meet(sandbox: Remote) -> None:
    async def one(number: int) -> None:
        code = f"import time, os\nopen('mine', 'w').write('{number}')\ntime.sleep(0.05)\nprint(os.listdir(), open('mine').read())"
        outcome = await sandbox.run(Job("python", code))
        assert sorted(outcome.left[0].content.decode()) == sorted(str(number))
        assert outcome.stdout.decode().endswith(f" {number}\n"), outcome

    await asyncio.gather(*(one(number) for number in range(20)))


def footprint(process: psutil.Process) -> tuple[int, int, int]:
    everyone = [process, *process.children(recursive=True)]
    return process.num_fds(), len(everyone), process.memory_info().rss


@pytest.mark.parametrize("mode", modes())
async def test_hundreds_in_a_row_leave_nothing(mode: str) -> None:
    share = RUNS // len(modes()) + 1
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o777)
        with Remote(mode, tmp=directory) as sandbox:
            process = psutil.Process(sandbox.process.pid)
            await asyncio.gather(*(sandbox.python("print(1)") for _ in range(20)))
            await asyncio.sleep(0.3)
            before = footprint(process)
            for _ in range(share // 4):
                outcomes = await asyncio.gather(
                    *(sandbox.python("open('f', 'wb').write(bytes(100_000)); print(1)") for _ in range(4))
                )
                assert all(outcome.stdout == b"1\n" and len(outcome.left) == 1 for outcome in outcomes)
            await asyncio.sleep(0.5)
            after = footprint(process)
            assert after[0] <= before[0] + 2, "descriptors"
            assert after[1] <= before[1] + 1, "processes"
            assert after[2] <= before[2] + (20 << 20), "memory"
            scratch = [path for path in Path(directory).glob("*/*") if not path.name.endswith(".packages")]
            assert len(scratch) <= 2, "work directories, other than those of programs to come"
        assert list(Path(directory).iterdir()) == []
