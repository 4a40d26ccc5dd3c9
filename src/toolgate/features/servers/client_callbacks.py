"""Callbacks of the MCP client: what a server asks and says during calls goes to whoever made the call, or to nobody.

A stranger's words: few, small, harmless to show, and under the server's own name. What was asked, and what came of it, is
an event before the server hears of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
import orjson
from pydantic import ValidationError

from toolgate.core.caller import LOG_LEVELS, Elicitation, LogLine
from toolgate.core.context import Context
from toolgate.core.display import visible
from toolgate.core.event import Elicited
from toolgate.features.servers.active_calls import BURST, ActiveCall, ActiveCalls, CallEnded, Quota, Record
from toolgate.features.servers.results import Scrub, cleaned, defused
from toolgate.features.servers.sampling import SamplingRefused, Samplings

log = logging.getLogger("toolgate.upstream")
ASK_SECONDS = 600.0
MOST_QUESTIONS = 20
"""Of one call. Whoever is asked without end approves without reading."""
_TOO_LONG = types.ElicitResult(action="decline"), "it is too long"
_UNCLEAR = "it is not clear during which call"
OWN_LEVEL = "info"
"""What toolgate's own log hears of servers, whatever a caller wants."""
OWN_LINES = BURST, 100 / 60
KEPT_CHARACTERS, KEPT_FIELDS, KEPT_FIELD = 500, 20, 80
"""Characters of a question, names of a form and characters of each that the ledger keeps."""
LONGEST_QUESTION = 20_000
"""Characters of a question, and of its form. Nobody reads more, and looking for secrets in it would hold everybody up."""
LONGEST_LINE = 4000
"""Characters of a log message; of one that is not a text, of its JSON."""
LARGEST_LINE = 64 * 1024
"""Of one that is longer still not even the beginning is passed on: looking for secrets in it takes too long."""
LONGEST_LOGGER = 80


@dataclass(frozen=True)
class ConnectionHooks:
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


class ClientCallbacks:
    def __init__(self, name: str, hooks: ConnectionHooks, calls: ActiveCalls) -> None:
        self._name, self._hooks, self._calls = name, hooks, calls
        self._own = Quota(*OWN_LINES)

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        return await self.elicit_for(self._calls.whose(), params)

    async def elicit_for(self, call: ActiveCall | None, params: Any) -> types.ElicitResult:
        """Only where it is clear whose call it belongs to, and that caller can show it."""
        if call is None and not self._own.take():
            return types.ElicitResult(action="decline")
        if call is not None:
            call.questions += 1
            if call.questions > MOST_QUESTIONS + 1:  # the first one too many is recorded
                return types.ElicitResult(action="decline")
        try:
            question, whole = _question(self._name, params, self._scrub(call))
            answer, why = await self._shown(question, call) if whole else _TOO_LONG
            await self._hooks.record(_elicited(question, call, answer.action, why))
            return answer
        except Exception:
            log.exception("a question of %s could not be handled", self._name)
            return types.ElicitResult(action="cancel")

    async def _shown(self, question: Elicitation, call: ActiveCall | None) -> tuple[types.ElicitResult, str]:
        """What the human said, or why nobody was asked."""
        if call is None:
            return types.ElicitResult(action="decline"), _UNCLEAR
        handler = call.caller.answer
        if handler is None:
            return types.ElicitResult(action="decline"), "the caller has nobody to show it to"
        if call.questions > MOST_QUESTIONS:
            return types.ElicitResult(action="decline"), f"a call may ask {MOST_QUESTIONS} times"
        try:
            async with asyncio.timeout(ASK_SECONDS):
                reply = await call.while_it_lasts(handler(question))
            content = dict(reply.content) if reply.content is not None and reply.action == "accept" else None
            return types.ElicitResult(action=reply.action, content=content), reply.reason
        except ValidationError:
            # here, not where it is sent: there it would be taken for a failure of the server
            return types.ElicitResult(action="cancel"), "the answer has no form that it could have"
        except CallEnded:
            return types.ElicitResult(action="cancel"), "the call ended first"
        except TimeoutError:
            return types.ElicitResult(action="cancel"), "there was no answer in time"

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult | types.ErrorData:
        return await self.sample_for(self._calls.whose(), params)

    async def sample_for(
        self, call: ActiveCall | None, params: Any
    ) -> types.CreateMessageResult | types.ErrorData:
        assert self._hooks.samplings is not None
        try:
            if call is None and self._own.take():
                asked = Elicitation(self._name, "", {})
                await self._hooks.record(_elicited(asked, None, "decline", f"it wanted a model; {_UNCLEAR}"))
            answer = await self._hooks.samplings.ask(params, call, self._scrub(call))
            return types.CreateMessageResult.model_validate(answer)
        except SamplingRefused as refused:
            return types.ErrorData(code=types.INVALID_REQUEST, message=str(refused))
        except Exception:
            log.exception("a wish of %s for a model could not be handled", self._name)
            return types.ErrorData(code=types.INTERNAL_ERROR, message="toolgate could not ask for it")

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        call = self._calls.heard_by()
        caller = call.caller if call is not None else None
        hear = caller.hear if caller is not None and _wanted(params.level, caller.level()) else None
        if hear is not None and call is not None and not call.lines.take():
            hear = None
        mine = _wanted(params.level, OWN_LEVEL) and self._own.take()
        if hear is None and not mine:
            return  # looking for secrets costs more than a flood is worth
        line = _line(self._name, params.level, params.logger, params.data, self._scrub(call))
        if mine:
            log.info("%s logs (%s): %s", line.logger, line.level, line.data)
        if hear is not None and call is not None:
            if missed := call.lines.told():
                words = f"{missed:,} log messages of {self._name} were left out"
                hear(LogLine("toolgate", line.level, "toolgate", words))
            hear(line)

    def _scrub(self, call: ActiveCall | None) -> Scrub:
        """The server knows the secrets it was called with, too."""
        hidden = call.context.hidden if call is not None else ()
        return partial(self._hooks.scrub, hidden=hidden)


