"""A ledger in which everything has happened once, and the ways to lay hands on a copy of it."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolgate
from gates import KEYS, FixedClock, Witness, policy, toolset
from toolgate.core.event import Rotated, Started, Unknown
from toolgate.ledger.checkpoint import Checkpoint
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import View, Work
from toolgate.ledger.verify import Report, verify
from toolgate.storage.schema import HEAD, JOURNAL, PROJECTIONS
from toolgate.storage.sqlite import SqliteBackend

ROTATED = Keys({1: b"k" * 32, 2: b"n" * 32}, KEYS.signing)
CONFIG = policy("ask", consent={"expires_s": 600, "max_open": 50})
CONFIG["policy"]["rules"].append({"name": "reads", "persona": "*", "tools": ["t.look"], "decision": "allow"})
CONFIG["policy"]["rules"][0]["tools"] = ["t.act", "t.write", "t.fail"]
CONFIG["policy"]["rules"].append({"name": "free", "persona": "*", "tools": ["events.*"], "decision": "allow"})


@dataclass
class Tale:
    """Where the ledger lies, and the names of what happened in it."""

    path: Path
    now: int
    early: Path
    """A copy from before the last approvals were used."""
    checkpoint: Checkpoint
    used: str
    revoked: str
    waiting: str
    approved: str
    live: str


def open_gate(path: Path, witness: Witness, clock: FixedClock, keys: Keys = ROTATED) -> Any:
    return toolgate.open(
        path.parent,
        config=CONFIG,
        database=str(path),
        tools=toolset(witness, path.parent),
        clock=clock,
        keys=keys,
    )


async def tell(root: Path) -> Tale:
    path, clock, witness = root / "tale.db", FixedClock(), Witness()

    async def ask(gate: toolgate.Gate, x: str, persona: str = "ada", key: str | None = None) -> str:
        result = await gate.call("t.act", {"x": x}, persona=persona, wait=False, key=key, reason="to tell")
        assert result.error is not None
        assert result.error.code == "pending"
        return str(result.data["question"])

    async with open_gate(path, witness, clock, KEYS) as gate:
        await gate.call("t.look", {"x": "a"}, conversation="talk")
        await gate.call("t.look", {"x": "keyed"}, key="read-key")
        await gate.answer(await ask(gate, "refused"), "deny", reason="no", by="eve")
        used = await ask(gate, "used", key="used-key")
        await gate.answer(used, "approve", by="eve")
        assert (await gate.call("t.act", {"x": "used"}, key="used-key")).ok
        scope = {"args": {"x": {"glob": "r*"}}, "seconds": 90_000, "uses": 5}
        await gate.answer(await ask(gate, "first"), "approve", scope=scope, by="eve")
        assert (await gate.call("t.act", {"x": "r1"})).ok
        revoked = (await gate.grants())[0].id
        await gate.revoke(revoked, by="eve", reason="enough")
        await gate.answer(
            await ask(gate, "second"), "approve", scope=scope | {"args": {"x": {"glob": "g*"}}}, by="eve"
        )
        assert (await gate.call("t.act", {"x": "g2"})).ok
        await gate.answer(await ask(gate, "broken"), "approve")
        assert not (await gate.call("t.fail", {"x": "other"}, wait=False)).ok
        await gate.call("t.nothing", {})
        await gate.call("events.log", {"type": "observation", "rationale": "seen"})
        await gate.pause("bob", reason="holiday")
        await gate.call("t.look", persona="bob")
        await gate.resume("bob")
        await gate.pause("bob", reason="again")
        clock.advance(700)
        await gate.call("t.look", {"x": "later"})
        approved, waiting = await ask(gate, "approved"), await ask(gate, "waiting")
        await gate.answer(approved, "approve", by="eve")
        await _leave_in_doubt(gate)
        live = await _leave_running(gate)
        early = root / "early.db"
        _copy(path, early)
        gate.services.ledger.keys = ROTATED
        await gate.services.ledger.do(Work(_rotate))
        await gate.call("t.look", {"x": "rotated"})
        checkpoint = await gate.checkpoint("tale")
        await gate.call("t.look", {"x": "last"}, key="last-key")
        whole = root / "whole.db"
        _copy(path, whole)
    return Tale(whole, clock.now(), early, checkpoint, used, revoked, waiting, approved, live)


def _rotate(view: View) -> None:
    view.emit(Rotated(version=2, by="eve"))


def _started(call: str) -> Started:
    return Started(
        call=call, persona="ada", tool="t.look", digest="sha256:0", definition="sha256:1", owner="o_gone-1-1",
        args={"x": "live"}, rule="rule:reads", decision="allow", claim=f"ada/{call}",
    )  # fmt: skip


async def _leave_running(gate: toolgate.Gate) -> str:
    """A started row without its end, as a killed process leaves it; its owner does not exist."""
    await gate.services.ledger.do(Work(lambda view: view.emit(_started("c_live"))))
    return "c_live"


async def _leave_in_doubt(gate: toolgate.Gate) -> None:
    """A call whose outcome is unknown and that nobody has resolved."""
    end = Unknown(
        call="c_lost", persona="ada", tool="t.look", claim="ada/c_lost", code="unknown_outcome", error="lost"
    )
    for event in (_started("c_lost"), end):
        await gate.services.ledger.do(Work(lambda view, event=event: view.emit(event)))


def _copy(source: Path, target: Path) -> None:
    with sqlite3.connect(source) as here, sqlite3.connect(target) as there:
        here.backup(there)
    here.close()
    there.close()


class Thief:
    """Somebody who can write the database file and has no key."""

    def __init__(self, source: Path, path: Path) -> None:
        self.path = path
        shutil.copy(source, path)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("DROP TRIGGER journal_no_update")
        self.db.execute("DROP TRIGGER journal_no_delete")

    def rows(self, table: str = "journal") -> list[dict[str, Any]]:
        names = columns(table)
        found = self.db.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1")
        return [dict(zip(names, row, strict=True)) for row in found]

    def set(self, table: str, key: Any, column: str, value: Any) -> None:
        self.db.execute(f"UPDATE {table} SET {column} = ? WHERE {columns(table)[0]} = ?", (value, key))

    def insert(self, table: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

    def delete(self, table: str, key: Any) -> None:
        self.db.execute(f"DELETE FROM {table} WHERE {columns(table)[0]} = ?", (key,))

    def append(self, kind: str, body: str, **envelope: str) -> None:
        """A row with the right plain hashes and a seal copied from another; the head moved after it."""
        last = self.rows()[-1]
        row = dict.fromkeys(("call", "persona", "tool", "conversation", "ref", "claim"), "") | envelope
        made = {"seq": last["seq"] + 1, "at": last["at"], "kind": kind} | row
        made |= {"key": last["key"], "body": body, "prev": last["hash"]}
        text = "\n".join(str(made[name]) for name in JOURNAL[:12])
        made |= {"hash": hashlib.sha256(text.encode()).hexdigest(), "mac": last["mac"]}
        self.insert("journal", made)
        self.db.execute("UPDATE head SET seq = ?, hash = ?", (made["seq"], made["hash"]))

    async def verify(self, now: int, keys: Keys | None = ROTATED, checkpoints: Any = ()) -> Report:
        return await verify(SqliteBackend(self.path), keys, checkpoints, now=now)


def columns(table: str) -> tuple[str, ...]:
    if table == "head":
        return HEAD
    return JOURNAL if table == "journal" else PROJECTIONS[table]


def plain_rechained(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with hashes that fit each other again: what anybody can compute."""
    made, prev = [], "0" * 64
    for seq, row in enumerate(rows, 1):
        row = row | {"seq": seq, "prev": prev}
        text = "\n".join(str(row[name]) for name in JOURNAL[:12])
        prev = row["hash"] = hashlib.sha256(text.encode()).hexdigest()
        made.append(row)
    return made


def rechained(rows: list[dict[str, Any]], keys: Keys) -> list[dict[str, Any]]:
    """The same, sealed: what only the holder of the key can do."""
    return [row | {"mac": keys.mac(row["key"], row["hash"])} for row in plain_rechained(rows)]


async def rehead(thief: Thief, keys: Keys) -> None:
    """The head and the tables of a rewritten journal, made with the key."""
    from toolgate.ledger.chain import make_head
    from toolgate.ledger.state import State
    from toolgate.storage.port import Row

    state = State(keep_claims=True)
    for row in thief.rows():
        state.apply(Row(**row))
    last = Row(**thief.rows()[-1])
    standing = state.stands.sealed(keys, keys.current)
    head = make_head(last, keys, state.running(), standing, state.stands.asked(last.seq, last.hash))
    names = ("seq", "at", "key", "hash", "mac", "live", "questions")
    thief.db.execute(f"UPDATE head SET {', '.join(f'{name} = ?' for name in names)}", head[:7])
