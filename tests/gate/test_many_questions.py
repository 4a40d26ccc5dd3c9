"""Thousands of open questions cost a call nothing, and an opening neither."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import toolgate
from contracts.databases import Database, Memory, Postgres, Sqlite
from contracts.ledgers import LATER
from gates import KEYS, policy
from toolgate.consent.works import AnswerWork
from toolgate.core.errors import LedgerBroken
from toolgate.core.event import Asked, Granted, Paused, Resumed
from toolgate.ledger import ledger as ledgers
from toolgate.ledger.chain import make_head
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import Ledger, Work, no_question
from toolgate.ledger.verify import verify
from toolgate.storage.port import Head, Row

FEW, MANY = 20, 2000
PERSONAS = 40


def question(number: int, expires: int = LATER) -> Asked:
    return Asked(
        call=f"c_{number}", persona=f"p{number % PERSONAS}", tool="t.act", ref=f"q_{number:06}",
        digest=f"sha256:{number}", definition="sha256:f", args={"x": str(number)},
        effects={"reads": [], "writes": ["outside"]}, rule="rule:r", rights="sha256:r", reason="because", expires=expires,
    )  # fmt: skip


def asking(*numbers: int, expires: int = LATER) -> Work[None]:
    return Work(
        lambda view: view.events.extend(question(number, expires) for number in numbers), refs=no_question
    )


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """How many functions are called: what the work is, on however busy a machine."""
    seen: Counter[str] = Counter()

    def note(frame: Any, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            seen["all"] += 1

    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


async def test_a_call_does_not_cost_more_with_many_open_questions(tmp_path: Path) -> None:
    cost = {}
    for count in (FEW, MANY):
        config = policy("allow")
        async with toolgate.open(_new(tmp_path / str(count)), config, keys=KEYS) as gate:
            await gate.services.ledger.do(asking(*range(count)))
            for _ in range(3):
                assert (await gate.call("system.ping")).ok
            costs = []
            for _ in range(5):  # a callback of the loop's own may come between: the least is the call's
                with counting() as seen:
                    assert (await gate.call("system.ping")).ok
                costs.append(seen["all"])
            cost[count] = min(costs)
    assert cost[MANY] <= 1.1 * cost[FEW], cost


async def test_a_new_question_does_not_cost_more_with_many_of_others(tmp_path: Path) -> None:
    cost = {}
    for count in (FEW, MANY):
        async with toolgate.open(_new(tmp_path / str(count)), _asks(), tools=[_act()], keys=KEYS) as gate:
            await gate.services.ledger.do(asking(*range(count)))
            with counting() as seen:
                result = await gate.call("t.act", {"x": "new"}, wait=False)
            assert result.error is not None
            assert result.error.code.value == "pending"
            cost[count] = seen["all"]
    assert cost[MANY] <= 1.2 * cost[FEW], cost


def _asks() -> dict[str, Any]:
    return policy("ask")


def _act() -> toolgate.Tool:
    @toolgate.tool("t.act", writes=["outside"])
    async def act(x: str = "") -> str:
        """Do something outside."""
        return x

    return act


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made: Database = (
        Memory()
        if request.param == "memory"
        else Sqlite(tmp_path / "ledger.db")
        if request.param == "sqlite"
        else Postgres(request.getfixturevalue("postgres_server"))
    )
    yield made
    await made.close()


async def _ledger(database: Database, kind: type[Ledger] = Ledger) -> Ledger:
    ledger = kind(database.make(), KEYS)
    await ledger.open()
    return ledger


class Counted(Ledger):
    """Counts the questions to the database and the rows that it answers with."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: list[str] = []
        self.rows = 0

    def _transaction(self, works: Any, head: Head) -> Any:
        inner = super()._transaction(works, head)
        answer: Any = None
        with suppress(StopIteration):
            while True:
                query = inner.send(answer)
                self.asked.append(type(query).__name__)
                answer = yield query
                tables = answer.values() if isinstance(answer, dict) else [answer]
                self.rows += sum(1 if isinstance(one, Row) else len(one or ()) for one in tables)


