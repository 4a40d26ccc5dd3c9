"""Old events go into a signed file; the ledger that is left proves that it follows them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgate
from gates import KEYS, FixedClock, Witness, policy, toolset
from toolgate.core.errors import NotFound
from toolgate.ledger.archive import sha256_of
from toolgate.ledger.checkpoint import read
from toolgate.ledger.verify import rows_in, verify_export
from toolgate.storage.memory import MemoryBackend
from toolgate.storage.port import Filter
from toolgate.storage.sqlite import SqliteBackend

DAY = 86400


def _open(
    tmp_path: Path, backend: Any, clock: FixedClock, decision: str = "allow", witness: Witness | None = None
) -> Any:
    tools = toolset(witness or Witness(), tmp_path)
    return toolgate.open(tmp_path, policy(decision), database=backend, tools=tools, keys=KEYS, clock=clock)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Makes it again for each opening."""
    if request.param == "memory":
        memory = MemoryBackend()
        return lambda: memory
    if request.param == "sqlite":
        return lambda: SqliteBackend(tmp_path / "l.db")
    from toolgate.storage.postgres import PostgresBackend

    dsn = request.getfixturevalue("postgres_server").fresh_dsn()
    return lambda: PostgresBackend(dsn, use_server_clock=False)


async def test_the_ledger_goes_on_after_an_archive_and_both_together_are_the_whole(
    tmp_path: Path, backend: Any
) -> None:
    clock, out = FixedClock(), tmp_path / "out"
    async with _open(tmp_path, backend(), clock) as gate:
        for n in range(5):
            assert (await gate.call("t.act", {"x": str(n)}, key=f"k{n}")).ok
        early = await gate.checkpoint()
        clock.advance(40 * DAY)
        young = await gate.call("t.act", {"x": "young"}, key="young")
        made = await gate.archive(out, 30)
        assert (made.first, made.last) == (1, 11)
        rows = await gate.events(Filter(limit=100))
        assert [row.seq for row in rows] == [12, 13, 14]
        assert rows[-1].kind == "archived"
        alone = await gate.verify([early])
        assert alone.ok, alone.fault
        assert (alone.first, alone.archived_to, alone.in_archive) == (12, 11, 1)
        with made.file.open(encoding="utf-8") as lines:
            whole = await gate.verify([early], archives=[rows_in(lines, "archive")])
        assert whole.ok, whole.fault
        assert (whole.first, whole.events, whole.checkpoints) == (1, 14, 1)
        assert (await gate.call("t.act", {"x": "young"}, key="young")).data == young.data
        clock.advance(40 * DAY)
        again = await gate.archive(out, 30)
        assert again.first == 12
        assert (await gate.verify()).ok
        with made.file.open() as one, again.file.open() as two:
            assert (await gate.verify(archives=[rows_in(one, "1"), rows_in(two, "2")])).ok
    signed = read(made.checkpoint.read_text())
    with made.file.open(encoding="utf-8") as lines:
        assert verify_export(lines, [signed]).ok
    assert made.sha256 == "sha256:" + sha256_of(made.file)
    async with _open(tmp_path, backend(), clock) as gate:
        assert (await gate.call("t.act", {"x": "after"})).ok
        assert (await gate.verify()).ok


async def test_what_still_stands_is_not_archived(tmp_path: Path) -> None:
    clock, backend = FixedClock(), MemoryBackend()
    async with _open(tmp_path, backend, clock, "ask") as gate:
        await gate.call("t.act", {"x": "1"}, wait=False)
        (question,) = await gate.approvals()
        await gate.answer(question.id, "approve", scope={"seconds": 300 * DAY})
        assert (await gate.call("t.act", {"x": "1"})).ok
        clock.advance(60 * DAY)
        assert (await gate.archive(tmp_path / "out", 30)).last == 1  # the question is over
        with pytest.raises(NotFound, match="grant g_"):
            await gate.archive(tmp_path / "out", 30)
        assert (await gate.call("t.act", {"x": "2"})).ok
        (grant,) = await gate.grants()
        await gate.revoke(grant.id)
        assert (await gate.archive(tmp_path / "out", 30)).last > 0
        await gate.pause("bob")
        clock.advance(60 * DAY)
        paused = (await gate.events(Filter(kinds=("paused",))))[0].seq
        assert (await gate.archive(tmp_path / "out", 30)).last == paused - 1
        with pytest.raises(NotFound, match="pause of bob"):
            await gate.archive(tmp_path / "out", 30)
        assert (await gate.verify()).ok


