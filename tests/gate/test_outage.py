"""The ledger cannot be written for a while: whatever was under way is settled by its own process once it can."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolgate
from contracts.databases import Postgres, SqlDatabase, Sqlite
from gates import KEYS, Witness, policy, toolset
from servers.postgres import Server, restartable_postgres
from storage.cutting import wire_to
from toolgate import Context, Tool, tool
from toolgate.core.errors import Conflict
from toolgate.core.event import Started
from toolgate.gate import reconcile, unrecorded
from toolgate.ledger.ledger import Work
from toolgate.storage.port import Filter

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrecorded, "LONGEST", 0.2)


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlDatabase]:
    found: SqlDatabase = (
        Sqlite(tmp_path / "ledger.db")
        if request.param == "sqlite"
        else Postgres(request.getfixturevalue("postgres_server"))
    )
    yield found
    await found.close()


class Held:
    """Tools that wait until they are let go on."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.inside = 0
        self.witness = Witness()

    def tools(self, root: Path) -> list[Tool]:
        @tool("t.wait", writes=["outside"])
        async def wait(context: Context, x: str = "") -> str:
            """Do something outside, when told to."""
            self.inside += 1
            await self.go.wait()
            self.witness.saw(context, x)
            return x

        @tool("t.vain", writes=["outside"])
        async def vain(x: str = "") -> str:
            """Try something outside, in vain."""
            self.inside += 1
            await self.go.wait()
            raise RuntimeError("in vain")

        @tool("t.read", reads=["system"])
        async def read(x: str = "") -> str:
            """Read, when told to."""
            self.inside += 1
            await self.go.wait()
            return x

        return [wait, vain, read, *toolset(self.witness, root)]


def open_on(root: Path, database: Any, held: Held) -> Any:
    return toolgate.open(root, policy(), database, tools=held.tools(root), keys=KEYS)


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async def wait() -> None:
        while not await true():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(wait(), PATIENCE)


async def running(gate: toolgate.Gate) -> list[str]:
    return await gate.services.ledger.look(lambda state, now: list(state.live))


async def ends(gate: toolgate.Gate, call: str) -> list[str]:
    return [row.kind for row in await gate.events(Filter(call=call))]


@asynccontextmanager
async def calls_while_refused(
    gate: toolgate.Gate, database: SqlDatabase, held: Held, *names: str, **more: Any
) -> AsyncIterator[list[toolgate.Result]]:
    """The results of calls that began before and ended while nothing could be written."""
    tasks = [asyncio.create_task(gate.call(name, {"x": name}, **more)) for name in names]

    async def all_inside() -> bool:
        return held.inside == len(names)

    await until(all_inside)
    await database.refuse_writes()
    held.go.set()
    results = await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    yield results
    await database.accept_writes()


async def test_the_living_process_settles_what_it_knows_once_the_ledger_is_back(
    database: SqlDatabase, tmp_path: Path
) -> None:
    held = Held()
    async with open_on(tmp_path, database.make(), held) as gate:
        async with calls_while_refused(gate, database, held, "t.wait", "t.vain", "t.read") as results:
            codes = [result.error.code.value for result in results]
            assert codes == ["unknown_outcome", "failed", "failed"]
            assert "in vain" in results[1].error.message, "what is known is said"
            assert "recorded as soon as" in results[0].error.fix

        async def none_runs() -> bool:
            return not await running(gate)

        await until(none_runs)
        kinds = [await ends(gate, result.meta.call_id) for result in results]
        assert [each[-1] for each in kinds] == ["committed", "failed", "committed"]
        assert (await gate.verify()).ok


async def test_it_is_settled_before_the_next_call_begins(database: SqlDatabase, tmp_path: Path) -> None:
    held = Held()
    async with open_on(tmp_path, database.make(), held) as gate:
        async with calls_while_refused(gate, database, held, "t.wait", key="k") as [first]:
            pass
        again = await gate.call("t.wait", {"x": "t.wait"}, key="k")
        assert again.ok, again.error
        assert again.meta.cached, "the outcome is known, so nothing runs again"
        assert held.witness.arguments == ["t.wait"]
        assert await ends(gate, first.meta.call_id) == ["started", "committed"]


async def test_it_is_settled_when_the_gate_closes(
    database: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unrecorded, "FIRST", 600)
    held = Held()
    async with (
        open_on(tmp_path, database.make(), held) as gate,
        calls_while_refused(gate, database, held, "t.wait") as [first],
    ):
        pass
    async with open_on(tmp_path, database.make(), Held()) as gate:
        assert await ends(gate, first.meta.call_id) == ["started", "committed"]
        (settled,) = [
            row for row in await gate.events(Filter(call=first.meta.call_id)) if row.kind == "committed"
        ]
        assert "reconciled" not in settled.body, "its own process said so"


async def test_more_than_can_be_kept_becomes_unknown_and_not_running(
    database: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unrecorded, "MOST_CALLS", 1)
    held = Held()
    async with open_on(tmp_path, database.make(), held) as gate:
        async with calls_while_refused(gate, database, held, "t.wait", "t.wait", "t.read") as results:
            pass

        async def none_runs() -> bool:
            return not await running(gate)

        await until(none_runs)
        last = sorted([(await ends(gate, result.meta.call_id))[-1] for result in results])
        assert last in (["committed", "failed", "unknown"], ["committed", "unknown", "unknown"])
        assert (await gate.verify()).ok


