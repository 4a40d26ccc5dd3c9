"""Consent inside the client: the user of an MCP client answers what the policy asks, in either era.

Handshake: the call waits while `elicitation/create` shows the question; console and terminal may be faster.
Stateless: the call is handed back as `input_required` with sealed state, and answered by its repetition.
A client that can do neither is told where to approve; the repeated call runs once that has happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace

from toolgate.consent.desk import whoami
from toolgate.core.call import new_id
from toolgate.core.context import NO_TRAIL
from toolgate.core.display import visible
from toolgate.core.errors import CallError, Code, Conflict, InvalidArgs, NotAllowed
from toolgate.core.ports import Question
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp import question as questions
from toolgate.faces.mcp import request_state as sealing
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import Exchange, Gone
from toolgate.gate.flow import Flow
from toolgate.gate.resolve import resolve

Progress = Callable[[float, str], None] | None
CHANNEL = "mcp"


@dataclass
class _Asking:
    """The client whose call is under way in this task, and whether its user put the question off."""

    by: Consent
    exchange: Exchange
    progress: Progress
    task: asyncio.Task[object]
    later: bool = False
    over: bool = False

    def put_off(self) -> None:
        """Stop waiting. The cancellation is ours, as that of `asyncio.timeout` is: whoever waits takes it back."""
        if not self.later and not self.over:
            self.later = True
            self.task.cancel()


_asking: ContextVar[_Asking | None] = ContextVar("toolgate_mcp_asking", default=None)


class Consent:
    """Also a channel of the desk: a question reaches it in the task of the call that asks."""

    name = CHANNEL
    answers = False
    """It hears of what must be answered elsewhere too, and then does not keep its client waiting."""

    def __init__(self, gate: Gate, console: str = "") -> None:
        self._gate = gate
        self._console = console
        gate.services.desk.channels.append(self)

    async def carry(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress
    ) -> Result | Message:
        """The call's result, or in the stateless era the question that comes before it."""
        willing = exchange.can_elicit and self._gate.config.consent.mcp
        if exchange.modern:
            return await self._stateless(exchange, tool, args, progress, willing)
        key = None
        if willing:
            # what leads to another call is done when that one is put off, and must not be done again
            key = new_id("m") if self._leads_on(tool) else None
            result = await self._waiting(exchange, tool, args, progress, key)
            if result is not None:
                return result
        return self._where(await self._call(exchange, tool, args, progress, wait=False, key=key))

    async def within(self, exchange: Exchange, tool: str, args: Message) -> Result:
        """A call that comes of another one of this client's, which goes on meanwhile: so it waits for an answer, in
        the client or elsewhere. In a task of its own: what that other call asks is not asked here."""
        _asking.set(None)
        if exchange.can_elicit and exchange.can_be_asked and self._gate.config.consent.mcp:
            result = await self._waiting(exchange, tool, args, None, None)
            if result is not None:
                return result
        return await self._call(exchange, tool, args, None, wait=True)

    def _leads_on(self, tool: str) -> bool:
        try:
            return self._gate.services.registry.resolve(tool).follow is not None
        except CallError:
            return False

    async def _call(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, *, wait: bool, key: str | None = None
    ) -> Result:  # fmt: skip
        return await self._gate.call(
            tool, args, persona=exchange.persona, wait=wait, progress=progress, key=key
        )

    def _where(self, result: Result) -> Result:
        """Say where a human can approve, if we know a better place than the command line."""
        error = result.error
        if error is None or error.code is not Code.PENDING or not self._console:
            return result
        return replace(result, error=replace(error, fix=f"{error.fix}; the console is at {self._console}"))

    # --- the handshake era --------------------------------------------------------------------------------

    async def _waiting(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, key: str | None
    ) -> Result | None:
        """None if the user put it off: then its question stays open."""
        task = asyncio.current_task()
        assert task is not None
        asking = _Asking(self, exchange, progress, task)
        token, before = _asking.set(asking), task.cancelling()
        try:
            result = await self._call(exchange, tool, args, progress, wait=True, key=key)
        except asyncio.CancelledError:
            if not asking.later or task.uncancel() > before:
                raise  # the client has cancelled it, or gone
            return None
        finally:
            asking.over = True
            _asking.reset(token)
        if asking.later:
            task.uncancel()
        return result

    async def ask(self, question: Question) -> None:
        """Called by the desk; cancelled as soon as somebody else has answered."""
        asking = _asking.get()
        if asking is None or asking.by is not self:
            return  # not a call of one of our clients
        if not self._may_ask(question):
            asking.put_off()
            return
        if asking.progress is not None:
            asking.progress(0.0, "waiting for approval")
        try:
            given = await asking.exchange.ask("elicitation/create", questions.form(question))
        except Gone:
            given = None
        said = questions.answer(given)
        if said is None:
            asking.put_off()
            return
        with suppress(Conflict):  # somebody else was first: the desk tells the call
            await self._answer(question, said, asking.exchange)

    def _may_ask(self, question: Question) -> bool:
        here = not question.channels or CHANNEL in question.channels
        return here and questions.fits(question)

    async def _answer(self, question: Question, said: tuple[bool, str], exchange: Exchange) -> None:
        approve, reason = said
        client = visible(exchange.client) or "an MCP client"
        await self._gate.answer(
            question.id, "approve" if approve else "deny", reason=reason, by=f"{whoami()} in {client}", channel=CHANNEL
        )  # fmt: skip

    # --- the stateless era --------------------------------------------------------------------------------

    async def _stateless(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, willing: bool
    ) -> Result | Message:
        params = exchange.params
        answered = params.get("requestState") is not None or params.get("inputResponses") is not None
        if answered:
            try:
                await self._take(exchange, tool, args)
            except CallError as error:
                return await self.refuse(exchange, tool, args, error)
        result = await self._call(exchange, tool, args, progress, wait=False)
        if result.error is None or result.error.code is not Code.PENDING:
            return result
        question = await self._gate.services.desk.question(result.data["question"])
        if not willing or answered or question is None or not self._may_ask(question):
            return self._where(result)
        request = sealing.request_hash(tool, args)
        return {
            "resultType": "input_required",
            "inputRequests": {
                questions.ANSWER: {
                    "method": "elicitation/create", "params": {"mode": "form", **questions.form(question)},
                }
            },
            "requestState": sealing.seal(self._gate.services.ledger.keys, question, exchange.persona, request),
        }  # fmt: skip

    async def _take(self, exchange: Exchange, tool: str, args: Message) -> None:
        """The user's answer to the question that the state names. Only what we sealed for this call counts, once."""
        if not self._gate.config.consent.mcp:
            raise NotAllowed(
                "this gate takes no answers from MCP clients", "answer with `toolgate approvals`"
            )
        ledger = self._gate.services.ledger
        request = sealing.request_hash(tool, args)
        claim = sealing.unseal(
            ledger.keys, exchange.params.get("requestState"), exchange.persona, request, ledger.clock.now()
        )
        question = await self._gate.services.desk.question(claim.question)
        if question is None or question.digest != claim.digest or question.persona != exchange.persona:
            raise Conflict(
                f"the question {claim.question} was answered and used, or has expired", "make the call again"
            )
        responses = exchange.params.get("inputResponses")
        if responses is not None and not isinstance(responses, dict):
            raise InvalidArgs("inputResponses is not an object", "answer under the keys of inputRequests")
        said = questions.answer((responses or {}).get(questions.ANSWER))
        if said is not None and question.state == "open":
            with suppress(Conflict):  # somebody else was first: the gate knows what they said
                await self._answer(question, said, exchange)

    async def refuse(self, exchange: Exchange, tool: str, args: Message, error: CallError) -> Result:
        """Nothing runs, and the attempt is in the ledger."""
        flow = Flow(tool, args, exchange.persona, None, NO_TRAIL, False, new_id("c"))
        with suppress(CallError):
            late = resolve(self._gate.services, flow)
            if late is not None:
                late.close()  # for an attempt no server is asked whether it knows that tool
        return flow.refused(error, await self._gate.pipeline.refusals.record(flow, error))
