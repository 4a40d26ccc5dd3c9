"""What every database does for the ledger: one suite, each of them."""

from __future__ import annotations

import asyncio
import json

import pytest

from gates import NOON, FixedClock
from toolgate.core.clock import SECOND
from toolgate.core.errors import LedgerBroken, Unavailable
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.ledger.verify import verify
from toolgate.storage.port import Filter
from toolgate.storage.schema import PROJECTIONS

from .databases import Database, SqlDatabase
from .ledgers import KEYS, TOLD, Opener, approved, asked, note, raising, soon, started, tell, write, writing

AWKWARD = {
    "unicode": "grüße 🌱 \u202e\u2028 e\u0301",
    "quotes": """it's "quoted" `\\` \\u0000 ; DROP TABLE journal; -- $1 ? :x %s""",
    "nul": "a\0b",
    "breaks": "one\ntwo\r\nthree\t",
    "large": "x" * 1_000_000,
    "empty": "",
}


async def test_opening_twice_migrates_once_and_keeps_everything(database: Database, opened: Opener) -> None:
    first = await opened(database)
    [row] = await write(first, note("kept"))
    await opened.close()
    second = await opened(database)
    assert await second.backend.rows(Filter()) == [row]
    assert (await second.backend.head())[:5][0] == 1


async def test_two_processes_may_open_a_new_database_at_once(
    sql_database: SqlDatabase, opened: Opener
) -> None:
    ledgers = await asyncio.gather(*(opened(sql_database) for _ in range(4)))
    await asyncio.gather(*(write(ledger, note(str(n))) for n, ledger in enumerate(ledgers)))
    assert (await verify(ledgers[0].backend, KEYS)).events == 4


@pytest.mark.parametrize("name", AWKWARD)
async def test_what_is_appended_is_read_back_exactly(name: str, database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    rows = await write(ledger, note(AWKWARD[name], persona="ada", tool="t.look"), note("after"))
    assert await ledger.backend.rows(Filter()) == rows
    assert (await whole_body(ledger.backend, rows[0])).get("rationale", "") == AWKWARD[name]
    assert (await verify(ledger.backend, KEYS)).ok


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(), [1, 2, 3, 4, 5, 6]),
        (Filter(after=2), [3, 4, 5, 6]),
        (Filter(before=3), [1, 2]),
        (Filter(after=1, before=4), [2, 3]),
        (Filter(call="c_1"), [4, 5]),
        (Filter(about="c_1"), [4, 5]),
        (Filter(about="_1", tool="t.look"), [4]),
        (Filter(about="c%1"), []),
        (Filter(about="1_"), []),
        (Filter(persona="bob"), [5]),
        (Filter(tool="t.look"), [1, 4]),
        (Filter(conversation="talk"), [1]),
        (Filter(ref="q_1"), [2, 3]),
        (Filter(kinds=("asked", "started")), [2, 4]),
        (Filter(body={"op": "move"}), [5]),
        (Filter(body={"op": "copy", "type": "observation"}), [6]),
        (Filter(body={"op": "nothing"}), []),
        (Filter(body={"rationale": "nul \0 \\u0000"}), [6]),
        (Filter(persona="\0"), []),
        (Filter(newest_first=True), [6, 5, 4, 3, 2, 1]),
        (Filter(limit=2), [1, 2]),
        (Filter(newest_first=True, limit=2), [6, 5]),
        (Filter(persona="ada", kinds=("noted",), after=0, limit=9), [1]),
        (Filter(call="' OR 1=1 --"), []),
    ],
)
async def test_a_filter_restricts_by_every_field(
    wanted: Filter, found: list[int], database: Database, opened: Opener
) -> None:
    ledger = await opened(database)
    await _write_various(ledger)
    assert [row.seq for row in await ledger.backend.rows(wanted)] == found


async def _write_various(ledger: Ledger) -> None:
    await write(ledger, note("a", persona="ada", tool="t.look", conversation="talk"))
    await write(ledger, asked())
    await write(ledger, approved())
    await write(ledger, started("c_1"), note("c", call="c_1", op="move", persona="bob"))
    await write(ledger, note("nul \0 \\u0000", op="copy"))


async def test_a_filter_restricts_by_time(database: Database, opened: Opener) -> None:
    clock = FixedClock()
    ledger = await opened(database, clock=clock)
    for _ in range(4):
        await write(ledger, note("tick"))
        clock.advance(1)

    async def seqs(**wanted: int) -> list[int]:
        return [row.seq for row in await ledger.backend.rows(Filter(**wanted))]  # type: ignore[arg-type]

    assert await seqs(since=NOON + SECOND) == [2, 3, 4]
    assert await seqs(until=NOON + SECOND) == [1]
    assert await seqs(since=NOON + SECOND, until=NOON + 3 * SECOND) == [2, 3]


