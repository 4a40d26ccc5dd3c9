"""Tables of runs: what each was asked, what was said and called, and who drives it now.

Whoever drives a run holds it under the name of its process. A row of the run is written only by its holder, and rows are
numbered, so that of two who take themselves for the driver one fails at its next step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import Conflict, NotFound
from toolgate.storage.tables import Migration

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from toolgate.ledger.owners import Owners
    from toolgate.storage.tables import Tables

_RUNS = """CREATE TABLE agent_runs (
    id TEXT PRIMARY KEY, root TEXT NOT NULL, parent TEXT NOT NULL, conversation TEXT NOT NULL, room TEXT NOT NULL,
    persona TEXT NOT NULL, model TEXT NOT NULL, question TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
    answer TEXT NOT NULL, waiting TEXT NOT NULL, spent TEXT NOT NULL, settings TEXT NOT NULL, holder TEXT NOT NULL,
    created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE INDEX agent_runs_by_root ON agent_runs (root);
CREATE INDEX agent_runs_by_conversation ON agent_runs (conversation);
CREATE INDEX agent_runs_by_time ON agent_runs (created_at);
CREATE TABLE agent_steps (
    run TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, at BIGINT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run, number));"""
_PLANS = """CREATE TABLE agent_plans (
    id TEXT PRIMARY KEY, persona TEXT NOT NULL, conversation TEXT NOT NULL, run TEXT NOT NULL, goal TEXT NOT NULL,
    state TEXT NOT NULL, steps TEXT NOT NULL, result TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE INDEX agent_plans_by_persona ON agent_plans (persona, created_at);
CREATE TABLE agent_states (
    id TEXT PRIMARY KEY, persona TEXT NOT NULL, conversation TEXT NOT NULL, run TEXT NOT NULL, body TEXT NOT NULL,
    at BIGINT NOT NULL);
CREATE INDEX agent_states_by_persona ON agent_states (persona, at);"""
_ROOMS = """CREATE TABLE agent_rooms (
    id TEXT PRIMARY KEY, topic TEXT NOT NULL, members TEXT NOT NULL, state TEXT NOT NULL, settings TEXT NOT NULL,
    verdict TEXT NOT NULL, holder TEXT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE TABLE agent_posts (
    room TEXT NOT NULL, number BIGINT NOT NULL, persona TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    at BIGINT NOT NULL, PRIMARY KEY (room, number));"""
_LED = """CREATE TABLE agent_led (
    run TEXT NOT NULL, persona TEXT NOT NULL, tool TEXT NOT NULL, calls BIGINT NOT NULL, led BIGINT NOT NULL,
    at BIGINT NOT NULL, PRIMARY KEY (run, tool));
CREATE INDEX agent_led_by_time ON agent_led (at);"""
MIGRATIONS = tuple(Migration(sqlite=script, postgres=script) for script in (_RUNS, _PLANS, _ROOMS, _LED))

OPEN = ("running", "waiting")
"""States of a run that goes on some day; the others are `done`, `limit`, `budget`, `stopped`, `failed`, `cancelled`."""
_ENDED = "('done', 'limit', 'budget', 'stopped', 'failed', 'cancelled')"


@dataclass(slots=True)
class AgentRun:
    id: str
    persona: str
    question: str
    model: str = ""
    root: str = ""
    parent: str = ""
    conversation: str = ""
    room: str = ""
    state: str = "running"
    reason: str = ""
    answer: str = ""
    waiting: str = ""
    """The question that a human has to answer before it goes on."""
    spent: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    holder: str = ""
    created_at: int = 0
    updated_at: int = 0

    @property
    def ended(self) -> bool:
        return self.state not in OPEN

    def shown(self) -> dict[str, Any]:
        return {
            "run": self.id, "persona": self.persona, "model": self.model, "state": self.state, "question": self.question,
            "answer": self.answer, "reason": self.reason, "waiting": self.waiting, "spent": self.spent,
            "parent": self.parent, "conversation": self.conversation, "room": self.room, "created_at": self.created_at,
            "session": self.settings.get("session", ""),
        }  # fmt: skip


_COLUMNS = tuple(AgentRun.__dataclass_fields__)
_JSON = ("spent", "settings")


class RunStore:
    def __init__(
        self, tables: Callable[[], Awaitable[Tables]], owners: Owners, now: Callable[[], int]
    ) -> None:
        self._tables, self._owners, self._now = tables, owners, now

    async def add(self, run: AgentRun) -> None:
        run.created_at = run.updated_at = self._now()
        run.holder = self._owners.me
        values = [
            json.dumps(getattr(run, name)) if name in _JSON else getattr(run, name) for name in _COLUMNS
        ]
        marks = ", ".join("?" * len(_COLUMNS))
        tables = await self._tables()
        await tables.execute(
            f"INSERT INTO agent_runs ({', '.join(_COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            *values,
        )

    async def get(self, ident: str) -> AgentRun:
        found = await self._select("WHERE id = ?", ident)
        if not found:
            raise NotFound(f"there is no run {ident[:80]!r}", "`toolgate runs` lists them")
        return found[0]

    async def find(self, ident: str) -> AgentRun | None:
        found = await self._select("WHERE id = ?", ident)
        return found[0] if found else None

    async def newest(self, limit: int = 50, *, open_only: bool = False, conversation: str = "", room: str = "") -> list[AgentRun]:  # fmt: skip
        where = ["state IN ('running', 'waiting')"] if open_only else []
        values: list[Any] = []
        for name, value in (("conversation", conversation), ("room", room)):
            if value:
                where.append(f"{name} = ?")
                values.append(value)
        said = f"WHERE {' AND '.join(where)} " if where else ""
        return await self._select(f"{said}ORDER BY created_at DESC, id DESC LIMIT ?", *values, limit)

    async def family(self, root: str) -> list[AgentRun]:
        """The run and everybody it asked for help, the oldest first."""
        return await self._select("WHERE root = ? ORDER BY created_at, id", root)

    async def _select(self, rest: str, *values: Any) -> list[AgentRun]:
        tables = await self._tables()
        rows = await tables.fetch(f"SELECT {', '.join(_COLUMNS)} FROM agent_runs {rest}", *values)
        return [AgentRun(**{**row, **{name: json.loads(row[name]) for name in _JSON}}) for row in rows]

    async def take(self, ident: str) -> AgentRun:
        """Become its driver. Of two who try, one succeeds; one that is driven by a living process is refused. One that
        failed may be tried again: its model may have been out of reach."""
        run = await self.get(ident)
        if run.ended and run.state != "failed":
            raise Conflict(f"the run {ident} has ended: {run.state}", "start a new one")
        if run.holder == self._owners.me or (run.holder and not await self._owners.dead(run.holder)):
            raise Conflict(f"the run {ident} is being driven already", "wait for it, or stop that process")
        tables = await self._tables()
        won = await tables.execute(
            "UPDATE agent_runs SET holder = ?, updated_at = ?, state = ? WHERE id = ? AND holder = ? AND state = ?",
            self._owners.me, self._now(), OPEN[0], ident, run.holder, run.state,
        )  # fmt: skip
        if not won:
            raise Conflict(
                f"the run {ident} was taken up by another process just now", "leave it to that one"
            )
        run.holder = self._owners.me
        return run

    async def keep(self, run: AgentRun, *, let_go: bool = False) -> None:
        """What is true of it now; only as its holder."""
        tables = await self._tables()
        touched = await tables.execute(
            """UPDATE agent_runs SET state = ?, reason = ?, answer = ?, waiting = ?, spent = ?, holder = ?, updated_at = ?
               WHERE id = ? AND holder = ?""",
            run.state, run.reason, run.answer, run.waiting, json.dumps(run.spent), "" if let_go else self._owners.me,
            self._now(), run.id, self._owners.me,
        )  # fmt: skip
        if not touched:
            raise _lost(run.id)

    async def steps(self, ident: str) -> list[dict[str, Any]]:
        tables = await self._tables()
        rows = await tables.fetch(
            "SELECT number, kind, at, body FROM agent_steps WHERE run = ? ORDER BY number", ident
        )
        return [{**row, "body": json.loads(row["body"])} for row in rows]

    async def replies(self, idents: Sequence[str]) -> int:
        """How often the models of these runs answered."""
        tables, count = await self._tables(), 0
        for ident in idents:
            query = "SELECT COUNT(*) AS said FROM agent_steps WHERE run = ? AND kind = 'reply'"
            count += int((await tables.fetch(query, ident))[0]["said"])
        return count

    async def step(self, run: AgentRun, number: int, kind: str, body: Mapping[str, Any]) -> None:
        """One more row. Only the holder writes, and no number twice."""
        tables = await self._tables()
        done = await tables.execute(
            """INSERT INTO agent_steps (run, number, kind, at, body)
               SELECT ?, CAST(? AS BIGINT), ?, CAST(? AS BIGINT), ?
               WHERE EXISTS (SELECT 1 FROM agent_runs WHERE id = ? AND holder = ?) ON CONFLICT DO NOTHING""",
            run.id, number, kind, self._now(), json.dumps(body, default=str), run.id, self._owners.me,
        )  # fmt: skip
        if not done:
            raise _lost(run.id)

    async def forget(self, before: int) -> int:
        """Drop runs that ended before that moment."""
        tables = await self._tables()
        old = f"SELECT id FROM agent_runs WHERE updated_at < ? AND state IN {_ENDED}"
        await tables.execute(f"DELETE FROM agent_steps WHERE run IN ({old})", before)
        await tables.execute("DELETE FROM agent_led WHERE at < ?", before)
        return await tables.execute(
            f"DELETE FROM agent_runs WHERE updated_at < ? AND state IN {_ENDED}", before
        )


def _lost(ident: str) -> Conflict:
    return Conflict(f"the run {ident} is driven by another process now", "leave it to that one")
