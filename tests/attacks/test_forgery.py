"""A forged approval, grant or end of a pause opens nothing: neither a gate that runs nor one that is opened on it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

import toolgate
from gates import FixedClock, Witness
from toolgate.core.canonical import canonical
from toolgate.core.errors import LedgerBroken
from toolgate.core.result import Result

from .everything import Tale, Thief, open_gate

Forgery = Callable[[Thief, Tale], None]


def body(thief: Thief, ref: str, kind: str) -> dict[str, Any]:
    return json.loads(next(row["body"] for row in thief.rows() if row["ref"] == ref and row["kind"] == kind))


def approve_in_the_table(thief: Thief, tale: Tale) -> None:
    thief.set("questions", tale.waiting, "state", "approved")


def approve_in_the_journal(thief: Thief, tale: Tale) -> None:
    asked = body(thief, tale.waiting, "asked")
    said = {"by": "eve", "channel": "terminal", "digest": asked["digest"], "expires": asked["expires"]}
    thief.append("approved", canonical(said), ref=tale.waiting, persona="ada", tool="t.act")
    thief.set("questions", tale.waiting, "state", "approved")


def approve_by_a_row_beyond_the_head(thief: Thief, tale: Tale) -> None:
    head = thief.rows("head")[0]
    approve_in_the_journal(thief, tale)
    thief.db.execute("UPDATE head SET seq = ?, hash = ?", (head["seq"], head["hash"]))


def approve_by_editing_another_approval(thief: Thief, tale: Tale) -> None:
    """The approval of one question is pointed at another's digest."""
    asked = body(thief, tale.waiting, "asked")
    row = next(row for row in thief.rows() if row["ref"] == tale.approved and row["kind"] == "approved")
    edited = canonical(json.loads(row["body"]) | {"digest": asked["digest"]})
    thief.set("journal", row["seq"], "body", edited)
    thief.set("journal", row["seq"], "ref", tale.waiting)
    thief.set("questions", tale.waiting, "state", "approved")


def grant_in_the_table(thief: Thief, tale: Tale) -> None:
    thief.insert("grants", {"id": "g_forged", "seq": 1, "uses": 0, "expires": tale.now * 2})


def grant_in_the_journal(thief: Thief, tale: Tale) -> None:
    asked = body(thief, tale.waiting, "asked")
    given = {"by": "eve", "channel": "terminal", "expires": tale.now * 2}
    given |= {"definition": asked["definition"], "rights": asked["rights"]}
    thief.append("granted", canonical(given), ref="g_forged", persona="ada", tool="t.act")
    row = {"id": "g_forged", "seq": thief.rows()[-1]["seq"], "uses": 0, "expires": tale.now * 2}
    thief.insert("grants", row)


def widen_the_grant(thief: Thief, tale: Tale) -> None:
    row = next(row for row in reversed(thief.rows()) if row["kind"] == "granted")
    thief.set("journal", row["seq"], "body", row["body"].replace('"g*"', '"*"'))


def put_the_revoked_grant_back(thief: Thief, tale: Tale) -> None:
    """Every row that is left is genuine; the one that took the grant back is gone."""
    granted = next(row for row in thief.rows() if row["ref"] == tale.revoked and row["kind"] == "granted")
    widen = json.loads(granted["body"])
    assert widen["args"]
    gone = next(row for row in thief.rows() if row["ref"] == tale.revoked and row["kind"] == "revoked")
    thief.delete("journal", gone["seq"])
    row = {"id": tale.revoked, "seq": granted["seq"], "uses": 1, "expires": widen["expires"]}
    thief.insert("grants", row)


def put_the_used_approval_back(thief: Thief, tale: Tale) -> None:
    """The call that used it is taken out of the journal, and the approval lies there again."""
    used = next(row for row in thief.rows() if row["ref"] == tale.used and row["kind"] == "started")
    for row in thief.rows():
        if row["call"] == used["call"]:
            thief.delete("journal", row["seq"])
    approved = body(thief, tale.used, "approved")
    asked = next(row for row in thief.rows() if row["ref"] == tale.used and row["kind"] == "asked")
    thief.delete("claims", "ada/used-key")
    row = {"id": tale.used, "seq": asked["seq"], "state": "approved", "expires": approved["expires"]}
    thief.insert("questions", row)


def end_the_pause_in_the_table(thief: Thief, tale: Tale) -> None:
    thief.db.execute("DELETE FROM pauses")


def end_the_pause_in_the_journal(thief: Thief, tale: Tale) -> None:
    thief.append("resumed", '{"by":"eve"}', persona="bob")
    thief.db.execute("DELETE FROM pauses")


def take_the_live_call_out(thief: Thief, tale: Tale) -> None:
    """So that nobody would ever ask how it ended."""
    thief.db.execute("UPDATE head SET live = ''")


@dataclass(frozen=True)
class Case:
    forge: Forgery
    x: str
    persona: str = "ada"
    tool: str = "t.act"


