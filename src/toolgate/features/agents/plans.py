"""Plans and states of personas: what one means to do, step by step, what came of it, and how it saw itself.

A plan is made by the persona itself (`plan.make`), or kept for it: each round of a run is a step with the words that led to
it. The calls of a step are linked by their ids; the ledger has the rest. Personas read their own and each other's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.call import new_id
from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs, NotAllowed, NotFound
from toolgate.features.agents.store import AgentRun

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext

MOST_STEPS = 50
SHORT = 500
_MARKS = {"done": "x", "failed": "!", "open": " "}


class Plans:
    def __init__(self, context: FeatureContext) -> None:
        self._context = context

    @property
    def _now(self) -> int:
        return self._context.gate.now

    # --- plans --------------------------------------------------------------------------------------------

    async def make(
        self,
        persona: str,
        goal: str,
        steps: Sequence[Mapping[str, Any]],
        conversation: str = "",
        run: str = "",
    ) -> dict[str, Any]:
        """A new plan; an open one of the same conversation is superseded."""
        if len(steps) > MOST_STEPS:
            raise InvalidArgs(f"the plan has {len(steps)} steps", f"use at most {MOST_STEPS}")
        tables, now = await self._context.tables(), self._now
        await tables.execute(
            """UPDATE agent_plans SET state = 'superseded', updated_at = ?
               WHERE persona = ? AND conversation = ? AND state = 'open'""",
            now, persona, conversation,
        )  # fmt: skip
        made = [
            {
                "number": number, "action": step["action"][:SHORT], "expected": step.get("expected", "")[:SHORT],
                "state": "open", "result": "", "error": "", "began_at": now if number == 1 else 0, "seconds": 0.0,
                "calls": [],
            }
            for number, step in enumerate(steps, 1)
        ]  # fmt: skip
        ident = new_id("p")
        await tables.execute(
            """INSERT INTO agent_plans (id, persona, conversation, run, goal, state, steps, result, created_at, updated_at)
               VALUES (?, ?, ?, ?, ?, 'open', ?, '', ?, ?)""",
            ident, persona, conversation, run, goal[:2000], json.dumps(made), now, now,
        )  # fmt: skip
        return await self.get(ident)

    async def get(self, ident: str) -> dict[str, Any]:
        tables = await self._context.tables()
        rows = await tables.fetch("SELECT * FROM agent_plans WHERE id = ?", ident)
        if not rows:
            raise NotFound(f"there is no plan {ident[:80]!r}", "`data.list` with `plans` lists them")
        return _plan(rows[0])

    async def find(
        self, persona: str = "", conversation: str = "", limit: int = 50, *, open_only: bool = False
    ) -> list[dict[str, Any]]:
        tables = await self._context.tables()
        state = "open" if open_only else ""
        rows = await tables.fetch(
            """SELECT * FROM agent_plans WHERE (persona = ? OR ? = '') AND (conversation = ? OR ? = '')
               AND (state = ? OR ? = '') ORDER BY created_at DESC, id DESC LIMIT ?""",
            persona, persona, conversation, conversation, state, state, limit,
        )  # fmt: skip
        return [_plan(row) for row in rows]

    async def update(
        self, persona: str, ident: str, number: int, *, done: bool, result: str = "", error: str = ""
    ) -> dict[str, Any]:
        """How a step ended. The next one begins; after the last one the plan is over."""
        plan = await self.get(ident)
        if plan["persona"] != persona:
            raise NotAllowed(
                f"the plan {ident} is {plan['persona']}'s", "change your own", data={"rule": "plan:owner"}
            )
        if plan["state"] != "open":
            raise InvalidArgs(f"the plan {ident} is {plan['state']}", "make a new one")
        step = next((one for one in plan["steps"] if one["number"] == number), None)
        if step is None:
            raise InvalidArgs(f"the plan has no step {number}", f"it has 1 to {len(plan['steps'])}")
        step |= {"state": "done" if done else "failed", "result": result[:SHORT], "error": error[:SHORT]}
        step["seconds"] = round((self._now - (step["began_at"] or plan["created_at"])) / SECOND, 3)
        for later in plan["steps"]:
            if later["number"] == number + 1 and not later["began_at"]:
                later["began_at"] = self._now
        if all(one["state"] != "open" for one in plan["steps"]):
            plan["state"] = "done" if all(one["state"] == "done" for one in plan["steps"]) else "failed"
        await self._keep(plan)
        return plan

    async def _keep(self, plan: Mapping[str, Any]) -> None:
        tables = await self._context.tables()
        await tables.execute(
            "UPDATE agent_plans SET state = ?, steps = ?, result = ?, updated_at = ? WHERE id = ?",
            plan["state"], json.dumps(plan["steps"]), plan["result"], self._now, plan["id"],
        )  # fmt: skip

    async def standing(self, run: AgentRun) -> tuple[str, tuple[str, str]]:
        """The open plan of the run as its next request tells it, and the ids that its next calls carry."""
        found = await self.find(run.persona, run.conversation, 1, open_only=True)
        if not found:
            return "", ("", "")
        plan = found[0]
        lines = [f"Your plan ({plan['id']}): {plan['goal']}"]
        for step in plan["steps"]:
            came = step["error"] or step["result"]
            lines.append(
                f"[{_MARKS[step['state']]}] {step['number']}. {step['action']}"
                + (f": {came}" if came else "")
            )
        current = next((one for one in plan["steps"] if one["state"] == "open"), None)
        return "\n".join(lines), (plan["id"], str(current["number"]) if current else "")

    async def finish(self, run: AgentRun, steps: Sequence[Mapping[str, Any]]) -> None:
        """With the run: how its plan stands, with the calls of each step; where it made none, its rounds are the plan."""
        found = await self.find(run.persona, run.conversation, 1)
        mine = next((one for one in found if one["run"] == run.id), None)
        if mine is None:
            mine = await self._from_rounds(run, steps)
        else:
            await self._link(mine)
        if mine is not None:
            mine["result"] = run.answer[:2000]
            if mine["state"] == "open":
                mine["state"] = "done" if run.state == "done" else "failed"
            await self._keep(mine)
        ended = {
            "state": run.state,
            "reason": run.reason[:SHORT],
            "spent": run.spent,
            "answer": run.answer[:2000],
        }
        await self.snapshot(run, "ended", ended)

    async def _from_rounds(self, run: AgentRun, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        results = [step["body"] for step in steps if step["kind"] == "result"]
        if not results:
            return None
        said = {step["body"]["turn"]: step["body"] for step in steps if step["kind"] == "reply"}
        rounds = sorted({body["round"] for body in results})[:MOST_STEPS]
        wanted = [
            {
                "action": ", ".join(body["tool"] for body in results if body["round"] == number),
                "expected": said.get(number, {}).get("text", ""),
            }
            for number in rounds
        ]
        plan = await self.make(run.persona, run.question, wanted, run.conversation, run.id)
        for step, number in zip(plan["steps"], rounds, strict=True):
            mine = [body for body in results if body["round"] == number]
            failed = [body for body in mine if not body["ok"]]
            step |= {
                "state": "failed" if len(failed) == len(mine) else "done", "result": mine[-1]["text"][:SHORT],
                "error": failed[0]["text"][:SHORT] if failed else "",
                "seconds": round(sum(body["ms"] for body in mine) / 1000, 3),
                "calls": [body["call"] for body in mine if body["call"]],
            }  # fmt: skip
        plan["state"] = "open"
        return plan

    async def _link(self, plan: dict[str, Any]) -> None:
        """The calls that carried the plan's id, from the ledger."""
        from toolgate.ledger.state import parsed
        from toolgate.storage.port import Filter

        wanted = Filter(
            conversation=plan["conversation"], kinds=("started", "denied"), newest_first=True, limit=1000
        )
        for row in reversed(await self._context.gate.events(wanted)):
            words = parsed(row).get("trail", {})
            if words.get("plan") == plan["id"]:
                for step in plan["steps"]:
                    if str(step["number"]) == words.get("step") and row.call not in step["calls"]:
                        step["calls"].append(row.call)

    # --- states -------------------------------------------------------------------------------------------

    async def snapshot(self, run: AgentRun, kind: str, body: Mapping[str, Any]) -> None:
        """How the persona stood at a moment of its run."""
        tables = await self._context.tables()
        await tables.execute(
            "INSERT INTO agent_states (id, persona, conversation, run, body, at) VALUES (?, ?, ?, ?, ?, ?)",
            new_id("s"), run.persona, run.conversation, run.id, json.dumps({"kind": kind, **body}), self._now,
        )  # fmt: skip

    async def states(
        self, persona: str = "", conversation: str = "", limit: int = 50
    ) -> list[dict[str, Any]]:
        tables = await self._context.tables()
        rows = await tables.fetch(
            """SELECT * FROM agent_states WHERE (persona = ? OR ? = '') AND (conversation = ? OR ? = '')
               ORDER BY at DESC, id DESC LIMIT ?""",
            persona, persona, conversation, conversation, limit,
        )  # fmt: skip
        return [{**row, "body": json.loads(row["body"])} for row in rows]


def _plan(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "steps": json.loads(row["steps"])}
