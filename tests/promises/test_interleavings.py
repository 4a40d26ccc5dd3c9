"""Whatever happens in whatever order: what ran had a live consent of exactly its digest, once, and the record agrees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sampling import fewer
from servers.postgres import Server
from toolgate.core.errors import CallError, Conflict, NotAllowed, NotFound
from toolgate.storage.postgres import PostgresBackend

from .judge import EFFECTFUL
from .world import EXPIRES, World

GATES = st.sampled_from(["one", "two"])
PERSONAS = st.sampled_from(["ada", "ada", "bob"])
KEYS = st.sampled_from([None, None, "k1", "k2"])
CONVERSATIONS = st.sampled_from(["", "c1"])
FILES = ("a.txt", "b.txt")
CALLS = st.one_of(
    st.tuples(st.sampled_from(["t.act", "t.act", "t.fail", "t.look"]), st.fixed_dictionaries({"x": st.sampled_from("pqr")})),
    st.tuples(
        st.just("t.write"), st.fixed_dictionaries({"path": st.sampled_from(FILES), "text": st.sampled_from(["m", "n"])})
    ),
)  # fmt: skip
SCOPES = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"seconds": st.sampled_from([30, 5000])},
        optional={
            "uses": st.sampled_from([1, 2]),
            "conversation": st.just("c1"),
            "args": st.sampled_from([{"x": {"glob": "p*"}}, {"x": {"glob": "[pq]"}}]),
            "paths": st.sampled_from([["a.*"], ["*.txt"]]),
        },
    ),
)


class Interleavings(RuleBasedStateMachine):
    def __init__(self, database: Any) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = self.loop.run_until_complete(self._made(database))

    async def _made(self, database: Any) -> World:
        return World(database)

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    def teardown(self) -> None:
        self.run(self.world.end())
        self.loop.close()

    @initialize()
    def both_gates_open(self) -> None:
        for name in ("one", "two"):
            self.run(self.world.open(name))

    # --- callers ------------------------------------------------------------------------------------------

    def _how(
        self, call: tuple[str, dict[str, Any]], persona: str, key: str | None, conversation: str
    ) -> dict[str, Any]:
        return {
            "tool": call[0],
            "args": call[1],
            "persona": persona,
            "key": key,
            "conversation": conversation,
        }

    @rule(gate=GATES, call=CALLS, persona=PERSONAS, key=KEYS, conversation=CONVERSATIONS)
    def call(self, gate: str, call: Any, persona: str, key: str | None, conversation: str) -> None:
        result = self.run(self.world.call(gate, **self._how(call, persona, key, conversation)))
        if self.world.judge.mode == "deny" and call[0] in EFFECTFUL:
            assert not result.ok or result.meta.cached

    @rule(gate=GATES, call=CALLS, persona=PERSONAS, key=KEYS, conversation=CONVERSATIONS, scope=SCOPES)
    @precondition(lambda self: self.world.judge.mode == "ask" and not self.world.judge.paused)
    def call_and_have_it_approved(
        self,
        gate: str,
        call: Any,
        persona: str,
        key: str | None,
        conversation: str,
        scope: dict[str, Any] | None,
    ) -> None:
        """The common course, up to the point where the call has to be made again."""
        result = self.run(self.world.call(gate, **self._how(call, persona, key, conversation)))
        if result.error is not None and result.error.code == "pending":
            self.run(self.world.answer(gate, result.data["question"], True, scope))

    @rule(
        gates=st.tuples(GATES, GATES, GATES, GATES), call=CALLS, key=KEYS, conversation=CONVERSATIONS, scope=SCOPES,
        meanwhile=st.sampled_from(["nothing", "time", "policy", "restart", "drift", "revoke", "pause", "other"]),
    )  # fmt: skip
    @precondition(lambda self: self.world.judge.mode == "ask" and not self.world.judge.paused)
    def have_it_approved_and_repeat_it_after_something_happened(
        self,
        gates: tuple[str, ...],
        call: Any,
        key: str | None,
        conversation: str,
        scope: Any,
        meanwhile: str,
    ) -> None:
        if meanwhile == "nothing":  # then the only thing that can stop it is that a grant is used up
            scope, key = {"seconds": 5000, "uses": 1}, None
        self.call_and_have_it_approved(gates[0], call, "ada", key, conversation, scope)
        self.every_promise_holds()
        self._meanwhile(meanwhile, gates[1])
        for gate in gates:
            self.run(self.world.call(gate, **self._how(call, "ada", key, conversation)))
            self.every_promise_holds()

    def _meanwhile(self, what: str, gate: str) -> None:
        world = self.world
        match what:
            case "time":
                self.time_passes(EXPIRES)
            case "policy":
                world.policy("ask too")
            case "restart":
                self.restart(gate)
            case "drift":
                for name in FILES:
                    self.somebody_else_changes_a_file(name, "other")
            case "pause":
                self.pause_or_resume(gate, "ada")
            case "other":
                self.run(world.call(gate, **self._how(("t.act", {"x": "s"}), "ada", None, "")))
            case "revoke":
                for ident in sorted(world.judge.grants):
                    self._revoke(gate, ident)

    @rule(gate=GATES, call=CALLS, persona=PERSONAS, key=KEYS)
    @precondition(lambda self: len(self.world.waiting) < 3)
    def call_and_wait(self, gate: str, call: Any, persona: str, key: str | None) -> None:
        self.run(self.world.call(gate, wait=True, **self._how(call, persona, key, "")))

    @rule(call=CALLS, key=KEYS, times=st.integers(2, 4))
    def call_everywhere_at_once(self, call: Any, key: str | None, times: int) -> None:
        how = self._how(call, "ada", key, "c1")

        async def together() -> None:
            gates = ["one", "two"] * times
            await asyncio.gather(*(self.world.call(gate, **how) for gate in gates[:times]))

        self.run(together())

    @rule(gate=GATES, choice=st.randoms(use_true_random=False))
    @precondition(lambda self: self.world.pending)
    def repeat_a_call_that_was_handed_back(self, gate: str, choice: Any) -> None:
        """And if nothing has changed since it was approved, it runs: a gate that never opens keeps every promise."""
        world, ident = self.world, choice.choice(sorted(self.world.pending))
        how = world.pending[ident]
        approval = world.judge.approvals.get(ident)
        must = (
            approval is not None
            and not approval.used
            and world.now < approval.expires
            and (world.judge.mode, world.judge.rule) == ("ask", approval.rule)
            and not world.judge.paused & {"", how["persona"]}
            and how["tool"] == "t.act"
            and how["key"] is None
            and not world.waiting
        )
        result = self.run(world.call(gate, **how))
        if must:
            assert result.ok, result

    # --- humans -------------------------------------------------------------------------------------------

    @rule(
        gate=GATES,
        choice=st.randoms(use_true_random=False),
        approve=st.sampled_from([True, True, False]),
        scope=SCOPES,
    )
    def answer(self, gate: str, choice: Any, approve: bool, scope: dict[str, Any] | None) -> None:
        questions = self.run(self.world.questions())
        if questions:
            self.run(
                self.world.answer(gate, choice.choice(sorted(questions)), approve, scope if approve else None)
            )

    @rule(gate=GATES, choice=st.randoms(use_true_random=False), approve=st.booleans())
    @precondition(lambda self: self.world.judge.approvals or self.world.judge.refused)
    def answer_what_is_answered(self, gate: str, choice: Any, approve: bool) -> None:
        """A second answer changes nothing, whatever it says."""
        judge = self.world.judge
        ident = choice.choice(sorted({*judge.approvals, *judge.refused}))
        with pytest.raises((Conflict, NotFound)):
            self.run(self.world.gates[gate].answer(ident, "approve" if approve else "deny"))

    @rule(gate=GATES, choice=st.randoms(use_true_random=False))
    @precondition(lambda self: self.world.judge.grants)
    def revoke(self, gate: str, choice: Any) -> None:
        self._revoke(gate, choice.choice(sorted(self.world.judge.grants)))

    def _revoke(self, gate: str, ident: str) -> None:
        try:
            self.run(self.world.gates[gate].revoke(ident))
        except NotFound:
            grant = self.world.judge.grants[ident]
            assert grant.revoked or grant.expires <= self.world.now
        self.world.judge.grants[ident].revoked = True

    @rule(
        mode=st.sampled_from(["ask too", "allow", "deny", "broken"]),
        back=st.sampled_from([True, True, False]),
    )
    def rewrite_the_policy(self, mode: str, back: bool) -> None:
        """Strange times end soon, mostly: most promises are about the time after them."""
        self.world.policy(
            "ask" if back and self.world.judge.rule + self.world.judge.mode != "rule:asksask" else mode
        )

    @rule(gate=GATES, persona=st.sampled_from(["", "ada", "bob"]))
    def pause_or_resume(self, gate: str, persona: str) -> None:
        paused = self.world.judge.paused
        persona = next(iter(sorted(paused)), persona)
        try:
            if persona in paused:
                self.run(self.world.gates[gate].resume(persona))
                paused.discard(persona)
            else:
                self.run(self.world.gates[gate].pause(persona))
                paused.add(persona)
        except (NotAllowed, CallError):
            assert self.world.judge.mode == "broken", (
                "only an unreadable policy keeps a pause from being said"
            )

    # --- the world ----------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 31, EXPIRES - 1, EXPIRES, EXPIRES + 1, 49 * 3600]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds)
        self.run(self.world.time_passed())

    @rule(seconds=st.sampled_from([1, 59]))
    def the_clock_is_set_back_a_little(self, seconds: int) -> None:
        self.world.clock.advance(-seconds)
        self.run(self.world.time_passed())
        self.world.clock.advance(seconds)

    @rule(name=st.sampled_from(FILES), content=st.sampled_from(["m", "other"]))
    def somebody_else_changes_a_file(self, name: str, content: str) -> None:
        (self.world.root / name).write_text(content)

    @rule(gate=GATES)
    @precondition(lambda self: self.world.judge.mode != "broken")
    def restart(self, gate: str) -> None:
        self.run(self.world.close(gate))
        self.run(self.world.open(gate))

    @invariant()
    def every_promise_holds(self) -> None:
        self.run(self.world.check())


def on_sqlite() -> Any:
    return lambda root: str(root / "ledger.db")


def on_postgres(server: Server) -> Any:
    """A database of its own for each example; its clock is ours, which stands still."""

    def made() -> Any:
        dsn = server.fresh_dsn()
        return lambda root: PostgresBackend(dsn, use_server_clock=False)

    return made


def interleave(databases: Any, examples: int, steps: int) -> None:
    """Without shrinking, which takes minutes here; whoever hunts a failure adds Phase.shrink."""
    run_state_machine_as_test(
        lambda: Interleavings(databases()),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        ),
    )  # fmt: skip


def test_every_interleaving_keeps_the_promise_on_sqlite() -> None:
    interleave(on_sqlite, examples=fewer(40, 10), steps=30)


def test_every_interleaving_keeps_the_promise_on_postgres(postgres_server: Server) -> None:
    interleave(on_postgres(postgres_server), examples=fewer(10, 3), steps=25)