@pytest.mark.parametrize("deliver", [True, False], ids=["answer-lost", "request-lost"])
async def test_a_call_whose_beginning_nobody_can_confirm_is_not_run_and_not_left_running(
    postgres_server: Server, tmp_path: Path, deliver: bool
) -> None:
    database, held = Postgres(postgres_server), Held()
    with tempfile.TemporaryDirectory(prefix="w") as here:
        async with (
            wire_to(postgres_server.sockets, Path(here)) as wire,
            open_on(tmp_path, f"{database.dsn.partition('?')[0]}?host={here}", held) as gate,
        ):
            for _ in range(20):
                assert (await gate.call("t.act", {"x": "before"})).ok
            wire.arm(b"cut-here", deliver=deliver, tear=True)
            result = await gate.call("t.act", {"x": "cut-here"}, key="k")
            assert result.error.code.value == "unavailable"
            assert "nothing ran" in result.error.message
            assert wire.cuts == 1
            wire.torn = False

            async def none_runs() -> bool:
                return not gate.services.unrecorded.pending and not await running(gate)

            await until(none_runs)
            kinds = await ends(gate, result.meta.call_id)
            assert kinds[:2] == (["started", "failed"] if deliver else [])
            assert "cut-here" not in held.witness.arguments
            assert (await gate.call("t.act", {"x": "cut-here"}, key="k")).ok, "the key is free"
            assert (await gate.verify()).ok
    await database.close()


@pytest.mark.postgres
async def test_a_restarted_postgres_leaves_no_call_running(tmp_path: Path) -> None:
    """Four gates, as four servers would be; calls end before, during and after the restart."""
    with restartable_postgres() as server:
        dsn = server.fresh_dsn()
        helds = [Held() for _ in range(4)]
        async with AsyncExitStack() as stack:
            gates = []
            for index, held in enumerate(helds):
                root = tmp_path / str(index)
                root.mkdir()
                gates.append(await stack.enter_async_context(open_on(root, dsn, held)))
            tasks = [
                asyncio.create_task(gate.call("t.wait", {"x": str(n)})) for gate in gates for n in range(8)
            ]

            async def all_inside() -> bool:
                return all(held.inside == 8 for held in helds)

            await until(all_inside)
            busy = [asyncio.create_task(_keep_calling(gate)) for gate in gates]
            await asyncio.sleep(0.2)
            for held in helds[:2]:
                held.go.set()
            await asyncio.to_thread(server.restart, signal.SIGQUIT, lambda: [h.go.set() for h in helds[2:]])
            results = await asyncio.wait_for(asyncio.gather(*tasks, *busy), PATIENCE)

            async def none_runs() -> bool:
                return not await running(gates[0])

            await until(none_runs)
            assert (await gates[0].verify()).ok
            for held, gate, mine in zip(helds, gates, range(0, 32, 8), strict=True):
                did = [argument for argument in held.witness.arguments if argument != "busy"]
                assert sorted(did) == [str(n) for n in range(8)], "each once"
                for result in results[mine : mine + 8]:
                    assert (await ends(gate, result.meta.call_id))[-1] in ("committed", "resolved")


async def _keep_calling(gate: toolgate.Gate) -> None:
    """Until some have failed and one has come through again."""
    failed = False
    while True:
        result = await gate.call("t.act", {"x": "busy"})
        failed = failed or not result.ok
        if failed and result.ok:
            return


async def test_a_call_that_its_living_owner_does_not_know_can_be_resolved(
    database: SqlDatabase, tmp_path: Path
) -> None:
    held = Held()
    async with open_on(tmp_path, database.make(), held) as gate:
        await _foreign_start(gate, "c_stray")
        waiting = asyncio.create_task(gate.call("t.wait"))

        async def inside() -> bool:
            return held.inside == 1

        await until(inside)
        (mine,) = [call for call in await running(gate) if call != "c_stray"]
        with pytest.raises(Conflict, match="is still running"):
            await gate.resolve(mine, "not")
        await gate.resolve("c_stray", "not", reason="looked")
        assert await ends(gate, "c_stray") == ["started", "unknown", "resolved"]
        held.go.set()
        assert (await waiting).ok
        assert (await gate.verify()).ok


async def test_another_process_can_resolve_it_once_its_time_is_over(
    database: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_on(tmp_path, database.make(), Held()) as owner:
        await _foreign_start(owner, "c_stray")
        async with open_on(tmp_path, database.make(), Held()) as other:
            with pytest.raises(Conflict, match="is still running") as caught:
                await other.resolve("c_stray", "happened")
            assert "at the latest" in caught.value.fix
            monkeypatch.setattr(reconcile, "SLACK", -61.0)
            await other.resolve("c_stray", "happened")
            assert await ends(other, "c_stray") == ["started", "unknown", "resolved"]


async def _foreign_start(gate: toolgate.Gate, call: str) -> None:
    started = Started(
        call=call, persona="ada", tool="t.act", digest="sha256:d", definition="sha256:f",
        owner=gate.services.owners.me, args={}, rule="r", decision="allow", effectful=True,
    )  # fmt: skip
    await gate.services.ledger.do(Work(lambda view: view.emit(started)))
