"""Two gates on one database, one policy file, one clock, and somebody who answers questions."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml

import toolgate
from gates import KEYS, FixedClock, Witness, soon, toolset
from toolgate.core.result import Result
from toolgate.storage.port import Filter

from .judge import Approval, Grant, Judge

EXPIRES = 600


class World:
    def __init__(self, database: Any) -> None:
        """`database(root)` gives what `toolgate.open` takes, a new one for each gate."""
        self.root = Path(tempfile.mkdtemp(prefix="toolgate-promises-"))
        self.database = database
        self.clock, self.witness, self.judge = FixedClock(), Witness(), Judge()
        self.gates: dict[str, toolgate.Gate] = {}
        self._stacks: dict[str, AsyncExitStack] = {}
        self.waiting: list[tuple[str, asyncio.Task[Result], dict[str, Any]]] = []
        self.pending: dict[str, dict[str, Any]] = {}
        """Calls that were handed back, by question: how to make them again."""
        self.rewritten = 0
        self.policy("ask")

    async def open(self, name: str) -> None:
        stack = AsyncExitStack()
        opened = toolgate.open(
            self.root, config=self.root / "policy.yaml", database=self.database(self.root),
            tools=toolset(self.witness, self.root), clock=self.clock, keys=KEYS,
        )  # fmt: skip
        self.gates[name] = await stack.enter_async_context(opened)
        self._stacks[name] = stack

    async def close(self, name: str) -> None:
        """As a process ends: whoever waits in it is gone."""
        for task in [task for owner, task, _ in self.waiting if owner == name]:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.waiting = [one for one in self.waiting if one[0] != name]
        del self.gates[name]
        await self._stacks.pop(name).aclose()

    async def end(self) -> None:
        for name in list(self.gates):
            await self.close(name)
        shutil.rmtree(self.root)

    # --- what happens -------------------------------------------------------------------------------------

    async def call(self, gate: str, wait: bool = False, **how: Any) -> Result | None:
        tool, args = how["tool"], how["args"]
        making = self.gates[gate].call(
            tool, args, persona=how["persona"], key=how["key"], conversation=how["conversation"], wait=wait
        )
        if not wait:
            result: Result = await soon(making)
            self._note_pending(result, how)
            return result
        task = asyncio.create_task(making)
        self.waiting.append((gate, task, how))
        await self._wake()
        return None

    def _note_pending(self, result: Result, how: dict[str, Any]) -> None:
        if result.error is not None and result.error.code == "pending":
            self.pending[str(result.data["question"])] = how

    async def _settled(self, task: asyncio.Task[Result], how: dict[str, Any]) -> None:
        """Until the call has ended or its question lies open; bounded, and harmless if it is cut short."""
        for _ in range(100):
            await asyncio.wait((task,), timeout=0.01)
            asked = [
                q
                for q in (await self.questions()).values()
                if (q.tool, q.persona) == (how["tool"], how["persona"])
            ]
            if task.done() or asked:
                return

    async def questions(self) -> dict[str, Any]:
        gate = next(iter(self.gates.values()))
        return {question.id: question for question in await gate.approvals()}

    async def answer(self, gate: str, ident: str, approve: bool, scope: dict[str, Any] | None) -> None:
        """The human reads the question as it is shown, and answers."""
        shown = (await self.questions())[ident]
        before = {grant.id for grant in await self.gates[gate].grants()}
        await self.gates[gate].answer(ident, "approve" if approve else "deny", scope=scope)
        if not approve:
            self.judge.refused.add(ident)
        else:
            self.judge.approvals[ident] = Approval(
                shown.tool, dict(shown.args), shown.persona, shown.digest, self.now + EXPIRES * 1_000_000, shown.rule
            )  # fmt: skip
            if scope is not None:
                made = {grant.id for grant in await self.gates[gate].grants()} - before
                self.judge.grants[made.pop()] = Grant(
                    shown.tool, shown.persona, scope.get("args", {}).get("x", {}).get("glob", ""),
                    tuple(scope.get("paths", ())), scope.get("conversation", ""), scope.get("uses", 0),
                    self.now + round(scope["seconds"] * 1_000_000),
                )  # fmt: skip
        await self._wake()

    async def _wake(self) -> None:
        for _, task, how in self.waiting:
            await self._settled(task, how)
        self.waiting = [one for one in self.waiting if not one[1].done()]

    async def time_passed(self) -> None:
        """Where somebody waits, what is due is said, so that he wakes; otherwise nobody notices."""
        if self.waiting:
            await next(iter(self.gates.values())).services.desk.sweep()
            await self._wake()

    def policy(self, mode: str) -> None:
        """Rewrite the policy file. The size differs each time, as it does when people write."""
        self.rewritten += 1
        rule = "asks-too" if mode == "ask too" else "asks"
        decision = "ask" if mode.startswith("ask") else mode
        rules: list[dict[str, Any]] = [
            {"name": "looks", "persona": "*", "tools": ["t.look"], "decision": "allow"}
        ]
        effects = {
            "name": rule,
            "persona": "*",
            "tools": ["t.act", "t.fail", "t.write"],
            "decision": decision,
        }
        config = {
            "version": 1,
            "personas": {"ada": {"description": "x" * self.rewritten}, "bob": {}},
            "consent": {"expires_s": EXPIRES, "max_open": 4},
            "policy": {"rules": [*rules, effects]},
        }
        text = (
            yaml.safe_dump(config) if mode != "broken" else "version: 1\npersonas: [" + " " * self.rewritten
        )
        file = self.root / "policy.yaml"
        draft = file.with_suffix(".new")
        draft.write_text(text)
        draft.replace(file)
        self.judge.mode, self.judge.rule = decision, f"rule:{rule}"

    # --- what must hold -----------------------------------------------------------------------------------

    async def check(self) -> None:
        if not self.gates:
            return
        for gate in self.gates.values():
            report = await gate.verify()
            assert report.ok, report
        gate = next(iter(self.gates.values()))
        rows = await gate.events(Filter(limit=1_000_000))
        self.judge.judge(self.witness.ran, rows)

    @property
    def now(self) -> int:
        return self.clock.now()