CASES = (
    Case(approve_in_the_table, "waiting"),
    Case(approve_in_the_journal, "waiting"),
    Case(approve_by_a_row_beyond_the_head, "waiting"),
    Case(approve_by_editing_another_approval, "waiting"),
    Case(grant_in_the_table, "anything"),
    Case(grant_in_the_journal, "anything"),
    Case(widen_the_grant, "anything"),
    Case(put_the_revoked_grant_back, "r9"),
    Case(put_the_used_approval_back, "used"),
    Case(end_the_pause_in_the_table, "free", "bob", "t.look"),
    Case(end_the_pause_in_the_journal, "free", "bob", "t.look"),
    Case(take_the_live_call_out, "live"),
)
named = pytest.mark.parametrize("case", CASES, ids=lambda case: case.forge.__name__)


@pytest.fixture
async def living(tale: Tale, thief: Thief) -> AsyncIterator[tuple[toolgate.Gate, Witness]]:
    """A gate that has been at work since before the forgery."""
    witness = Witness()
    async with open_gate(thief.path, witness, FixedClock(tale.now)) as gate:
        assert (await gate.call("t.look", {"x": "alive"})).ok
        witness.ran.clear()
        yield gate, witness


async def attempt(gate: toolgate.Gate, case: Case) -> Result:
    return await gate.call(case.tool, {"x": case.x}, persona=case.persona, wait=False)


@named
async def test_verify_finds_it(case: Case, tale: Tale, thief: Thief) -> None:
    case.forge(thief, tale)
    report = await thief.verify(tale.now)
    assert not report.ok
    assert report.bad_event is not None


@named
async def test_a_fresh_gate_refuses_it(case: Case, tale: Tale, thief: Thief) -> None:
    """When it is opened; what is only in the table of questions, when one of them is needed."""
    case.forge(thief, tale)
    witness = Witness()
    told: Any = None
    try:
        async with open_gate(thief.path, witness, FixedClock(tale.now)) as gate:
            told = (await attempt(gate, case)).error
    except LedgerBroken as error:
        told = error
    assert told is not None
    assert told.code == "unavailable"
    assert told.fix
    assert witness.ran == []


@named
async def test_a_living_gate_runs_nothing_on_it(
    case: Case, tale: Tale, thief: Thief, living: tuple[toolgate.Gate, Witness]
) -> None:
    gate, witness = living
    case.forge(thief, tale)
    result = await attempt(gate, case)
    assert not result.ok
    assert result.error is not None
    assert result.error.code in ("unavailable", "pending", "not_allowed")
    assert witness.ran == []


@pytest.mark.parametrize(
    "forge",
    [
        approve_in_the_journal,
        grant_in_the_journal,
        end_the_pause_in_the_journal,
        approve_by_a_row_beyond_the_head,
    ],
)
async def test_a_living_gate_stops_altogether_on_a_forged_event(
    forge: Forgery, tale: Tale, thief: Thief, living: tuple[toolgate.Gate, Witness]
) -> None:
    gate, witness = living
    forge(thief, tale)
    for tool in ("t.act", "t.look"):
        result = await gate.call(tool, {"x": "x"}, wait=False)
        assert result.error is not None
        assert result.error.code == "unavailable"
    assert witness.ran == []


async def test_a_genuine_ledger_still_opens_and_runs_what_was_approved(tale: Tale, thief: Thief) -> None:
    """The other tests would pass on a gate that never runs anything."""
    witness = Witness()
    async with open_gate(thief.path, witness, FixedClock(tale.now)) as gate:
        assert (await gate.call("t.act", {"x": "approved"}, wait=False)).ok
        assert (await gate.call("t.act", {"x": "g3"}, wait=False)).ok
        again = await gate.call("t.act", {"x": "approved"}, wait=False)
        assert again.error is not None
        assert again.error.code == "pending"
    assert witness.arguments == ["approved", "g3"]


async def test_a_gate_with_the_wrong_key_does_not_open(tale: Tale, thief: Thief) -> None:
    from toolgate.ledger.keys import Keys

    wrong = Keys({1: b"w" * 32, 2: b"w" * 32}, b"s" * 32)
    with pytest.raises(LedgerBroken, match="not sealed with the key"):
        async with open_gate(thief.path, Witness(), FixedClock(tale.now), wrong):
            pass


async def test_an_older_copy_under_a_living_gate_stops_it(
    tale: Tale, thief: Thief, living: tuple[toolgate.Gate, Witness]
) -> None:
    gate, witness = living
    old = Thief(tale.early, thief.path.with_name("old.db"))
    for table in ("journal", "head", "questions", "grants", "pauses", "claims"):
        rows = old.rows(table)
        thief.db.execute(f"DELETE FROM {table}")
        for row in rows:
            thief.insert(table, row if table != "head" else row | {"id": 1})
    old.db.close()
    result = await gate.call("t.act", {"x": "approved"}, wait=False)
    assert result.error is not None
    assert result.error.code == "unavailable"
    assert witness.ran == []