async def test_a_snapshot_sees_one_moment_while_others_write(database: Database, opened: Opener) -> None:
    ledger, other = await opened(database), await opened(database)
    await tell(ledger)
    async with ledger.backend.snapshot() as snapshot:
        before = await snapshot.head()
        await write(other, started("c_new"))
        await write(ledger, note("later"))
        batches = [rows async for rows in snapshot.scan(batch=4)]
        tables = await snapshot.tables()
        assert (await snapshot.head())[:7] == before[:7]
    assert [row.seq for rows in batches for row in rows] == list(range(1, TOLD + 1))
    assert [len(rows) for rows in batches] == [4, 4, 3]
    assert tables.keys() == PROJECTIONS.keys()
    assert (await ledger.backend.head()).seq == TOLD + 2


async def test_many_at_once_are_all_decided_without_a_gap(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    works = [writing(note(str(n)), durable=bool(n % 2)) for n in range(300)]
    await soon(asyncio.gather(*(ledger.do(work) for work in works)))
    assert sorted(work.rows[0].seq for work in works) == list(range(1, 301))
    report = await verify(ledger.backend, KEYS)
    assert report.ok, report
    assert report.events == 300


async def test_a_work_that_raises_affects_only_itself(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    works = [writing(note(str(n))) for n in range(20)]
    works.insert(10, raising(ValueError("mine")))
    results = await soon(asyncio.gather(*(ledger.do(work) for work in works), return_exceptions=True))
    assert [str(result) for result in results if result is not None] == ["mine"]
    assert (await verify(ledger.backend, KEYS)).events == 20


async def test_a_write_that_fails_leaves_nothing_and_the_next_one_succeeds(
    sql_database: SqlDatabase, opened: Opener
) -> None:
    ledger = await opened(sql_database)
    for _ in range(2):
        await write(ledger, note("before"))
    before = await sql_database.dump()
    told: list[object] = []
    ledger.committed.append(told.append)
    await sql_database.refuse_writes()
    with pytest.raises(Unavailable, match="not today") as caught:
        await write(ledger, started("c_lost"))
    assert caught.value.fix
    await sql_database.accept_writes()
    assert not told, "nobody hears of rows that are not there"
    assert await sql_database.dump() == before
    [row] = await write(ledger, note("after"))
    assert row.seq == 3
    assert len(told) == 1
    assert (await verify(ledger.backend, KEYS)).ok


async def test_a_write_that_fails_while_alone_leaves_nothing_either(
    sql_database: SqlDatabase, opened: Opener
) -> None:
    ledger = await opened(sql_database)
    for _ in range(20):
        await write(ledger, note("alone"))
    await sql_database.refuse_writes()
    with pytest.raises(Unavailable, match="not today"):
        await write(ledger, started("c_lost"))
    await sql_database.accept_writes()
    [row] = await write(ledger, note("after"))
    assert row.seq == 21
    assert (await ledger.backend.head()).live == ""
    assert (await verify(ledger.backend, KEYS)).ok


async def test_two_processes_follow_each_other(database: Database, opened: Opener) -> None:
    one, two = await opened(database), await opened(database)
    for n in range(30):
        await write(one if n % 3 else two, started(f"c_{n}"))
        assert await soon(two.look(lambda state, now: len(state.live))) == n + 1
    await soon(asyncio.gather(*(write(ledger, note("both")) for ledger in (one, two) for _ in range(40))))
    report = await verify(one.backend, KEYS)
    assert report.ok, report
    assert report.events == 110


async def test_a_process_alone_for_long_still_notices_another(database: Database, opened: Opener) -> None:
    one, two = await opened(database), await opened(database)
    for round_ in range(3):
        for _ in range(20):
            await write(one, note("alone"))
        await write(two, started(f"c_{round_}"))
        assert await soon(one.look(lambda state, now: len(state.live))) == round_ + 1
    await write(two, note("between"))
    await write(one, note("on top"))
    assert (await verify(one.backend, KEYS)).events == 65


async def test_a_forged_row_is_refused_and_named(sql_database: SqlDatabase, opened: Opener) -> None:
    ledger = await opened(sql_database)
    await tell(ledger)
    last = (await sql_database.rows("journal"))[-1]
    head = (await sql_database.rows("head"))[0]
    forged = (last[0] + 1, *last[1:11], last[12], "f" * 64, last[13])
    await sql_database.replace("journal", None, forged)
    await sql_database.replace("head", head[0], (head[0] + 1, *head[1:3], "f" * 64, *head[4:]))
    with pytest.raises(LedgerBroken, match=f"event {TOLD + 1}"):
        await write(ledger, note("on sand"))
    report = await verify(ledger.backend, KEYS)
    assert report.bad_event == TOLD + 1


@pytest.mark.parametrize(
    "statement",
    ["UPDATE journal SET persona = 'eve'", "DELETE FROM journal", "UPDATE journal SET seq = seq + 100"],
)
async def test_rows_of_the_journal_cannot_be_changed_or_removed(
    statement: str, sql_database: SqlDatabase, opened: Opener
) -> None:
    ledger = await opened(sql_database)
    await tell(ledger)
    with pytest.raises(Exception, match="append-only"):
        await sql_database.run(statement)
    assert (await verify(ledger.backend, KEYS)).ok


async def test_a_ledger_of_a_newer_version_is_refused_untouched(
    sql_database: SqlDatabase, opened: Opener
) -> None:
    await write(await opened(sql_database), note("old"))
    await opened.close()
    await sql_database.set_newer_schema()
    before = await sql_database.dump()
    with pytest.raises(Unavailable, match="schema 99") as caught:
        await opened(sql_database)
    assert caught.value.fix == "upgrade toolgate"
    assert await sql_database.dump() == before


async def test_a_cancelled_caller_goes_only_when_it_is_decided(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    works = [writing(note(str(n))) for n in range(30)]
    tasks = [asyncio.create_task(ledger.do(work)) for work in works]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    _, waiting = await asyncio.wait(tasks, timeout=20)
    assert not waiting
    rows = {row.seq: row for row in await ledger.backend.rows(Filter())}
    for work in works:
        assert all(rows[row.seq] == row for row in work.rows), "what its caller was told is what is stored"
    assert len(rows) == sum(len(work.rows) for work in works)
    assert (await verify(ledger.backend, KEYS)).ok
    await write(ledger, note("still open"))


async def test_nothing_is_taken_once_closed(sql_database: SqlDatabase, opened: Opener) -> None:
    ledger = await opened(sql_database)
    await opened.close()
    with pytest.raises(Unavailable, match="closed"):
        await write(ledger, note("late"))
    with pytest.raises(Unavailable, match="closed"):
        await ledger.backend.rows(Filter())


async def test_everybody_who_waits_hears_of_an_answer_from_another_process(
    sql_database: SqlDatabase, opened: Opener
) -> None:
    here, there = await opened(sql_database), await opened(sql_database)
    await write(here, asked())

    async def until_approved() -> None:
        while await here.look(lambda state, now: state.questions["q_1"].state) != "approved":
            await here.backend.changed(30)

    waiting = [asyncio.create_task(until_approved()) for _ in range(3)]
    await asyncio.sleep(0.2)  # they wait by now; whether or not, they must hear of it
    assert not any(task.done() for task in waiting)
    await write(there, approved())
    await asyncio.wait_for(asyncio.gather(*waiting), 2)


async def test_waiting_for_news_ends_by_itself(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    for _ in range(3):
        await asyncio.wait_for(ledger.backend.changed(0.1), 5)


async def test_a_clock_far_behind_stops_everything(database: Database, opened: Opener) -> None:
    clock = FixedClock()
    ledger = await opened(database, clock=clock)
    await write(ledger, note("now"))
    clock.advance(-61)
    with pytest.raises(Unavailable, match="61 s behind") as caught:
        await write(ledger, note("then"))
    assert caught.value.fix
    assert (await ledger.backend.head()).seq == 1
    clock.advance(61)
    await write(ledger, note("again"))
    assert (await verify(ledger.backend, KEYS)).events == 2


async def test_a_clock_a_little_behind_stands_still(database: Database, opened: Opener) -> None:
    clock = FixedClock()
    ledger = await opened(database, clock=clock)
    await write(ledger, note("now"))
    clock.advance(-59)
    [row] = await write(ledger, note("then"))
    assert row.at == NOON
    assert (await verify(ledger.backend, KEYS)).ok


async def test_a_decision_sees_the_claims_it_asked_for(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    await tell(ledger)
    seen = []

    def decide(view: View) -> None:
        seen.append(dict(view.claims))

    for _ in range(12):  # long enough to be alone with the head
        work = Work(decide)
        work.scopes = ("ada/key", "ada/other")
        await soon(ledger.do(work))
    assert all(set(claims) == {"ada/key"} for claims in seen)
    assert seen[0]["ada/key"][3] == "committed"


async def test_its_size_grows_with_what_it_holds(database: Database, opened: Opener) -> None:
    ledger = await opened(database)
    await write(ledger, note("x"))
    before = await ledger.backend.size()
    for _ in range(3):
        await write(ledger, note(json.dumps([str(n) for n in range(30_000)])))
    assert await ledger.backend.size() > before


async def test_the_whole_of_a_long_event_is_kept_beside_the_journal_within_a_budget(
    sql_database: SqlDatabase, opened: Opener
) -> None:
    ours, theirs = await opened(sql_database), await opened(sql_database)
    ours.allowance = ours.allowance._replace(kept=250_000)
    rows = [(await write(ours, note(f"{n}" + "x" * 100_000, persona="ada")))[0] for n in range(12)]
    await write(ours, note("y" * 100_000, persona="bob"))
    kept = [row.seq for row in rows if await theirs.backend.attachment(row.seq) is not None]
    assert kept == [11, 12]
    assert [(one.persona, one.events) for one in await theirs.backend.attachments()] == [
        ("ada", 2),
        ("bob", 1),
    ]
    assert (await whole_body(theirs.backend, rows[-1]))["rationale"].startswith("11x")
    assert (await verify(theirs.backend, KEYS)).ok
