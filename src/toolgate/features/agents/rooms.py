"""Rooms: people and personas look into one thing together, post claims tied to the ledger, and a check ends it.

Each turn is a run of one persona. What it posts is a call of `room.post`, what the verifier does a call like any other, so
a room can be replayed from the ledger alone. All turns share one budget.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from toolgate.agents import room as rules
from toolgate.agents.budget import RunLimits, tightest
from toolgate.core.apart import apart
from toolgate.core.call import new_id
from toolgate.core.context import Trail
from toolgate.core.errors import Code, Conflict, InvalidArgs, NotAllowed, NotFound, ToolgateError
from toolgate.core.names import HUMAN
from toolgate.features.agents.driver import Listener, nobody
from toolgate.features.agents.evidence import proven
from toolgate.features.agents.replaying import passed, ran
from toolgate.features.agents.store import AgentRun
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext
    from toolgate.features.agents.runs import Runs

RECENT = 20
MOST_POSTS = 500
"""Of one room: each new one is compared with all of them."""
NOTHING_NEW = "PASS"
CHANGED = frozenset({"project", "branch", "scratch"})
"""What must have been written before a check is worth making again."""
GUIDE = """You are {persona}, in a room with {others}. Look into this together:

{topic}

Find out with tools before you say anything. Then call `room.post`: your message, `claims` with the `file` and `line` that you
really read, and a `hypothesis` of your own or the ids of those on the board that your claims support or contradict. Claims
about lines that nobody here has read do not count. If you have nothing new, answer only {silence}.

The board:
{board}

