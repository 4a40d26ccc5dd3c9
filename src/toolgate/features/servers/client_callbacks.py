"""What a server asks and says during calls, as the SDK hears it: handed to whoever made the call, or to nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
from pydantic import ValidationError

from toolgate.features.servers import elicitation, logs
from toolgate.features.servers.active_calls import Calls, Ended, UnderWay
from toolgate.features.servers.gate_port import Record
from toolgate.features.servers.results import Scrub
from toolgate.features.servers.sampling import Refused, Samplings

log = logging.getLogger("toolgate.upstream")
ASK_SECONDS = 600.0
MOST_QUESTIONS = 20
"""Of one call. Whoever is asked without end approves without reading."""
_TOO_LONG = types.ElicitResult(action="decline"), "it is too long"
OWN_LEVEL = "info"
"""What toolgate's own log hears of servers, whatever a caller wants."""
OWN_LINES = logs.BURST, 100 / 60


@dataclass(frozen=True)
class Behind:
    """Where what a server says goes, apart from its answers."""

    scrub: Callable[..., Any]
    record: Record
    changed: Callable[[], None]
    """Its list of tools has changed."""
    updated: Callable[[str], None]
    """A resource that was subscribed to has changed."""
    samplings: Samplings | None
    """None: no model is offered to the server."""
    may_ask: bool = True
    """Whether its questions are shown to the human."""


class Wishes:
    def __init__(self, name: str, behind: Behind, calls: Calls) -> None:
        self._name, self._behind, self._calls = name, behind, calls
        self._own = logs.Allowance(*OWN_LINES)

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        """Only where it is clear whose call it belongs to, and that caller can show it. What came of it is an event
        before the server hears of it."""
        under_way = self._calls.whose()
        if under_way is None:
            if self._own.take():
                log.info("%s asked the human something, but not clearly during one call", self._name)
            return types.ElicitResult(action="decline")
        under_way.questions += 1
        if under_way.questions > MOST_QUESTIONS + 1:  # the first one too many is recorded
            return types.ElicitResult(action="decline")
        try:
            question, whole = elicitation.question(self._name, params, self._scrub(under_way))
            answer, why = await self._shown(question, under_way) if whole else _TOO_LONG
            await self._behind.record(elicitation.elicited(question, under_way.context, answer.action, why))
            return answer
        except Exception:
            log.exception("a question of %s could not be handled", self._name)
            return types.ElicitResult(action="cancel")

    async def _shown(
        self, question: elicitation.Elicitation, under_way: UnderWay
    ) -> tuple[types.ElicitResult, str]:
        """What the human said, or why nobody was asked."""
        handler = under_way.caller.answer
        if handler is None:
            return types.ElicitResult(action="decline"), "the caller has nobody to show it to"
        if under_way.questions > MOST_QUESTIONS:
            return types.ElicitResult(action="decline"), f"a call may ask {MOST_QUESTIONS} times"
        try:
            async with asyncio.timeout(ASK_SECONDS):
                reply = await under_way.while_it_lasts(handler(question))
            content = dict(reply.content) if reply.content is not None and reply.action == "accept" else None
            return types.ElicitResult(action=reply.action, content=content), reply.reason
        except ValidationError:
            # here, not where it is sent: there it would be taken for a failure of the server
            return types.ElicitResult(action="cancel"), "the answer has no form that it could have"
        except Ended:
            return types.ElicitResult(action="cancel"), "the call ended first"
        except TimeoutError:
            return types.ElicitResult(action="cancel"), "there was no answer in time"

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult | types.ErrorData:
        assert self._behind.samplings is not None
        try:
            under_way = self._calls.whose()
            answer = await self._behind.samplings.ask(params, under_way, self._scrub(under_way))
            return types.CreateMessageResult.model_validate(answer)
        except Refused as refused:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(refused))
        except Exception:
            log.exception("a wish of %s for a model could not be handled", self._name)
            return types.ErrorData(code=types.INTERNAL_ERROR, message="toolgate could not ask for it")

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        under_way = self._calls.heard_by()
        caller = under_way.caller if under_way is not None else None
        hear = caller.hear if caller is not None and logs.wanted(params.level, caller.level()) else None
        if hear is not None and under_way is not None and not under_way.lines.take():
            hear = None
        mine = logs.wanted(params.level, OWN_LEVEL) and self._own.take()
        if hear is None and not mine:
            return  # looking for secrets costs more than a flood is worth
        line = logs.line(self._name, params.level, params.logger, params.data, self._scrub(under_way))
        if mine:
            log.info("%s logs (%s): %s", line.logger, line.level, line.data)
        if hear is not None and under_way is not None:
            if missed := under_way.lines.told():
                words = f"{missed:,} log messages of {self._name} were left out"
                hear(logs.LogLine("toolgate", line.level, "toolgate", words))
            hear(line)

    def _scrub(self, under_way: UnderWay | None) -> Scrub:
        """The server knows the secrets it was called with, too."""
        hidden = under_way.context.hidden if under_way is not None else ()
        return partial(self._behind.scrub, hidden=hidden)
