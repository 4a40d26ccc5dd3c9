"""`ai.ask`, `ai.report`, `data.*`, `plan.*` and `room.*`: what personas know of themselves and each other, and say to each other."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, TypedDict, get_args

from toolgate.agents import room as rules
from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.errors import Conflict, InvalidArgs, NotAllowed, NotFound
from toolgate.core.names import HUMAN
from toolgate.core.tool import Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.agents.driver import ACTIVE
from toolgate.features.agents.runs import Runs, same_user
from toolgate.features.agents.store import AgentRun
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter, Row

Collection = Literal[
    "events", "usage_logs", "plans", "states", "messages", "executions", "runs", "rooms", "results"
]
Name = Annotated[Collection, Field(description="Which collection.")]
Limit = Annotated[int, Field(ge=1, le=200, description="Entries to give at most, the newest first.")]
Who = Annotated[str, Field(max_length=64, description="Only entries of this persona; empty: of all.")]
Talk = Annotated[str, Field(max_length=256, description="Only entries of this conversation.")]
Ident = Annotated[str, Field(min_length=1, max_length=256, description="The id of the entry.")]
Question = Annotated[str, Field(min_length=1, max_length=100_000, description="What to find out, with all that is needed for it.")]  # fmt: skip
Helper = Annotated[
    str, Field(max_length=64, description="Which of your subagents; empty: one like yourself.")
]
Period = Annotated[Literal["1hour", "1day", "1week"], Field(description="How far back.")]
Goal = Annotated[str, Field(min_length=1, max_length=2000, description="What the plan is for.")]
PATIENCE = 590.0
"""Seconds that a caller who is no run waits for a helper."""


class PlanStep(TypedDict, total=False):
    action: Annotated[str, Field(min_length=1, max_length=500)]
    expected: Annotated[str, Field(max_length=500)]


Steps = Annotated[list[PlanStep], Field(min_length=1, max_length=50, description="Each with `action` and the `expected` outcome.")]  # fmt: skip


def tools(context: FeatureContext) -> list[Tool]:
    runs: Runs = context.gate.feature("agents")
    return [*_ai(context, runs), *_data(context, runs), *_plans(runs)]


def _ai(context: FeatureContext, runs: Runs) -> list[Tool]:
    @tool("ai.ask", reads=["model"], timeout=600.0, risk="medium")
    async def ask(ctx: Context, question: Question, persona: Helper = "") -> dict[str, Any]:
        """Have a helper look into something and answer. It has no right that you lack, and shares your budget."""
        who = persona or ctx.persona
        active = ACTIVE.get()
        if active is not None:  # the run drives it as soon as this call is settled
            run = await runs.help(active.run, who, question, active.key)
            return {"run": run.id, "persona": run.persona, "state": run.state}
        runs.check_lineage(ctx.persona, who)
        run = await _helper(runs, ctx, question, who)
        if run.ended:
            return run.shown()
        try:
            async with asyncio.timeout(PATIENCE):
                run = await runs.drive(run)
        except TimeoutError:
            run = await runs.store.get(run.id)
        return run.shown()

    @tool("ai.report", reads=["ledger"])
    async def report(ctx: Context, period: Period = "1day", persona: Who = "") -> dict[str, Any]:
        """What you, or another persona, did lately: calls, success, time, top tools, errors, runs, plans."""
        who = persona or ctx.persona
        if not same_user(context.gate, ctx.persona, who):
            raise NotFound(f"there is no persona {who!r} of your user", "leave `persona` out for your own")
        usage = await context.gate.stats(period, who)
        mine = [run for run in await runs.store.newest(200) if run.persona == who]
        plans = await runs.plans.find(who, limit=5)
        states: dict[str, int] = {}
        for run in mine:
            states[run.state] = states.get(run.state, 0) + 1
        return {
            "persona": who, "period": period, "usage": usage, "runs": states,
            "usd": round(sum(run.spent.get("usd", 0) for run in mine), 6),
            "plans": [{"id": one["id"], "goal": one["goal"], "state": one["state"]} for one in plans],
        }  # fmt: skip

    return [ask, report]


async def _helper(runs: Runs, ctx: Context, question: str, who: str) -> AgentRun:
    """One for each key of a caller: a call that is made again after an interruption goes on with it, so that the gate
    knows what the helper did already."""
    named = json.dumps([ctx.persona, ctx.key]).encode()
    ident = f"r_{hashlib.sha256(named).hexdigest()[:32]}" if ctx.key else ""
    known = await runs.store.find(ident) if ident else None
    if known is None:
        return await runs.start(question, persona=who, conversation=ctx.conversation, ident=ident)
    if (known.persona, known.question) != (who, str(runs.gate.redact(question))):
        raise Conflict("the key belongs to another question", "use a new key")
    return known if known.ended else await runs.take_up(ident)


def _data(context: FeatureContext, runs: Runs) -> list[Tool]:
    collections = Collections(context, runs)

    @tool("data.list", reads=["ledger", "memory"], summarize=lambda found: f"{len(found['entries'])} entries")
    async def list_data(
        ctx: Context, collection: Name, persona: Who = "", conversation: Talk = "", limit: Limit = 20
    ) -> dict[str, Any]:
        """Entries of a named collection, your own and those of other personas: events, usage_logs, plans, states,
        messages, executions, runs, rooms, results."""
        entries = await collections.find(ctx.persona, collection, persona, conversation, limit)
        return {"collection": collection, "entries": entries}

    @tool("data.read", reads=["ledger", "memory"])
    async def read_data(ctx: Context, collection: Name, id: Ident) -> dict[str, Any]:  # noqa: A002
        """One entry of a collection, whole."""
        return await collections.read(ctx.persona, collection, id)

    return [list_data, read_data]


def _plans(runs: Runs) -> list[Tool]:
    @tool("plan.make", writes=["memory"])
    async def make(ctx: Context, goal: Goal, steps: Steps) -> dict[str, Any]:
        """Write down what you are going to do. Your next calls are linked to its steps; an earlier open plan ends."""
        active = ACTIVE.get()
        return await runs.plans.make(
            ctx.persona, goal, list(map(_plain, steps)), ctx.conversation, active.run.id if active else ""
        )

    @tool("plan.update", writes=["memory"])
    async def update(
        ctx: Context,
        plan: Ident,
        step: Annotated[int, Field(ge=1, le=50, description="The step's number.")],
        done: Annotated[bool, Field(description="Whether it came out as expected.")] = True,
        result: Annotated[str, Field(max_length=500, description="What came of it.")] = "",
        error: Annotated[str, Field(max_length=500, description="What went wrong.")] = "",
    ) -> dict[str, Any]:
        """Say how a step of your plan ended; the next one begins."""
        return await runs.plans.update(ctx.persona, plan, step, done=done, result=result, error=error)

    return [make, update]


def _plain(step: PlanStep) -> dict[str, Any]:
    return {**step}


class Collections:
    """The named collections that `data.*` reads. Everything in them is recorded redacted already. What personas said and
    planned is shown to personas of the same user only."""

    def __init__(self, context: FeatureContext, runs: Runs) -> None:
        self._gate, self._runs, self._context = context.gate, runs, context
        self._finders: Mapping[str, Callable[[str, str, int], Awaitable[list[dict[str, Any]]]]] = {
            "events": self._events, "usage_logs": self._usage, "plans": self._plans, "states": self._states,
            "messages": self._messages, "executions": self._executions, "runs": self._run_rows, "rooms": self._rooms,
            "results": self._results,
        }  # fmt: skip
        assert set(self._finders) == set(get_args(Collection))

    async def find(
        self, who: str, name: str, persona: str, conversation: str, limit: int
    ) -> list[dict[str, Any]]:
        found = await self._finders[name](persona, conversation, limit)
        return [one for one in found if self._shared(who, one)]

    def _shared(self, who: str, entry: Mapping[str, Any]) -> bool:
        """As the ledger's own tools have it: nothing of another user's. A room is its members'."""
        owners = [str(one) for one in entry.get("members") or (entry.get("persona") or who,)]
        return all(self._of_same_user(who, owner, json.dumps(entry, default=str)) for owner in owners)

    def _of_same_user(self, who: str, owner: str, body: str) -> bool:
        hides = self._gate.policy.foreign(who)
        if hides is not None and hides(owner, body):
            return False
        return same_user(self._gate, who, owner)

    async def read(self, who: str, name: str, ident: str) -> dict[str, Any]:
        found: dict[str, Any] | None = None
        if name in ("events", "usage_logs"):
            rows = [
                row
                for row in await self._gate.life(ident)
                if self._of_same_user(who, row.persona or who, row.body)
            ]
            found = {"id": ident, "events": [_event(row, whole=True) for row in rows]} if rows else None
        elif name == "results":
            found = await self._whole_result(who, ident)
        elif name == "plans":
            found = await self._runs.plans.get(ident)
        elif name == "runs":
            run = await self._runs.store.get(ident)
            found = run.shown() | {"steps": await self._runs.store.steps(ident)}
        else:
            entries = await self.find(who, name, "", "", 200)
            found = next((one for one in entries if str(one.get("id")) == ident), None)
        if found is None or not self._shared(who, found):
            raise NotFound(f"{name} has no entry {ident[:80]!r}", "`data.list` lists the newest")
        return found

    async def _events(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        wanted = Filter(persona=persona, conversation=conversation, newest_first=True, limit=limit)
        return [_event(row) for row in await self._gate.events(wanted)]

    async def _usage(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        kinds = ("committed", "failed", "unknown", "denied", "rejected", "limited")
        wanted = Filter(
            persona=persona, conversation=conversation, kinds=kinds, newest_first=True, limit=limit
        )
        return [_event(row) for row in await self._gate.events(wanted)]

    async def _plans(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        return await self._runs.plans.find(persona, conversation, limit)

    async def _states(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        return await self._runs.plans.states(persona, conversation, limit)

    async def _messages(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        runs = await self._runs.store.newest(limit, conversation=conversation)
        told = [run for run in runs if persona in ("", run.persona)]
        return [
            {
                "id": run.id,
                "persona": run.persona,
                "question": run.question,
                "answer": run.answer,
                "state": run.state,
            }
            for run in told
        ]

    async def _executions(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        wanted = Filter(
            persona=persona, conversation=conversation, kinds=("started",), newest_first=True, limit=1000
        )
        rows = [
            row for row in await self._gate.events(wanted) if row.tool.startswith(("exec.", "code.execute"))
        ]
        return [_event(row) for row in rows[:limit]]

    async def _run_rows(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        runs = await self._runs.store.newest(limit, conversation=conversation)
        return [run.shown() | {"id": run.id} for run in runs if persona in ("", run.persona)]

    async def _results(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        wanted = Filter(
            persona=persona, conversation=conversation, kinds=("committed",), newest_first=True, limit=limit
        )
        return [_event(row) | {"id": row.call} for row in await self._gate.events(wanted)]

    async def _whole_result(self, who: str, call: str) -> dict[str, Any] | None:
        """What a call of one's own gave, as long as the ledger keeps it: two days. Others may have been allowed more."""
        rows = await self._gate.events(Filter(call=call, kinds=("committed",), limit=1)) if call else []
        if not rows or who not in (HUMAN, rows[0].persona):
            return None
        body = await self._gate.whole(rows[0])
        result = body.get("result")
        if result is None and body.get("result_json"):
            result = json.loads(body["result_json"])
        return {"id": call, "persona": rows[0].persona, "tool": rows[0].tool, "result": result}

    async def _rooms(self, persona: str, conversation: str, limit: int) -> list[dict[str, Any]]:
        if persona or conversation:
            raise InvalidArgs("rooms belong to several personas", "leave out `persona` and `conversation`")
        tables = await self._context.tables()
        rows = await tables.fetch(
            "SELECT id, topic, members, state, verdict, created_at FROM agent_rooms ORDER BY created_at DESC LIMIT ?",
            limit,
        )
        return [{**row, "members": json.loads(row["members"])} for row in rows]


def _event(row: Row, *, whole: bool = False) -> dict[str, Any]:
    body = parsed(row)
    short = {
        name: body[name]
        for name in ("summary", "duration_us", "code", "error", "rule", "reason")
        if name in body
    }
    return {
        "id": row.seq, "at": row.at, "kind": row.kind, "persona": row.persona, "tool": row.tool, "call": row.call,
        "conversation": row.conversation, **(dict(body) if whole else short),
    }  # fmt: skip


# --- rooms ----------------------------------------------------------------------------------------------------


class PostClaim(TypedDict, total=False):
    text: Annotated[str, Field(max_length=1000)]
    file: Annotated[str, Field(min_length=1, max_length=1000)]
    line: Annotated[int, Field(ge=1)]
    quote: Annotated[str, Field(max_length=500)]


Words = Annotated[str, Field(min_length=1, max_length=8000, description="What you say.")]
Claims = Annotated[list[PostClaim], Field(max_length=20, description="Each with `text`, and the `file` and `line` that show it; a `quote` of the line is checked too.")]  # fmt: skip
Guess = Annotated[str, Field(max_length=1000, description="A new explanation for the board.")]
Names = Annotated[list[Annotated[str, Field(max_length=20)]], Field(max_length=20, description="Ids of hypotheses on the board.")]  # fmt: skip
Next = Annotated[str, Field(max_length=64, description="Who should speak next; a hint.")]
RoomId = Annotated[str, Field(max_length=256, description="The room; empty: the one that you are in.")]


def room_tools(context: FeatureContext) -> list[Tool]:
    """`room.read` and `room.post`: how members of a room hear and speak. A post's claims are checked against the ledger."""
    runs: Runs = context.gate.feature("agents")

    @tool("room.read", reads=["memory"])
    async def read(ctx: Context, room: RoomId = "") -> dict[str, Any]:
        """The room that you are in: its topic, the board of hypotheses, and what was said."""
        found = await runs.rooms.get(_place(ctx, room))
        if ctx.persona != HUMAN and ctx.persona not in found.members:
            raise NotAllowed(
                f"{ctx.persona} is not in {found.id}", "ask a human", data={"rule": "room:member"}
            )
        posts = await runs.rooms.posts(found.id)
        return found.shown() | {"board": [one.as_dict() for one in rules.board(posts)], "posts": posts}

    @tool("room.post", writes=["memory"], summarize=lambda post: str(post.get("text", ""))[:200])
    async def post(
        ctx: Context, text: Words, claims: Claims = [], hypothesis: Guess = "", supports: Names = [],  # noqa: B006
        contradicts: Names = [], next: Next = "", room: RoomId = "",  # noqa: A002, B006
    ) -> dict[str, Any]:  # fmt: skip
        """Say something in the room that you are in. Claims count only where the ledger shows that the line was read."""
        for claim in claims:
            if "file" not in claim or "line" not in claim:
                raise InvalidArgs(
                    "a claim names no file and line", 'write {"text": …, "file": "src/a.py", "line": 12}'
                )
        body = {
            "text": text, "claims": [{**claim} for claim in claims], "hypothesis": hypothesis, "supports": supports,
            "contradicts": contradicts, "next": next,
        }  # fmt: skip
        return await runs.rooms.post(_place(ctx, room), ctx.persona, ctx.call_id, body)

    return [post, read]


def _place(ctx: Context, room: str) -> str:
    """A persona speaks in the room that its call belongs to; the human names one."""
    if ctx.persona != HUMAN and room and ctx.conversation and room != ctx.conversation:
        raise NotAllowed(
            f"this call belongs to {ctx.conversation}", "speak there", data={"rule": "room:member"}
        )
    found = room or ctx.conversation
    if not found:
        raise InvalidArgs("no room is named", "name it with `room`")
    return found
