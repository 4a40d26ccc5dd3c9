"""What servers behind the gate want of the client whose call they serve: its user, its model, its ear for log messages.

All of it is labelled as the server's. What the user or the model answers goes to that server and to nobody else; it
approves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from toolgate.core.caller import Caller, Elicitation, LogLine, NoModel, Reply, Sampling
from toolgate.core.result import Result
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import Exchange, Gone

if TYPE_CHECKING:
    from toolgate.faces.mcp.consent import Consent

LONGEST_QUESTION = 10_000
"""Characters of a question, and bytes of its form. A longer one could hide what matters, so it is declined."""


def caller(consent: Consent, exchange: Exchange) -> Caller:
    """The client of one call, as a server may come back to it."""

    async def show(question: Elicitation) -> Reply:
        if (
            question.url
            or len(question.message) > LONGEST_QUESTION
            or len(orjson.dumps(question.schema)) > LONGEST_QUESTION
        ):
            return Reply("decline", reason="it is not of a kind or size that is shown")
        try:
            return _reply(await exchange.ask("elicitation/create", _form(question)))
        except Gone as gone:
            return Reply("cancel", reason=str(gone))

    async def sample(wish: Sampling) -> Mapping[str, Any]:
        try:
            return await exchange.ask("sampling/createMessage", _spelled(wish.params))
        except Gone as gone:
            raise NoModel(str(gone)) from None

    async def through(tool: str, args: Mapping[str, Any], whom: Caller) -> Result:
        # a task of its own: if its question is put off, that ends this call and no other
        return await asyncio.create_task(consent.within(exchange, tool, dict(args), whom))

    def hear(line: LogLine) -> None:
        said = {"level": line.level, "logger": line.logger, "data": line.data}
        exchange.notify("notifications/message", said)

    asked = exchange.can_be_asked
    return Caller(
        answer=show if asked and exchange.can_elicit else None,
        model=sample if asked and exchange.can_sample else None,
        hear=hear, level=lambda: exchange.log_level, through=through, persona=exchange.persona,
        owner=exchange.connection,
    )  # fmt: skip


def _spelled(params: Mapping[str, Any]) -> Message:
    """A message with one part has it alone, as every version but the newest of the handshake era wants it."""
    messages = [
        {**one, "content": one["content"][0] if len(one["content"]) == 1 else one["content"]}
        for one in params["messages"]
    ]
    return {**params, "messages": messages}


def _form(question: Elicitation) -> Message:
    """Every line of the server's is marked: none can pose as toolgate's. Of the form only its fields."""
    fields = {key: question.schema[key] for key in ("properties", "required") if key in question.schema}
    quoted = "\n".join(f"  │ {line}" for line in question.message.splitlines())
    schema = {"type": "object", "properties": {}, **fields}
    return {"message": f"{question.label}\n\n{quoted}", "requestedSchema": schema}


def _reply(given: Message) -> Reply:
    action, content = given.get("action"), given.get("content")
    if action == "accept":
        return Reply("accept", content if isinstance(content, dict) else {})
    return Reply("decline" if action == "decline" else "cancel")
