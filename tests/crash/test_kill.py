"""Kill -9 again and again in a stream of effectful calls of two processes: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import toolgate
from sampling import fewer
from servers.postgres import Server
from toolgate.ledger.verify import verify
from toolgate.storage.sqlite import SqliteBackend

from . import worker

PATIENCE = 30.0
SETTLED = ("committed", "failed", "unknown")


class Journal:
    """The database as somebody else reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = sqlite3.connect(path, timeout=10)

    def rows(self, after: int = 0) -> list[dict[str, Any]]:
        names = ("seq", "kind", "call", "claim", "ref", "tool", "hash", "body")
        found = self.db.execute(
            f"SELECT {', '.join(names)} FROM journal WHERE seq > ? ORDER BY seq", (after,)
        )
        return [dict(zip(names, row, strict=True)) for row in found]

    def live(self) -> dict[str, str]:
        (text,) = self.db.execute("SELECT live FROM head").fetchone()
        found = self.db.execute(f"SELECT call, body FROM journal WHERE seq IN ({text})")
        return {call: json.loads(body)["owner"] for call, body in found}

    def questions(self) -> set[str]:
        return {row[0] for row in self.db.execute("SELECT id FROM questions WHERE state = 'open'")}

    def verify(self) -> None:
        report = asyncio.run(verify(SqliteBackend(self.path), worker.KEYS, now=time.time_ns() // 1000))
        assert report.ok, report

    def close(self) -> None:
        self.db.close()


class PostgresJournal:
    """The same through psql."""

    def __init__(self, server: Server, dsn: str) -> None:
        self.server, self.dsn = server, dsn

    def _all(self, sql: str) -> list[dict[str, Any]]:
        answer = self.server.sql(f"SELECT coalesce(json_agg(found), '[]') FROM ({sql}) AS found", self.dsn)
        found: list[dict[str, Any]] = json.loads(answer)
        return found

    def rows(self, after: int = 0) -> list[dict[str, Any]]:
        columns = "seq, kind, call, claim, ref, tool, hash, body"
        return self._all(f"SELECT {columns} FROM journal WHERE seq > {after} ORDER BY seq")

    def live(self) -> dict[str, str]:
        text = self._all("SELECT live FROM head")[0]["live"] or "0"
        found = self._all(f"SELECT call, body FROM journal WHERE seq IN ({text})")
        return {row["call"]: json.loads(row["body"])["owner"] for row in found}

    def questions(self) -> set[str]:
        return {row["id"] for row in self._all("SELECT id FROM questions WHERE state = 'open'")}

    def verify(self) -> None:
        asyncio.run(self._verify())

    async def _verify(self) -> None:
        async with toolgate.open(Path(), config=worker.CONFIG, database=self.dsn, keys=worker.KEYS) as gate:
            report = await gate.verify()
        assert report.ok, report


class Stage:
    """Two workers, whoever kills them, and what must hold after each kill."""

    def __init__(self, root: Path, database: str, journal: Any) -> None:
        self.root, self.journal = root, journal
        self.forker = subprocess.Popen(
            [sys.executable, "-m", "crash.worker", str(root), database], cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=os.environ | {"PYTHONPATH": str(Path(toolgate.__file__).parent.parent)},
        )  # fmt: skip
        self.said: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.pids: dict[str, int] = {}
        self.owners: dict[str, str] = {}
        self.read: list[dict[str, Any]] = []
        self.asked: set[str] = set()

    def _listen(self) -> None:
        assert self.forker.stdout is not None
        for line in self.forker.stdout:
            self.said.put(line.strip())

    def tell(self, line: str) -> None:
        assert self.forker.stdin is not None
        self.forker.stdin.write(line + "\n")
        self.forker.stdin.flush()

    def hear(self, start: str) -> str:
        """The next line that begins so; what workers say in between is remembered."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                line = self.said.get(timeout=max(deadline - time.monotonic(), 0.01))
            except Empty:
                raise AssertionError(f"nobody said {start!r}; errors: {self.errors()}") from None
            word, *rest = line.split()
            if word == "ready":
                self.owners[rest[0]] = rest[1]
            if line.startswith(start):
                return line

    def start(self, name: str, point: str = "-") -> None:
        self.owners.pop(name, None)
        self.tell(f"start {name} {point}")
        self.pids[name] = int(self.hear(f"forked {name} ").split()[2])

    def ready(self, name: str) -> None:
        while name not in self.owners:
            self.hear("ready")

    def kill(self, name: str) -> None:
        os.kill(self.pids[name], signal.SIGKILL)
        self.buried(name)

    def buried(self, name: str) -> None:
        self.tell(f"reap {self.pids[name]}")
        self.hear(f"dead {self.pids[name]}")

    def errors(self) -> str:
        file = self.root / "errors.txt"
        return file.read_text() if file.exists() else ""

    # --- what must hold -----------------------------------------------------------------------------------

    def nothing_is_lost(self) -> None:
        """What was read before is still there, unchanged, and newer rows follow it."""
        last = self.read[-1] if self.read else None
        new = self.journal.rows(last["seq"] - 1 if last else 0)
        if last is not None:
            assert new, "the journal is shorter than it was"
            assert new[0]["hash"] == last["hash"], "a row that was on disk has changed"
            new = new[1:]
        self.read += new
        asked = {row["ref"] for row in new if row["kind"] == "asked"}
        self.asked |= asked
        assert self.asked <= self.journal.questions(), "an open question is gone"

    def the_dead_are_settled(self) -> None:
        """After a start, whatever still runs belongs to somebody alive, and the living were left alone."""
        strangers = set(self.journal.live().values()) - set(self.owners.values())
        assert not strangers, f"calls of {strangers} are still running"
        assert self.errors() == ""

    def nothing_ran_twice(self) -> None:
        lines = [line.split() for line in (self.root / "witness.txt").read_text().splitlines()]
        calls = Counter(call for _, call, _ in lines)
        assert max(calls.values()) == 1, [call for call, times in calls.items() if times > 1]
        keys = Counter(x for name, _, x in lines if name == "w.keyed")
        assert max(keys.values()) == 1, [x for x, times in keys.items() if times > 1]
        assert not [line for line in lines if line[0] == "w.ask"]
        self._the_journal_agrees({call for _, call, _ in lines})

    def _the_journal_agrees(self, witnessed: set[str]) -> None:
        ends = {row["call"]: row["kind"] for row in self.read if row["kind"] in SETTLED}
        started = {row["call"]: row for row in self.read if row["kind"] == "started"}
        assert witnessed <= set(started), "something ran that never started"
        for call, row in started.items():
            if ends.get(call) == "committed" and row["tool"] != "w.files":
                assert call in witnessed, f"{call} is committed and did not run"
            if ends.get(call) == "failed":
                assert row["tool"] != "w.append", "an append cannot be proven not to have happened"
                assert row["tool"] != "w.keyed" or call not in witnessed, f"{call} failed and ran"

    def files_are_whole(self) -> None:
        for name in self.pids:
            contents = {(self.root / f"{name}-{number}.txt").read_bytes() for number in range(worker.FILES)}
            assert len(contents) == 1, f"the files of {name} are from different changes"

    def end(self) -> None:
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        assert self.forker.stdin is not None
        self.forker.stdin.close()
        self.forker.wait(PATIENCE)
        assert self.forker.stdout is not None
        self.forker.stdout.close()


def kill_again_and_again(stage: Stage, kills: int, dice: random.Random) -> Counter[str]:
    """One of the two dies at a random moment, or by its own hand before or after its effect, and starts again."""
    how: Counter[str] = Counter()
    for name in ("a", "b"):
        stage.start(name)
    for name in ("a", "b"):
        stage.ready(name)
    for count in range(1, kills + 1):
        victim = dice.choice("ab")
        if dice.random() < 0.3:  # it was started to die by its own hand
            stage.kill(victim)
            point = dice.choice(["before", "after"])
            stage.start(victim, f"{point}:{dice.randrange(8)}")
            stage.buried(victim)
            how[point] += 1
        else:
            time.sleep(dice.random() * 0.04)  # the random moment itself: there is no event to wait for
            stage.kill(victim)
            how["anywhere"] += 1
        stage.nothing_is_lost()
        stage.start(victim)
        if dice.random() < 0.8:  # the others may die while they start
            stage.ready(victim)
            stage.the_dead_are_settled()
            how["started again"] += 1
        if count % 20 == 0:
            stage.journal.verify()
    for name in ("a", "b"):
        stage.ready(name)
    return how


def finish(stage: Stage) -> None:
    """Both die once more; a last start settles what they left."""
    for name in ("a", "b"):
        stage.kill(name)
    for name in ("a", "b"):
        stage.start(name, "rest")
        stage.ready(name)
    assert stage.journal.live() == {}
    stage.the_dead_are_settled()
    stage.files_are_whole()
    stage.nothing_is_lost()
    stage.nothing_ran_twice()
    stage.journal.verify()


def test_kills_lose_nothing_and_run_nothing_twice_on_sqlite(tmp_path: Path) -> None:
    database = tmp_path / "ledger.db"
    asyncio.run(_made_at(tmp_path, str(database)))
    stage = Stage(tmp_path, str(database), journal := Journal(database))
    try:
        how = kill_again_and_again(stage, fewer(200, 40), random.Random(20_260_101))
        finish(stage)
    finally:
        stage.end()
        journal.close()
    ends = Counter(row["kind"] for row in stage.read)
    crashed = sum("reconciled" in json.loads(row["body"]) for row in stage.read if row["kind"] in SETTLED)
    assert how["before"] > fewer(10, 2)
    assert how["after"] > fewer(10, 2)
    assert ends["unknown"] > fewer(10, 2), "the kills must really have fallen into calls"
    assert crashed > fewer(50, 8)
    assert len(stage.asked) > 0


async def _made_at(root: Path, database: str) -> None:
    """The empty ledger, so that a reader finds its tables."""
    async with toolgate.open(root, config=worker.CONFIG, database=database, keys=worker.KEYS):
        return


def test_kills_lose_nothing_and_run_nothing_twice_on_postgres(
    tmp_path: Path, postgres_server: Server
) -> None:
    dsn = postgres_server.fresh_dsn()
    asyncio.run(_made_at(tmp_path, dsn))
    stage = Stage(tmp_path, dsn, PostgresJournal(postgres_server, dsn))
    try:
        how = kill_again_and_again(stage, fewer(30, 12), random.Random(20_260_102))
        finish(stage)
    finally:
        stage.end()
    assert how["anywhere"] > fewer(10, 4)
    assert sum(row["kind"] == "unknown" for row in stage.read) > fewer(3, 0)
