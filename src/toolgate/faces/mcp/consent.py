"""Consent inside the client: the user of an MCP client answers what the policy asks, in either era.

Handshake: the call waits while `elicitation/create` shows the question; console and terminal may be faster.
Stateless: the call is handed back as `input_required` with sealed state, and answered by its repetition.
A client that can do neither is told where to approve; the repeated call runs once that has happened. What draws a question
is imported when there is one: most calls of a client ask nothing, and it waits for the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolgate.consent.desk import whoami
from toolgate.core.call import new_id
from toolgate.core.display import visible
from toolgate.core.errors import CallError, Code, Conflict, InvalidArgs, NotAllowed
from toolgate.core.ports import Question
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.faces.mcp import request_state as sealing
from toolgate.faces.mcp.calling import reader
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import Exchange, Gone

if TYPE_CHECKING:
    from toolgate.core.caller import Caller
    from toolgate.faces.mcp.question import ClientAnswer, SessionGrant

Progress = Callable[[float, str], None] | None
CHANNEL = "mcp"


@dataclass
class ClientChannel:
    """The channel of one call: asks the user of the client that makes it, and knows whether that was put off."""

    consent: Consent
    exchange: Exchange
    progress: Progress
    task: asyncio.Task[object]
    later: bool = False
    over: bool = False
    name: str = CHANNEL
    answers: bool = False
    """It hears of what must be answered elsewhere too, and then does not keep its client waiting."""

    async def ask(self, question: Question) -> None:
        """Called by the desk; cancelled as soon as somebody else has answered."""
        from toolgate.faces.mcp import question as questions

        if not may_ask(question):
            self._put_off()
            return
        if self.progress is not None:
            self.progress(0.0, "waiting for approval")
        try:
            offered = await self.consent.offered(question, self.exchange)
            given = await self.exchange.ask("elicitation/create", questions.form(question, offered))
        except Gone:
            given, offered = None, []
        said = questions.answer(given, offered)
        if said is None:
            self._put_off()
            return
        with suppress(Conflict):  # somebody else was first: the desk tells the call
            await self.consent.answer(question, said, self.exchange)

    def _put_off(self) -> None:
        """Stop waiting. The cancellation is ours, as that of `asyncio.timeout` is: whoever waits takes it back."""
        if not self.later and not self.over:
            self.later = True
            self.task.cancel()


def may_ask(question: Question) -> bool:
    from toolgate.faces.mcp import question as questions

    here = not question.channels or CHANNEL in question.channels
    return here and questions.fits(question)


class Consent:
    def __init__(self, gate: Gate, console: str = "") -> None:
        self._gate = gate
        self._console = console

    async def carry(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, caller: Caller | None = None
    ) -> Result | Message:
        """The call's result, or in the stateless era the question that comes before it."""
        willing = exchange.can_elicit and self._gate.config.consent.mcp
        if exchange.modern:
            return await self._stateless(exchange, tool, args, progress, willing, caller)
        key = None
        if willing:
            # what leads to another call is done when that one is put off, and must not be done again
            key = new_id("m") if self._leads_on(tool) else None
            result = await self._waiting(exchange, tool, args, progress, caller, key)
            if result is not None:
                return result
        return self._where(await self._call(exchange, tool, args, progress, caller, wait=False, key=key))

    async def within(self, exchange: Exchange, tool: str, args: Message, caller: Caller) -> Result:
        """A call that comes of another one of this client's, which goes on meanwhile: so it waits for an answer, in
        the client or elsewhere. In a task of its own: putting it off ends no other."""
        if exchange.can_elicit and exchange.can_be_asked and self._gate.config.consent.mcp:
            result = await self._waiting(exchange, tool, args, None, caller, None)
            if result is not None:
                return result
        return await self._call(exchange, tool, args, None, caller, wait=True)

    def _leads_on(self, tool: str) -> bool:
        found = self._gate.tool(tool)
        return found is not None and found.follow is not None

    async def _call(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, caller: Caller | None, *,
        wait: bool, key: str | None = None,
    ) -> Result:  # fmt: skip
        return await self._gate.call(
            tool, args, persona=exchange.persona, conversation=exchange.conversation, wait=wait, progress=progress,
            key=key, caller=caller, reader=reader(self._gate, exchange),
        )  # fmt: skip

    def _where(self, result: Result) -> Result:
        """Say where a human can approve, if we know a better place than the command line."""
        error = result.error
        if error is None or error.code is not Code.PENDING or not self._console:
            return result
        return replace(result, error=replace(error, fix=f"{error.fix}; the console is at {self._console}"))

    # --- the handshake era --------------------------------------------------------------------------------

    async def _waiting(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, caller: Caller | None,
        key: str | None,
    ) -> Result | None:  # fmt: skip
        """None if the user put it off: then its question stays open."""
        from toolgate.core.caller import Caller

        task = asyncio.current_task()
        assert task is not None
        asking, before = ClientChannel(self, exchange, progress, task), task.cancelling()
        caller = caller or Caller()
        caller.channel = asking
        try:
            result = await self._call(exchange, tool, args, progress, caller, wait=True, key=key)
        except asyncio.CancelledError:
            if not asking.later or task.uncancel() > before:
                raise  # the client has cancelled it, or gone
            return None
        finally:
            asking.over = True
        if asking.later:
            task.uncancel()
        return result

    async def offered(self, question: Question, exchange: Exchange) -> list[SessionGrant]:
        """Grants that the form offers beside a single approval: for this session, or for an hour where there is none."""
        from toolgate.consent import grants
        from toolgate.faces.mcp.question import session_grants

        if question.findings or question.rule.startswith("hard:"):
            return []  # asked about each time: no grant would cover it
        tool = await self._gate.find_tool(question.tool)
        choices = grants.choices(question, grants.paths_of(question, tool))
        return session_grants(question, choices, exchange.conversation)

    async def answer(self, question: Question, said: ClientAnswer, exchange: Exchange) -> None:
        client = visible(exchange.client) or "an MCP client"
        await self._gate.answer(
            question.id, "approve" if said.approve else "deny", reason=said.reason, scope=said.scope,
            by=f"{whoami()} in {client}", channel=CHANNEL,
        )  # fmt: skip

    # --- the stateless era --------------------------------------------------------------------------------

    async def _stateless(
        self, exchange: Exchange, tool: str, args: Message, progress: Progress, willing: bool,
        caller: Caller | None,
    ) -> Result | Message:  # fmt: skip
        params = exchange.params
        answered = params.get("requestState") is not None or params.get("inputResponses") is not None
        if answered:
            try:
                await self._take(exchange, tool, args)
            except CallError as error:
                return await self._gate.refuse(tool, args, exchange.persona, error)
        result = await self._call(exchange, tool, args, progress, caller, wait=False)
        if result.error is None or result.error.code is not Code.PENDING:
            return result
        question = await self._gate.question(result.data["question"])
        if not willing or answered or question is None or not may_ask(question):
            return self._where(result)
        from toolgate.faces.mcp import question as questions

        request = sealing.request_hash(tool, args)
        form = questions.form(question, await self.offered(question, exchange))
        return {
            "resultType": "input_required",
            "inputRequests": {
                questions.ANSWER: {
                    "method": "elicitation/create", "params": {"mode": "form", **form},
                }
            },
            "requestState": sealing.seal(self._gate, question, exchange.persona, request),
        }  # fmt: skip

    async def _take(self, exchange: Exchange, tool: str, args: Message) -> None:
        """The user's answer to the question that the state names. Only what we sealed for this call counts, once."""
        from toolgate.faces.mcp import question as questions

        if not self._gate.config.consent.mcp:
            raise NotAllowed(
                "this gate takes no answers from MCP clients", "answer with `toolgate approvals`"
            )
        request = sealing.request_hash(tool, args)
        claim = sealing.unseal(self._gate, exchange.params.get("requestState"), exchange.persona, request)
        question = await self._gate.question(claim.question)
        if question is None or question.digest != claim.digest or question.persona != exchange.persona:
            raise Conflict(
                f"the question {claim.question} was answered and used, or has expired", "make the call again"
            )
        responses = exchange.params.get("inputResponses")
        if responses is not None and not isinstance(responses, dict):
            raise InvalidArgs("inputResponses is not an object", "answer under the keys of inputRequests")
        offered = await self.offered(question, exchange)
        said = questions.answer((responses or {}).get(questions.ANSWER), offered)
        if said is not None and question.state == "open":
            with suppress(Conflict):  # somebody else was first: the gate knows what they said
                await self.answer(question, said, exchange)