@pytest.mark.parametrize("cut", [1, 2])
async def test_a_beginning_that_was_cut_off_is_no_archive(tmp_path: Path, cut: int) -> None:
    clock, backend = FixedClock(), MemoryBackend()
    async with _open(tmp_path, backend, clock) as gate:
        for n in range(5):
            await gate.call("t.act", {"x": str(n)})
        clock.advance(40 * DAY)
        await gate.call("t.act")
        if cut == 2:
            await gate.archive(tmp_path / "out", 30)
        del backend.journal[:1]
        report = await gate.verify()
        assert not report.ok
        assert report.bad_event == 1
        assert "event 1 is missing" in report.fault


async def test_an_archive_that_was_changed_or_left_out_is_found(tmp_path: Path) -> None:
    clock, backend = FixedClock(), MemoryBackend()
    async with _open(tmp_path, backend, clock) as gate:
        for n in range(5):
            await gate.call("t.act", {"x": str(n)})
        clock.advance(40 * DAY)
        await gate.call("t.act")
        made = await gate.archive(tmp_path / "out", 30)
        lines = made.file.read_text().splitlines()
        for bad in (lines[:-1], lines[1:], [lines[0], lines[1].replace('"ada"', '"bob"'), *lines[2:]]):
            assert not (await gate.verify(archives=[rows_in(bad, "archive")])).ok


_KILLED = """
import asyncio, os, sys
sys.path[:0] = {path!r}
from pathlib import Path
from gates import KEYS, FixedClock, policy
import toolgate
from toolgate.storage import durable
from toolgate.ledger import archive as archiving
at, root = sys.argv[1], Path(sys.argv[2])
count = 0
def die(name):
    def wrap(function):
        def inner(*args, **more):
            if name == at:
                os.kill(os.getpid(), 9)
            result = function(*args, **more)
            if name + " done" == at:
                os.kill(os.getpid(), 9)
            return result
        return inner
    return wrap
async def main():
    clock = FixedClock()
    async with toolgate.open(root, policy(), database=str(root / "l.db"), keys=KEYS, clock=clock) as gate:
        for n in range(4):
            await gate.call("system.ping")
        clock.advance(40 * 86400)
        await gate.call("system.ping")
        durable.rename = die("rename")(durable.rename)
        durable.replace = die("replace")(durable.replace)
        archiving._check = die("check")(archiving._check)
        from toolgate.storage import sqlite_sql
        sqlite_sql._take_out = die("take out")(sqlite_sql._take_out)
        await gate.archive(root / "out", 30)
        os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "at", ["rename", "rename done", "replace", "check", "check done", "take out", "take out done", "the end"]
)
async def test_whoever_is_killed_while_archiving_leaves_the_old_state_or_the_new(
    tmp_path: Path, at: str
) -> None:
    program = _KILLED.format(path=[str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", program, at, str(tmp_path)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    clock = FixedClock()
    clock.advance(40 * DAY)
    async with toolgate.open(
        tmp_path, policy(), database=str(tmp_path / "l.db"), keys=KEYS, clock=clock
    ) as gate:
        report = await gate.verify()
        assert report.ok, report.fault
        taken = report.first > 1
        assert taken is (at == "the end")
        files = list((tmp_path / "out").glob("*.jsonl")) if (tmp_path / "out").exists() else []
        if taken:
            with files[0].open() as lines:
                assert (await gate.verify(archives=[rows_in(lines, "archive")])).ok
        else:
            assert (await gate.archive(tmp_path / "out", 30)).first == 1
            assert (await gate.verify()).ok


async def test_questions_of_an_earlier_opening_do_not_stop_an_archive(tmp_path: Path) -> None:
    clock, file = FixedClock(), tmp_path / "l.db"
    async with _open(tmp_path, SqliteBackend(file), clock, "ask") as gate:
        await gate.call("t.act", {"x": "1"}, wait=False)
    async with _open(tmp_path, SqliteBackend(file), clock, "ask") as gate:
        with pytest.raises(NotFound, match="nothing to archive"):
            await gate.archive(tmp_path / "out", 30)
        clock.advance(60 * DAY)
        await gate.call("t.act", {"x": "2"}, wait=False)
        assert (await gate.archive(tmp_path / "out", 30)).last >= 1
        assert (await gate.verify()).ok