def _question(source: str, params: Any, scrub: Scrub) -> tuple[Elicitation, bool]:
    """From the SDK's parameters of either mode; and whether it is whole. What is not is for the ledger only."""
    schema, url = getattr(params, "requested_schema", None) or {}, getattr(params, "url", "") or ""
    asked = [params.message, dict(schema), url]
    whole = len(params.message) <= LONGEST_QUESTION and len(json.dumps(asked[1:])) <= LONGEST_QUESTION
    shown = asked if whole else [params.message[:LONGEST_QUESTION], {}, ""]
    message, schema, url = cleaned(shown, scrub)
    return Elicitation(source, message, schema, url), whole


def _elicited(question: Elicitation, call: ActiveCall | None, action: str, reason: str) -> Elicited:
    """The event that says what came of it: what was asked, by name; what was answered is between the two."""
    context = call.context if call is not None else Context("", "", "")
    fields = question.schema.get("properties")
    names = [str(name)[:KEPT_FIELD] for name in fields][:KEPT_FIELDS] if isinstance(fields, Mapping) else []
    return Elicited(
        call=context.call_id, persona=context.persona, tool=context.tool, conversation=context.conversation,
        server=question.source, action=action, message=question.message[:KEPT_CHARACTERS], fields=names,
        reason=reason,
    )  # fmt: skip


def _wanted(level: str, least: str) -> bool:
    return least in LOG_LEVELS and level in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)


def _line(source: str, level: str, logger: str | None, data: Any, scrub: Scrub) -> LogLine:
    own = visible(scrub(logger))[:LONGEST_LOGGER] if logger and len(logger) <= LONGEST_LINE else ""
    return LogLine(source, level, f"{source}/{own}" if own else source, _small(data, scrub))


def _small(data: Any, scrub: Scrub) -> Any:
    if not isinstance(data, str):
        try:
            spelled = orjson.dumps(data).decode()
        except (orjson.JSONEncodeError, RecursionError):
            spelled = str(data)
        if len(spelled) <= LONGEST_LINE:
            return cleaned(data, scrub)
        data = spelled
    if len(data) > LARGEST_LINE:
        return f"[toolgate: a message of {len(data):,} characters is left out]"
    text = defused(scrub(data))  # and cut only then: half a secret would not be found
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}… [cut by toolgate]"
