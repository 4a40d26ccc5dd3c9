"""Runs: a persona gets a question, works on it with tools through the gate, and answers. Started, resumed, listed here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from toolgate.agents import wires
from toolgate.agents.budget import RunBudget, RunLimits, RunSpending, tightest
from toolgate.core.call import new_id
from toolgate.core.clock import SECOND
from toolgate.core.errors import CallError, Conflict, InvalidArgs, NotAllowed, ToolgateError
from toolgate.core.names import HUMAN
from toolgate.features.agents.conversations import Conversations, Said
from toolgate.features.agents.driver import Drive, Listener, Waiting, nobody
from toolgate.features.agents.effectiveness import Effectiveness
from toolgate.features.agents.making import Models
from toolgate.features.agents.plans import Plans
from toolgate.features.agents.rooms import Rooms
from toolgate.features.agents.step_bodies import recorded_spending
from toolgate.features.agents.store import AgentRun, RunStore
from toolgate.features.agents.summaries import Summaries

if TYPE_CHECKING:
    from toolgate.agents.loop import RunEnding
    from toolgate.facade import Gate
    from toolgate.feature import FeatureContext
    from toolgate.storage.tables import Tables

log = logging.getLogger("toolgate.agents")
DAY = 86_400 * SECOND
LONGEST_QUESTION = 100_000


class Runs:
    def __init__(self, context: FeatureContext) -> None:
        self._context = context
        self.gate = context.gate
        services = context.gate.services
        self.store = RunStore(self._tables, services.owners, services.ledger.clock.now)
        self.plans = Plans(context)
        self.models = Models(context)
        self.rooms = Rooms(context, self)
        self.effectiveness = Effectiveness(context)
        self.summaries = Summaries(context, self.models)
        self.conversations = Conversations(context, self.store)
        self._budgets: dict[str, RunBudget] = {}
        self._relaxed: Tables | None = None

    async def _tables(self) -> Tables:
        """A step that is lost with the power is made again: a reply is asked for once more, and of a call the gate gives
        back what it gave."""
        tables = await self._context.tables()
        if self._relaxed is not tables:
            await tables.relax()
            self._relaxed = tables
        return tables

    @property
    def spec(self) -> Any:
        return self._context.section("agents")

    # --- beginning ----------------------------------------------------------------------------------------

    async def start(
        self, question: str, *, persona: str = "", model: str = "", conversation: str = "",
        limits: RunLimits | None = None, history: Sequence[Mapping[str, Any]] = (), room: str = "", rounds: int = 0,
        offset: int = 0, more: str = "", circle: str = "", ident: str = "", root: str = "", session: str = "",
    ) -> AgentRun:  # fmt: skip
        """Put a run on record; `drive` makes it go."""
        who = persona or self.gate.config.default_persona or ""
        question = str(self.gate.redact(question))  # no value of the vault goes to a model, or into a table
        self._check(who, question)
        ident = ident or new_id("r")
        run = AgentRun(
            ident, who, question, root=root or ident, conversation=conversation or ident, room=room,
            model=model or self.models.of(who),
        )  # fmt: skip
        budget = tightest(_limits(self.spec.budget), limits or RunLimits())
        run.settings = {"limits": asdict(budget), "offset": offset, "depth": 0, "circle": circle}
        if session:
            run.settings["session"] = session
        return await self._begin(run, history, rounds, more)

    async def talk(self, words: str, conversation: str, *, persona: str = "", **more: Any) -> AgentRun:
        """Put the next question of a conversation on record, with what its session holds so far."""
        said: Said = await self.conversations.said(persona, conversation)
        return await self.start(
            words, persona=persona, conversation=conversation, history=said.messages, offset=said.asks,
            session=said.session, **more,
        )  # fmt: skip

    async def help(self, parent: AgentRun, persona: str, question: str, key: str) -> AgentRun:
        """A helper of a run: the same budget, and no right that its parent lacks. One for each call that asks for it."""
        self._check(persona, question)
        self.check_lineage(parent.persona, persona)
        depth = parent.settings.get("depth", 0) + 1
        if depth > self.spec.depth:
            raise NotAllowed(
                f"helpers may be {self.spec.depth} deep, and this would be {depth}", "do it yourself",
                data={"rule": "agents:depth"},
            )  # fmt: skip
        ident = f"{parent.id}.{key.split('/', 1)[1].replace('/', '-')}"
        known = await self.store.find(ident)
        if known is not None:
            return known
        run = AgentRun(
            ident, persona, question, root=parent.root, parent=parent.id, conversation=parent.conversation,
            room=parent.room, model=self.models.of(persona),
        )  # fmt: skip
        run.settings = {**parent.settings, "depth": depth, "offset": 0}
        return await self._begin(run, (), 0, "")

    def check_lineage(self, caller: str, helper: str) -> None:
        """A helper is the caller itself or descends from it: policy bounds it by everybody in its line."""
        policy = self.gate.policy
        line = {name: {one.name for one in policy.line(name)} for name in policy.personas}
        if caller not in line.get(helper, ()):
            mine = [name for name, above in line.items() if caller in above]
            raise NotAllowed(
                f"{helper[:80]} is no subagent of {caller}", f"ask one of: {', '.join(mine)}",
                data={"rule": "agents:lineage"},
            )  # fmt: skip

    async def _begin(
        self, run: AgentRun, history: Sequence[Mapping[str, Any]], rounds: int, more: str
    ) -> AgentRun:
        spec = self.models.spec(run.model)
        wire = self.models.wire(run.model)
        hint = await self.effectiveness.hint(
            run.persona, (spec.name for spec in self.gate.tools(run.persona))
        )
        system = "\n\n".join(
            part
            for part in (self.spec.roles.get(run.persona, ""), more, self._prompt(run.persona, wire), hint)
            if part
        )
        run.settings["begun"] = {
            "system": system, "history": list(history), "rounds": rounds or self.spec.rounds, "wire": wire,
            "context_tokens": spec.context_tokens,
        }  # fmt: skip
        await self.store.add(run)
        await self.plans.snapshot(run, "begun", {"question": run.question[:2000], "model": run.model})
        return run

    def _prompt(self, persona: str, wire: str) -> str:
        return wires.wire(wire).prompt(self.gate.tools(persona))

    def _check(self, persona: str, question: str) -> None:
        if persona == HUMAN or persona not in self.gate.policy.personas:
            raise InvalidArgs(
                f"{persona[:80]!r} is no persona that can run", f"name one of: {self.gate.policy.listed()}"
            )
        if not question.strip() or len(question) > LONGEST_QUESTION:
            raise InvalidArgs(
                f"the question has {len(question):,} characters", f"say it in 1 to {LONGEST_QUESTION:,}"
            )

    # --- going on -----------------------------------------------------------------------------------------

    async def drive(self, run: AgentRun, listen: Listener = nobody, *, attended: bool = False) -> AgentRun:
        """Until it ends, or until it waits for a human and nobody here is one."""
        budget = await self._budget(run)
        before, drive = replace(budget.spent), None
        try:
            drive = Drive(
                self.gate, self.store, run, self.models.get(run.model), budget, self.plans.standing, self._helper,
                listen, self.summaries.of_result if self.spec.summary is not None else None, attended,
            )  # fmt: skip
            ending = await drive.go()
        except Waiting as wait:
            run.state, run.waiting, run.reason = "waiting", wait.question, "a human is asked"
            await self._keep(run, budget, before, let_go=True)
            return run
        except asyncio.CancelledError:
            run.state, run.reason = "waiting", "it was interrupted"
            run.waiting = drive.question if drive is not None else ""
            with suppress(ToolgateError):
                await asyncio.shield(self._keep(run, budget, before, let_go=True))
            raise
        except ToolgateError as error:
            if isinstance(error, Conflict) and "driven by another" in error.message:
                raise
            run.state, run.reason = "failed", f"{error.message}" + (f"; {error.fix}" if error.fix else "")
            await self._keep(run, budget, before, let_go=True)
            await self._told_ledger(run)
            listen("end", run, {})
            return run
        except Exception as error:
            log.exception("the run %s failed", run.id)
            run.state, run.reason = (
                "failed",
                f"toolgate itself failed: {type(error).__name__}; the trace is in the log",
            )
            await self._keep(run, budget, before, let_go=True)
            listen("end", run, {})
            return run
        await self._end(run, ending, budget, before)
        listen("end", run, {})
        return run

    async def _end(self, run: AgentRun, ending: RunEnding, budget: RunBudget, before: RunSpending) -> None:
        run.state, run.answer, run.reason, run.waiting = ending.state, ending.answer, ending.reason, ""
        spoken = wires.wire(run.settings["begun"]["wire"])
        if spoken.native and wires.parse(run.answer, "leaked", self.gate.tool_names()).calls:
            run.reason = f"the answer looks like a call written as text: try `wire: leaked` or `wire: xml` for the model {run.model}"
        await self._keep(run, budget, before, let_go=True)
        steps = await self.store.steps(run.id)
        await self.plans.finish(run, steps)
        await self.effectiveness.record(run, steps)
        if run.state in ("budget", "stopped"):
            await self._told_ledger(run)

    async def _told_ledger(self, run: AgentRun) -> None:
        """Why a run did not come to its own end is on record, beside the calls that led there."""
        data = {"run": run.id, "persona": run.persona, "state": run.state, "spent": run.spent}
        await self._context.tell(f"the run {run.id} ended: {run.state}: {run.reason}"[:2000], data)

    async def _keep(self, run: AgentRun, budget: RunBudget, before: RunSpending, *, let_go: bool) -> None:
        run.spent = _own(run, budget.spent, before)
        run.reason = str(self.gate.redact(run.reason))  # a provider's error may repeat what it was sent
        await self.store.keep(run, let_go=let_go)
        if run.root == run.id and run.ended:
            self._budgets.pop(run.root, None)

    async def resume(self, ident: str, listen: Listener = nobody, *, attended: bool = False) -> AgentRun:
        """Go on with a run that waits or whose process is gone. Of two who try, one does."""
        return await self.drive(await self.take_up(ident), listen, attended=attended)

    async def take_up(self, ident: str) -> AgentRun:
        run = await self.store.take(ident)
        run.state, run.waiting, run.settings["resumed"] = "running", "", True
        whole = [one.id for one in await self.store.family(run.root) if f"{one.id}.".startswith(f"{ident}.")]
        run.spent = (await self._recorded(whole)).as_dict()  # a process that was killed did not say
        return run

    async def _recorded(self, idents: Iterable[str]) -> RunSpending:
        spent = RunSpending()
        for ident in idents:
            for step in await self.store.steps(ident):
                spent.add(recorded_spending(step))
        return spent

    async def _helper(self, parent: AgentRun, ident: str, drive: Drive) -> AgentRun:
        run = await self.store.get(ident)
        if run.ended:
            return run
        if run.holder != self.gate.services.owners.me:
            run = await self.take_up(ident)
        drive.listen("helper", run, {"parent": parent.id})
        return await self.drive(run, drive.listen, attended=drive.attended)

    async def _budget(self, run: AgentRun) -> RunBudget:
        """One for the whole family, counted from what was recorded where this process has not counted itself."""
        if run.root not in self._budgets:
            family = await self.store.family(run.root)
            spent = await self._recorded(member.id for member in family)
            self._budgets[run.root] = RunBudget(RunLimits(**run.settings["limits"]), spent)
        return self._budgets[run.root]

    async def cancel(self, ident: str) -> AgentRun:
        """End a run that waits."""
        run = await self.store.take(ident)
        run.state, run.reason = "cancelled", "a human ended it"
        await self.store.keep(run, let_go=True)
        return run

    async def go_on(self) -> None:
        """Beside the server: runs whose question was answered, and those whose process is gone, go on."""
        news = asyncio.Event()
        here = asyncio.get_running_loop()

        def hear(rows: Sequence[Any]) -> None:
            here.call_soon_threadsafe(news.set)

        await self.forget_old()
        end = self.gate.on_commit(hear)
        tasks: set[asyncio.Task[Any]] = set()

        def begin(work: Coroutine[Any, Any, Any]) -> None:
            task = asyncio.create_task(_quietly(work))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            while True:
                news.clear()
                for run in await self.store.newest(200, open_only=True):
                    if not run.parent and not run.room and await self.is_due(run):
                        begin(self.resume(run.id))
                for room in await self.rooms.due():
                    begin(self.rooms.drive(room))
                with suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await news.wait()
        finally:
            end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def is_due(self, run: AgentRun) -> bool:
        if run.waiting:
            return run.waiting not in await self.gate.open_questions()
        if run.state == "waiting":  # somebody interrupted it, and it is theirs to go on with
            return False
        return bool(run.holder) and await self.gate.services.owners.dead(run.holder)

    async def forget_old(self) -> int:
        """Ended runs are kept as long as `keep_days` says; the ledger keeps what they did."""
        return await self.store.forget(self.gate.now - self.spec.keep_days * DAY)


def same_user(gate: Gate, who: str, owner: str) -> bool:
    """Whether what belongs to one persona is shown to another. The human at the machine is everybody's."""
    return who == HUMAN or gate.user_of(owner) == gate.user_of(who)


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    with suppress(CallError):  # another process was faster, or it is on record why it failed
        await work


def _limits(spec: Any) -> RunLimits:
    return RunLimits(spec.tokens, spec.usd, spec.seconds, spec.calls)


def _own(run: AgentRun, now: RunSpending, before: RunSpending) -> dict[str, Any]:
    """What this run used while it was driven here, helpers included, on top of what it had used."""
    used = RunSpending(**{name: value - getattr(before, name) for name, value in asdict(now).items()})
    used.add(RunSpending(**{name: run.spent.get(name, 0) for name in asdict(used)}))
    return used.as_dict()


def open_agents(context: FeatureContext) -> Runs:
    return Runs(context)


def go_on(context: FeatureContext) -> Coroutine[Any, Any, None] | None:
    """Beside the server, where toolgate.yaml names a model: runs that a human answered go on."""
    runs: Runs | None = context.gate.feature("agents") if context.section("models") else None
    return runs.go_on() if runs is not None else None
