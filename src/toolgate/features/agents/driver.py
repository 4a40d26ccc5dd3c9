"""Driver of one run: asks the model, makes the calls through the gate, records each step before the next.

What was recorded is sent to the loop again, so a run that was killed goes on where it was. A call has the key
`run/round/index`: the gate gives back what the first attempt gave and never runs it twice. A call whose effect is unknown
is told to the model as that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from toolgate.agents.budget import RunBudget
from toolgate.agents.composition import EarlierResults, any_refers
from toolgate.agents.loop import (
    Answered,
    AskModel,
    CallTools,
    RunEnding,
    Step,
    Task,
    ToolAnswer,
    ToolsAnswered,
    loop,
)
from toolgate.agents.models import Model, ModelRequest
from toolgate.agents.wires import Parsed, WireCall, WireFormat, wire
from toolgate.agents.wires.base import as_told
from toolgate.core.context import Trail
from toolgate.core.errors import CallError, Code, ToolgateError
from toolgate.core.functions import ToolSpecs
from toolgate.core.result import Meta, Result
from toolgate.features.agents.step_bodies import not_run, parsed_reply, result_body, spent_on
from toolgate.features.agents.store import AgentRun, RunStore
from toolgate.gate.stored import claim_of
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.facade import Gate

AT_ONCE = 8
"""Calls that only read and stand in one reply, made together."""
REASON = 500
MALFORMED = frozenset({Code.INVALID_ARGS.value, Code.UNKNOWN_TOOL.value, Code.OUTSIDE_MOUNT.value})
HELPER = "ai.ask"
NO_TOOLS = ToolSpecs()

Listener = Callable[[str, AgentRun, Mapping[str, Any]], None]
"""Told what happens, as it happens: `reply`, `words`, `call`, `result`, `waiting`, `helper`, `end`."""


def nobody(kind: str, run: AgentRun, body: Mapping[str, Any]) -> None:
    return None


class Waiting(Exception):
    """A human has to answer before the run goes on."""

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question


@dataclass(frozen=True, slots=True)
class Active:
    """The call that a tool of ours is serving, where a run makes it."""

    run: AgentRun
    key: str
    budget: RunBudget


ACTIVE: ContextVar[Active | None] = ContextVar("toolgate_run", default=None)


@dataclass
class Drive:
    """Everything that driving one run needs."""

    gate: Gate
    store: RunStore
    run: AgentRun
    model: Model
    budget: RunBudget
    standing: Callable[[AgentRun], Any]
    """Plan and open questions of the run, as text, and the plan's id and step."""
    helper: Callable[[AgentRun, str, Any], Any]
    """Drives a helper to its end and gives its run back."""
    listen: Listener = nobody
    summarize: Callable[[AgentRun, RunBudget, Mapping[str, Any], bool], Awaitable[dict[str, Any]]] | None = (
        None
    )
    """What a small model makes of a long result, where one is configured."""
    attended: bool = False
    """Whether a question is waited for here; else the run is put aside until it is answered."""
    number: int = 0
    replies: dict[int, dict[str, Any]] = field(default_factory=dict)
    results: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    resumed: bool = False
    plan: tuple[str, str] = ("", "")
    stands: str | None = None
    """How the plan stood when it was last asked for."""
    specs: ToolSpecs = NO_TOOLS
    hidden: Sequence[str] = ()
    question: str = ""
    """What a human is asked at this moment."""
    waited: float = 0.0
    """Seconds that a human has taken to answer about the call at hand: they are not the run's."""

    async def go(self) -> RunEnding:
        await self._recorded()
        begun = self.run.settings["begun"]
        task = Task(
            begun["system"], self.run.question, begun["history"], begun["rounds"], begun["context_tokens"]
        )
        spoken, self.specs = wire(begun["wire"]), self.gate.tools(self.run.persona)
        self.hidden = sorted(set(self.gate.tool_names()) - {spec.name for spec in self.specs})
        running = loop(task, spoken)
        step: Step = next(running)
        while True:
            sent = await (self._ask(step, spoken) if isinstance(step, AskModel) else self._call(step))
            try:
                step = running.send(sent)
            except StopIteration as end:
                ending: RunEnding = end.value
                return ending

    async def _recorded(self) -> None:
        steps = await self.store.steps(self.run.id)
        self.number = len(steps)
        for step in steps:
            body = step["body"]
            if step["kind"] == "reply":
                self.replies[body["turn"]] = body
            elif step["kind"] == "result":
                self.results[body["round"], body["index"]] = body
        self.resumed = bool(self.run.settings.get("resumed"))

    async def _keep(self, kind: str, body: Mapping[str, Any]) -> None:
        await self.store.step(self.run, self.number, kind, body)
        self.number += 1

    # --- the model ----------------------------------------------------------------------------------------

    async def _ask(self, step: AskModel, spoken: WireFormat) -> Answered:
        body = self.replies.get(step.turn)
        if body is None:
            over = self.budget.over(calls=not step.final)
            if over:  # a helper or an earlier step used it up: nothing more is asked
                return Answered(Parsed(), {"role": "assistant", "content": ""}, over)
            try:
                body = await self._ask_now(step, spoken)
            except ToolgateError as error:
                if not step.spare:
                    raise
                return Answered(Parsed(), {"role": "assistant", "content": ""}, error.message)
            await self._keep("reply", body)
            self.listen("reply", self.run, body)
        return Answered(parsed_reply(body), body["message"], body["over"])

    async def _ask_now(self, step: AskModel, spoken: WireFormat) -> dict[str, Any]:
        turn = self.run.settings.get("offset", 0) + step.turn
        request = ModelRequest(step.messages, self.specs, self.hidden, self.run.persona, turn, step.final)
        began = time.monotonic()
        reply = await self.model.ask(request, lambda text: self.listen("words", self.run, {"text": text}))
        took = time.monotonic() - began
        self.budget.spent.add(spent_on(reply, took))
        parsed = reply.parsed
        calls = [] if step.final else [asdict(call) for call in parsed.calls]
        made = {
            "turn": step.turn, "text": parsed.text, "calls": calls, "message": spoken.assistant(parsed),
            "errors": [asdict(error) for error in parsed.errors], "requests": parsed.requests,
            "model": reply.model, "input": reply.usage.input, "output": reply.usage.output,
            "usd": reply.usage.usd, "seconds": round(took, 4), "over": self._over_after(parsed),
        }  # fmt: skip
        clean: dict[str, Any] = self.gate.redact(made)
        return clean

    def _over_after(self, parsed: Parsed) -> str:
        """A reply that calls nothing is the answer, whatever it cost."""
        return self.budget.over() if parsed.calls or parsed.errors else ""

    # --- the tools ----------------------------------------------------------------------------------------

    async def _call(self, step: CallTools) -> ToolsAnswered:
        step = replace(step, calls=[self._meant(call) for call in step.calls])
        bodies = self._bodies(step)
        if bodies is None:
            said = self.replies.get(step.round, {}).get("text", "")
            if self._together(step.calls):
                await self._all_at_once(step, said)
            else:
                await self._in_order(step, said)
            bodies = self._bodies(step)
            assert bodies is not None
        answers = [
            ToolAnswer(body["text"], body["ok"], body["stop"], body["code"] in MALFORMED and not body["note"])
            for body in bodies
        ]
        return ToolsAnswered(answers, bodies[-1]["standing"], bodies[-1]["over"])

    def _meant(self, call: WireCall) -> WireCall:
        """The call that one through `tools.call` stands for: that one decides what may run beside it."""
        tool = self.gate.tool(call.name)
        if tool is not None and tool.forwards is not None:
            with suppress(CallError):  # which the gate refuses in its turn
                name, args = tool.forwards(call.args)
                if (inner := self.gate.tool(name)) is None or inner.forwards is None:
                    return replace(call, name=name, args=dict(args))
        return call

    def _bodies(self, step: CallTools) -> list[dict[str, Any]] | None:
        """What came of all calls of a reply; None where one is missing."""
        found = [self.results.get((step.round, index)) for index in range(len(step.calls))]
        return [one for one in found if one is not None] if None not in found else None

    def _together(self, calls: Sequence[WireCall]) -> bool:
        """Where all only read, no two are alike and the budget has room for all: then their order means nothing."""
        most = self.budget.limits.calls
        if any_refers(calls) or (most and self.budget.spent.calls + len(calls) > most):
            return False
        alike = {(call.name, orjson.dumps(call.args, option=orjson.OPT_SORT_KEYS)) for call in calls}
        tools = [self.gate.tool(call.name) for call in calls]
        return len(calls) > 1 and len(alike) == len(calls) and all(
            tool is not None and not tool.effects.writes and tool.name != HELPER and tool.effects_of is None
            and tool.forwards is None
            for tool in tools
        )  # fmt: skip

    async def _all_at_once(self, step: CallTools, why: str) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(index: int) -> dict[str, Any]:
            async with turns:
                return await self._make(step, index, why)

        wanted = [index for index in range(len(step.calls)) if (step.round, index) not in self.results]
        made = await asyncio.gather(*map(one, wanted), return_exceptions=True)
        for body in made:
            if isinstance(body, dict):
                await self._keep_result(body, len(step.calls))
        for body in made:
            if isinstance(body, BaseException):
                raise body

    async def _in_order(self, step: CallTools, why: str) -> None:
        refused = ""
        for index, call in enumerate(step.calls):
            body = self.results.get((step.round, index))
            if body is None:
                if refused:
                    body = not_run(step.round, index, call.name, refused)
                elif (over := self.budget.over()) and index:
                    body = not_run(step.round, index, call.name, f"the budget is used up ({over})")
                else:
                    body = await self._make(step, index, why)
                await self._keep_result(body, len(step.calls))
            if body["refused"]:
                refused = f"{call.name} before it was refused"

    async def _keep_result(self, body: dict[str, Any], count: int) -> None:
        """The last one of a reply also says how the run stands after it."""
        if body["index"] == count - 1:
            if self.stands is None or any(
                one["tool"].startswith("plan.") for one in (body, *self._of(body["round"]))
            ):
                self.stands, self.plan = await self.standing(self.run)
            body["standing"], body["over"] = self.stands, self.budget.over()
        await self._keep("result", body)
        self.results[body["round"], body["index"]] = body
        self.listen("result", self.run, body)

    def _of(self, number: int) -> list[dict[str, Any]]:
        return [body for (one, _), body in self.results.items() if one == number]

    async def _make(self, step: CallTools, index: int, why: str) -> dict[str, Any]:
        call = step.calls[index]
        key = f"{self.run.id}/{step.round}/{index}"
        composed = any_refers(step.calls)
        began = time.monotonic()
        try:
            call = replace(call, args=self._earlier(step).fill(call.args)) if composed else call
        except CallError as error:
            result = await self.gate.refuse(call.name, call.args, self.run.persona, error)
            return result_body(step.round, index, result, self.gate.rendered(result, call.args), "")
        self.listen(
            "call", self.run, {"tool": call.name, "args": call.args, "round": step.round, "index": index}
        )
        result = await self._through_the_gate(call, key, why, f"{step.round}.{index}")
        if call.name == HELPER or result.tool == HELPER:
            result = await self._with_helper(result)
        self.budget.spent.calls += 1
        if result.tool != HELPER:  # whose own steps were counted
            self.budget.spent.seconds += max(time.monotonic() - began - self.waited, 0)
        self.waited = 0.0
        text = as_told(result, self.gate.rendered(result, call.args))
        body = result_body(step.round, index, result, text, await self._rule(result))
        if self.summarize is not None and result.ok:
            body |= await self.summarize(
                self.run, self.budget, body, "data.read" in {spec.name for spec in self.specs}
            )
        return body | {"data": result.data} if composed else body

    def _earlier(self, step: CallTools) -> EarlierResults:
        """What the calls before it in the same reply gave, for arguments that refer to it."""
        earlier = EarlierResults(step.calls)
        for index in range(len(step.calls)):
            if body := self.results.get((step.round, index)):
                earlier.add(index, body["ok"], body.get("data"))
        return earlier

    async def _through_the_gate(self, call: WireCall, key: str, why: str, action: str) -> Result:
        if self.resumed and (known := await self._ran_long_ago(key)) is not None:
            return known
        trail = Trail(
            conversation=self.run.conversation, transaction=self.run.id, action=action, plan=self.plan[0],
            step=self.plan[1], reason=(call.reason or why)[:REASON], run=self.run.settings.get("circle") or self.run.root,
        )  # fmt: skip
        token = ACTIVE.set(Active(self.run, key, self.budget))
        try:
            while True:
                result = await self.gate.pipeline.call(
                    call.name, call.args, self.run.persona, key=key, trail=trail, wait=False, own_key=True
                )
                if result.error is None or result.error.code is not Code.PENDING:
                    return result
                question = str((result.data or {}).get("question", ""))
                await self._wait_for(question)
        finally:
            ACTIVE.reset(token)

    async def _ran_long_ago(self, key: str) -> Result | None:
        """The gate forgets results after two days, the journal does not forget that it ran."""
        known = await claim_of(self.gate.services.ledger, self.run.persona, key)
        if known is None or known.live or known.state in ("failed", "not"):
            return None
        told = f"it was made before ({known.call}, {known.state}), and its result is no longer kept; it is not run again"
        return Result.refused(
            "", CallError(told, "look at what it did, and go on from there"), Meta(known.call)
        )

    async def _rule(self, result: Result) -> str:
        """Which line of policy refused the call, or had the human asked who did."""
        if result.error is None or not isinstance(result.data, dict):
            return ""
        if question := result.data.get("question"):
            rows = await self.gate.events(Filter(ref=str(question), kinds=("asked",), limit=1))
            return str(parsed(rows[0]).get("rule", "")) if rows else ""
        return str(result.data.get("rule", ""))

    async def _wait_for(self, question: str) -> None:
        self.question = question
        self.listen("waiting", self.run, {"question": question})
        if not self.attended:
            raise Waiting(question)
        began = time.monotonic()
        with suppress(CallError):  # refused or expired: the call is repeated and hears of it
            await self.gate.answered(question)
        self.question = ""
        self.waited += time.monotonic() - began

    async def _with_helper(self, result: Result) -> Result:
        """What the helper found, once it has; until then the run waits for what its helper waits for."""
        ident = (result.data or {}).get("run", "") if result.ok and isinstance(result.data, dict) else ""
        if not ident:
            return result
        run = await self.helper(self.run, ident, self)
        if run.state == "waiting":
            raise Waiting(run.waiting)
        result.data = {
            "run": run.id, "persona": run.persona, "state": run.state, "answer": run.answer, "reason": run.reason,
        }  # fmt: skip
        return result