async def test_opening_reads_and_seals_the_same_however_many_questions_are_open(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed: list[str] = []
    real = Keys.mac
    monkeypatch.setattr(Keys, "mac", lambda self, *given: sealed.append(given[1]) or real(self, *given))
    costs = []
    for numbers in (range(FEW), range(FEW, MANY)):
        first = await _ledger(database)
        await first.do(asking(*numbers))
        await first.close()
        sealed.clear()
        ledger = await _ledger(database, Counted)
        assert isinstance(ledger, Counted)
        await ledger.do(Work(lambda view: view.emit(Paused(persona="x", by="eve"))))
        await ledger.do(Work(lambda view: view.emit(Resumed(persona="x", by="eve"))))
        costs.append((tuple(ledger.asked), ledger.rows, len(sealed)))
        assert len(await ledger.look(lambda state, now: list(state.questions), no_question)) == numbers.stop
        assert (await verify(ledger.backend, KEYS)).ok
        await ledger.close()
    assert costs[0] == costs[1]
    assert costs[0][1] == 1, "the last event, and no other row"


@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
async def test_questions_that_nobody_looked_at_are_as_others_left_them(database: Database) -> None:
    first = await _ledger(database)
    await first.do(asking(*range(5)))
    second = await _ledger(database)
    await first.do(asking(7))
    await first.do(AnswerWork("q_000001", False, "eve", "test"))
    await first.do(AnswerWork("q_000002", True, "eve", "test"))
    await second.do(Work(lambda view: view.emit(Paused(persona="x", by="eve"))))
    found = await second.look(
        lambda state, now: {one.id[-1]: one.state for one in state.questions.values()}, no_question
    )
    assert found == {"0": "open", "2": "approved", "3": "open", "4": "open", "7": "open"}
    assert (await verify(second.backend, KEYS)).ok
    await first.close()
    await second.close()


async def test_what_does_something_to_a_question_without_saying_so_is_not_written(database: Database) -> None:
    first = await _ledger(database)
    await first.do(asking(*range(5)))
    await first.close()
    second = await _ledger(database)
    with pytest.raises(AssertionError, match="says so"):
        await second.do(Work(lambda view: view.emit(question(9))))
    with pytest.raises(AssertionError, match="says so"):
        await second.look(lambda state, now: len(state.questions))
    assert (await second.backend.head()).seq == 5
    await second.close()


async def test_opening_reads_no_question_that_nobody_needs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await _ledger(database)
    await first.do(asking(*range(300)))
    await first.close()
    checked: list[int] = []
    real = ledgers.fault_of
    monkeypatch.setattr(ledgers, "fault_of", lambda row, *more: checked.append(row.seq) or real(row, *more))
    second = await _ledger(database)
    assert len(checked) == 1, "the last row, and no other"
    await second.do(Work(lambda view: view.emit(Paused(persona="x", by="eve"))))
    one = await second.look(
        lambda state, now: state.questions["q_000007"], refs=lambda state, now: ("q_000007",)
    )
    assert one.digest == "sha256:7"
    assert len(checked) == 2
    await second.close()
    third = await _ledger(database)
    assert (await verify(third.backend, KEYS)).ok
    await third.close()


@pytest.mark.parametrize("how", ["expires", "state", "removed", "added"])
async def test_a_changed_table_of_questions_is_found_before_any_of_it_is_believed(
    database: Database, how: str
) -> None:
    first = await _ledger(database)
    await first.do(asking(*range(5)))
    await first.close()
    row = ("q_000003", 4, "open", LATER)
    assert row in await database.rows("questions")
    put = {
        "expires": [(*row[:3], LATER + 1)],
        "state": [("q_000003", 4, "approved", LATER)],
        "removed": [],
        "added": [row, ("q_9", 5, "approved", LATER)],
    }[how]
    await database.replace("questions", "q_000003", *put)
    second = await _ledger(database)
    for _ in range(2):
        with pytest.raises(LedgerBroken, match="the table questions is not what was sealed"):
            await second.look(lambda state, now: list(state.questions), no_question)
    assert not (await verify(second.backend, KEYS)).ok
    await second.close()


@pytest.mark.parametrize("said", ["", "5 4 {}", "5 5 {}", "5 6", "5 x {}", "4 5 {}"])
async def test_a_head_that_says_something_else_of_the_questions_is_found_when_it_is_opened(
    database: Database, said: str
) -> None:
    first = await _ledger(database)
    await first.do(asking(*range(5)))
    await first.close()
    ((*head, _),) = await database.rows("head")
    await database.replace("head", head[0], (*head, said.format("0" * 64)))
    with pytest.raises(LedgerBroken):
        await _ledger(database)


async def test_a_changed_row_of_a_question_is_found_before_it_is_shown(database: Database) -> None:
    first = await _ledger(database)
    await first.do(asking(*range(5)))
    await first.close()
    rows = await database.rows("journal")
    changed = Row(*rows[3])._replace(body=rows[3][10].replace("because", "just so"))
    await database.replace("journal", 4, tuple(changed))
    second = await _ledger(database)
    with pytest.raises(LedgerBroken, match="event 4"):
        await second.look(lambda state, now: None, refs=lambda state, now: ("q_000003",))
    await second.close()


@pytest.mark.parametrize("left", ["", "1 1 " + "0" * 64])
async def test_a_head_that_an_earlier_version_sealed_is_believed(database: Database, left: str) -> None:
    """Also where its process did not know the column, and left in it what was there."""
    first = await _ledger(database)
    await first.do(asking(*range(3)))
    state = await first.look(lambda state, now: state)
    await first.close()
    last = Row(*(await database.rows("journal"))[-1])
    head: Head = make_head(last, KEYS, "", state.stands.spelled())
    ((seq, *_),) = await database.rows("head")
    await database.replace("head", seq, (*head[:6], left))
    second = await _ledger(database)
    await second.do(asking(7))
    ((*_, said),) = await database.rows("head")
    assert said.startswith("4 4 ")
    assert (await verify(second.backend, KEYS)).ok
    await second.close()


async def test_questions_that_run_out_together_are_closed_some_at_a_time(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, policy(), "memory", keys=KEYS) as gate:
        ledger = gate.services.ledger
        await ledger.do(asking(*range(200), expires=1))
        granted = Granted(
            persona="ada",
            tool="t.act",
            ref="g_1",
            by="eve",
            channel="test",
            expires=1,
            definition="d",
            rights="r",
        )
        await ledger.do(Work(lambda view: view.emit(granted)))
        left = []
        for _ in range(5):
            assert (await gate.call("system.ping")).ok
            left.append(await ledger.look(lambda state, now: len(state.questions) + len(state.grants)))
        assert left == [137, 73, 9, 0, 0]
        assert await gate.approvals() == []
        assert (await gate.verify()).ok


async def test_pages_of_questions_hold_each_once_and_in_order(database: Database) -> None:
    from toolgate.consent.desk import Desk, Settings

    ledger = await _ledger(database)
    await ledger.do(asking(*range(23)))
    await ledger.close()
    ledger = await _ledger(database)
    desk = Desk(ledger, Settings())
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await desk.page(10, after)
        assert page.total == 23
        seen += [one.id for one in page.questions]
        after = page.next
    assert seen == [f"q_{number:06}" for number in range(23)]
    one = await desk.page(10, persona="p3")
    assert [each.id for each in one.questions] == ["q_000003"]
    assert (one.total, one.next) == (1, None)
    await ledger.close()


def _new(root: Path) -> Path:
    root.mkdir()
    return root