What was said, each line of it behind `>`:
{said}"""


@dataclass(slots=True)
class AgentRoom:
    id: str
    topic: str
    members: list[str]
    state: str = "open"
    settings: dict[str, Any] = field(default_factory=dict)
    verdict: str = ""
    holder: str = ""
    created_at: int = 0
    updated_at: int = 0

    @property
    def check(self) -> dict[str, Any] | None:
        return self.settings.get("check")

    def shown(self) -> dict[str, Any]:
        return {
            "room": self.id, "topic": self.topic, "members": self.members, "state": self.state,
            "reason": self.settings.get("reason", ""), "waiting": self.settings.get("waiting", ""), "verdict": self.verdict, "check": self.check,
        }  # fmt: skip


def _quoted(text: str) -> str:
    """Whatever a post says, no line of it can pose as another member or as the board."""
    return "\n".join(f"> {line}" for line in text.splitlines())


class Rooms:
    def __init__(self, context: FeatureContext, runs: Runs) -> None:
        self._context, self._runs, self._gate = context, runs, context.gate

    # --- what there is ------------------------------------------------------------------------------------

    async def open(
        self, topic: str, members: Sequence[str], *, check: Mapping[str, Any] | None = None, rounds: int = 4,
        limits: RunLimits | None = None,
    ) -> AgentRoom:  # fmt: skip
        known = self._gate.policy.personas
        wrong = [name for name in members if name == HUMAN or name not in known]
        if wrong or not members or len(set(members)) != len(members):
            raise InvalidArgs(
                f"a room needs personas, each once; these are none: {', '.join(wrong) or 'no names'}",
                f"name some of: {self._gate.policy.listed()}",
            )
        if check is not None and (
            not isinstance(check.get("tool"), str) or check.get("persona") not in known
        ):
            raise InvalidArgs(
                "a check is a call: tool, args, persona",
                'such as {"tool": "exec.python", "args": {…}, "persona": "…"}',
            )
        spec = self._runs.spec.budget
        most = tightest(RunLimits(spec.tokens, spec.usd, spec.seconds, spec.calls), limits or RunLimits())
        room = AgentRoom(
            new_id("room"), topic, list(members), created_at=self._gate.now, updated_at=self._gate.now
        )
        room.settings = {"check": dict(check) if check else None, "rounds": rounds, "limits": asdict(most)}
        tables = await self._context.tables()
        await tables.execute(
            """INSERT INTO agent_rooms (id, topic, members, state, settings, verdict, holder, created_at, updated_at)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            room.id, topic, json.dumps(room.members), room.state, json.dumps(room.settings), "", "",
            room.created_at, room.updated_at,
        )  # fmt: skip
        return room

    async def get(self, ident: str) -> AgentRoom:
        found = await self._select("WHERE id = ?", ident)
        if not found:
            raise NotFound(f"there is no room {ident[:80]!r}", "`toolgate rooms` lists them")
        return found[0]

    async def newest(self, limit: int = 50) -> list[AgentRoom]:
        return await self._select("ORDER BY created_at DESC, id DESC LIMIT ?", limit)

    async def due(self) -> list[AgentRoom]:
        """Those whose question was answered, and those whose process is gone."""
        asked = await self._gate.open_questions()
        found = await self._select("WHERE state IN ('open', 'waiting') ORDER BY created_at LIMIT 200")
        owners = self._gate.services.owners
        return [
            one
            for one in found
            if (one.settings.get("waiting") and one.settings["waiting"] not in asked and not one.holder)
            or (one.holder and await owners.dead(one.holder))
        ]

    async def _select(self, rest: str, *values: Any) -> list[AgentRoom]:
        tables = await self._context.tables()
        rows = await tables.fetch(f"SELECT * FROM agent_rooms {rest}", *values)
        return [
            AgentRoom(
                **{**row, "members": json.loads(row["members"]), "settings": json.loads(row["settings"])}
            )
            for row in rows
        ]

    async def posts(self, ident: str) -> list[dict[str, Any]]:
        tables = await self._context.tables()
        rows = await tables.fetch("SELECT * FROM agent_posts WHERE room = ? ORDER BY number", ident)
        return [
            {**json.loads(row["body"]), "number": row["number"], "persona": row["persona"], "kind": row["kind"], "at": row["at"]}
            for row in rows
        ]  # fmt: skip

    # --- posting ------------------------------------------------------------------------------------------

    async def post(self, ident: str, persona: str, call: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What a member or the human says; judged for what it brings that is new. One post for each call."""
        room = await self.get(ident)
        if persona != HUMAN and persona not in room.members:
            raise NotAllowed(
                f"{persona} is not in {ident}", "ask a human to be let in", data={"rule": "room:member"}
            )
        posts = await self.posts(ident)
        if persona != HUMAN and len(posts) >= MOST_POSTS:
            raise Conflict(f"{ident} has {len(posts)} posts, and can have no more", "open another room")
        made = await self._judged(room, posts, persona, body)
        made["call"] = call
        return await self._add(ident, persona, made.pop("kind"), made)

    async def _judged(
        self, room: AgentRoom, posts: Sequence[Mapping[str, Any]], persona: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        made: dict[str, Any] = {name: value for name, value in body.items() if value}
        made["claims"] = await proven(
            self._gate, room.id, room.members, [dict(one) for one in body.get("claims") or ()]
        )
        text = str(made.get("text", ""))
        made["novelty"], made["relevance"] = await apart(rules.new_and_fitting, text, room.topic, posts)
        known = {(one.get("file"), one.get("line")) for post in posts for one in post.get("claims", ())}
        first = all(post["persona"] != persona for post in posts)
        brings = any(
            one["event"] and (first or (one["file"], one["line"]) not in known) for one in made["claims"]
        )
        same = {one.text.strip().lower() for one in rules.board(posts)}
        if str(made.get("hypothesis", "")).strip().lower() in same:
            made.pop("hypothesis", None)
        dull = made["novelty"] < rules.NEW_ENOUGH or made["relevance"] < rules.ON_TOPIC
        silent = text.strip().upper().startswith(NOTHING_NEW) or (
            dull and not brings and not made.get("hypothesis")
        )
        made["kind"] = "pass" if silent and persona != HUMAN else "message"
        return made

    async def _add(self, ident: str, persona: str, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """One more row; whoever comes second with its number takes the next."""
        tables = await self._context.tables()
        for _ in range(100):
            rows = await tables.fetch(
                "SELECT COALESCE(MAX(number), 0) AS last FROM agent_posts WHERE room = ?", ident
            )
            number = int(rows[0]["last"]) + 1
            done = await tables.execute(
                """INSERT INTO agent_posts (room, number, persona, kind, body, at) VALUES (?, ?, ?, ?, ?, ?)
                   ON CONFLICT DO NOTHING""",
                ident, number, persona, kind, json.dumps(body, default=str), self._gate.now,
            )  # fmt: skip
            if done:
                return {**body, "number": number, "persona": persona, "kind": kind}
        raise Conflict(f"too many post into {ident} at once", "try again")

    # --- going on -----------------------------------------------------------------------------------------

    async def drive(self, room: AgentRoom, listen: Listener = nobody, *, attended: bool = False) -> AgentRoom:
        """Turn by turn, until a check passes, nobody has anything new, or the budget is used up; or a human is asked."""
        await self._take(room)
        try:
            return await self._turns(room, listen, attended)
        except (
            asyncio.CancelledError
        ):  # who puts a question off answers it some day, and then the room goes on
            with suppress(ToolgateError):
                turns = await self._runs.store.newest(20, open_only=True, room=room.id)
                if question := next((run.waiting for run in turns if run.waiting), ""):
                    await self._wait(room, question)
            raise
        finally:
            tables = await self._context.tables()
            await tables.execute(
                "UPDATE agent_rooms SET holder = '' WHERE id = ? AND holder = ?", room.id, self._me
            )

    @property
    def _me(self) -> str:
        return self._gate.services.owners.me

    async def _take(self, room: AgentRoom) -> None:
        """Of two who drive one room, one does."""
        now = await self.get(room.id)
        if now.holder == self._me or (now.holder and not await self._gate.services.owners.dead(now.holder)):
            raise Conflict(f"the room {room.id} goes on already", "wait for it")
        tables = await self._context.tables()
        won = await tables.execute(
            "UPDATE agent_rooms SET holder = ? WHERE id = ? AND holder = ?", self._me, room.id, now.holder
        )
        if not won:
            raise Conflict(
                f"the room {room.id} was taken up by another process just now", "leave it to that one"
            )

    async def _turns(self, room: AgentRoom, listen: Listener, attended: bool) -> AgentRoom:
        room.settings.pop("reason", None)
        if await self._check_is_due(room) and await self._halted_at_check(room, attended):
            return room
        while True:
            posts = await self.posts(room.id)
            over = rules.ending(room.members, posts, room.settings["rounds"], room.check is not None)
            if over is not None:
                return await self._end(room, over)
            turn = rules.turns(room.members, posts)
            run = await self._turn(room, posts, turn, listen, attended)
            if run.state == "waiting":
                return await self._wait(room, run.waiting)
            if run.state == "budget":
                return await self._end(room, rules.RoomEnding("budget", run.reason))
            if (
                run.state == "failed"
            ):  # its model is out of reach: the room stays open, and nobody is taken for silent
                return await self._stay_open(room, f"{run.persona} could not speak: {run.reason}")
            await self._close_turn(room, run, turn)
            if await self._check_is_due(room) and await self._halted_at_check(room, attended):
                return room

    async def _turn(
        self, room: AgentRoom, posts: Sequence[Mapping[str, Any]], turn: int, listen: Listener, attended: bool
    ) -> AgentRun:
        ident = f"r_{room.id}-{turn}"
        known = await self._runs.store.find(ident)
        if known is not None and known.ended and known.state != "failed":
            return known
        if known is not None:
            return await self._runs.resume(ident, listen, attended=attended)
        who = rules.speaker(room.members, posts)
        offset = sum(
            one.spent.get("asks", 0)
            for one in await self._runs.store.newest(1000, room=room.id)
            if one.persona == who
        )
        run = await self._runs.start(
            self._question(room, posts, who), persona=who, conversation=room.id, room=room.id, ident=ident, root=room.id,
            limits=RunLimits(**room.settings["limits"]), circle=f"{room.id}/{who}", offset=offset,
        )  # fmt: skip
        listen("turn", run, {})
        return await self._runs.drive(run, listen, attended=attended)

    def _question(self, room: AgentRoom, posts: Sequence[Mapping[str, Any]], who: str) -> str:
        board = "\n".join(
            f"{one.id} ({one.weight:+d}): {' '.join(one.text.split())}" for one in rules.board(posts)
        ) or "(empty)"  # fmt: skip
        said = "\n".join(
            f"{post['persona']}:\n{_quoted(post.get('text', '')[:1000])}" for post in posts if post["kind"] in ("message", "check")
        )  # fmt: skip
        others = ", ".join(name for name in room.members if name != who) or "nobody else"
        recent = "\n".join(said.splitlines()[-RECENT * 4 :]) or "(nothing yet)"
        return GUIDE.format(
            persona=who, others=others, topic=room.topic, board=board, said=recent, silence=NOTHING_NEW
        )

    async def _close_turn(self, room: AgentRoom, run: AgentRun, turn: int) -> None:
        """Whoever has not posted is taken at its answer, by a call like any other."""
        if rules.turns(room.members, await self.posts(room.id)) > turn:
            return
        text = (run.answer or NOTHING_NEW)[:8000]
        trail = Trail(conversation=room.id, transaction=run.id, reason="the answer of its turn")
        result = await self._gate.pipeline.call(
            "room.post", {"text": text}, run.persona, key=f"{run.id}/post", trail=trail, wait=False, own_key=True
        )  # fmt: skip
        if not result.ok:  # it may not post: its turn is over all the same
            told = result.error.message if result.error is not None else ""
            await self._add(room.id, run.persona, "pass", {"text": f"{NOTHING_NEW}: {told}"})

    async def _check_is_due(self, room: AgentRoom) -> bool:
        """At first, when it shows what is wrong, and whenever anything was written since."""
        if room.check is None:
            return False
        checks = [post for post in await self.posts(room.id) if post["kind"] == "check"]
        if not checks:
            return True
        after = int(checks[-1].get("event") or 0)
        wanted = Filter(conversation=room.id, after=after, kinds=("committed",), newest_first=True, limit=200)
        tools = [self._gate.tool(row.tool) for row in await self._gate.events(wanted)]
        return any(tool is not None and CHANGED & set(tool.effects.writes) for tool in tools)

    async def _halted_at_check(self, room: AgentRoom, attended: bool) -> bool:
        """Make the call that decides. Whether the room ends here for now: a human has to answer first, or the call was
        refused, which shows nothing."""
        check = room.check
        assert check is not None
        number = sum(1 for post in await self.posts(room.id) if post["kind"] == "check")
        trail = Trail(conversation=room.id, transaction=room.id, reason="the check of the room")
        result = await self._gate.pipeline.call(
            check["tool"], check.get("args") or {}, check["persona"], key=f"r_{room.id}/check/{number}",
            trail=trail, wait=attended, own_key=True,
        )  # fmt: skip
        if result.error is not None and result.error.code is Code.PENDING:
            await self._wait(room, str((result.data or {}).get("question", "")))
            return True
        if result.error is not None and not ran(result):
            await self._stay_open(room, f"the check could not be made: {result.error.message}")
            return True
        told = self._gate.rendered(result, check.get("args") or {})[:2000]
        body = {
            "text": told,
            "passed": passed(result),
            "call": result.meta.call_id,
            "event": result.meta.event_id,
        }
        await self._add(room.id, check["persona"], "check", body)
        return False

    async def _stay_open(self, room: AgentRoom, reason: str) -> AgentRoom:
        room.state, room.settings["reason"] = "open", reason
        return await self._keep(room)

    async def _wait(self, room: AgentRoom, question: str) -> AgentRoom:
        room.state, room.settings["waiting"] = "waiting", question
        return await self._keep(room)

    async def _end(self, room: AgentRoom, over: rules.RoomEnding) -> AgentRoom:
        room.state, room.settings["reason"] = over.state, over.reason
        room.settings.pop("waiting", None)
        await self._context.tell(
            f"the room {room.id} ended: {over.state}: {over.reason}"[:2000],
            {"room": room.id, "state": over.state},
        )
        return await self._keep(room)

    async def _keep(self, room: AgentRoom) -> AgentRoom:
        tables = await self._context.tables()
        await tables.execute(
            "UPDATE agent_rooms SET state = ?, settings = ?, verdict = ?, updated_at = ? WHERE id = ?",
            room.state, json.dumps(room.settings), room.verdict, self._gate.now, room.id,
        )  # fmt: skip
        return room

    async def judge(self, ident: str, verdict: str, by: str) -> AgentRoom:
        """A human's word on the diagnosis: `right` or `wrong`. Recorded for the accuracy of diagnoses."""
        if verdict not in ("right", "wrong"):
            raise InvalidArgs(f"{verdict[:40]!r} is no verdict", "say `right` or `wrong`")
        room = await self.get(ident)
        room.verdict = verdict
        data = {"room": ident, "verdict": verdict, "by": by, "members": room.members, "state": room.state}
        await self._context.tell(f"{by} says that the diagnosis of {ident} is {verdict}", data)
        await self._add(ident, HUMAN, "verdict", {"text": verdict})
        return await self._keep(room)
