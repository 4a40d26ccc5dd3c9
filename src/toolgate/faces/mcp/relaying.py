"""Questions of servers behind the gate, shown in the client whose call they belong to.

They are labelled as the server's. What the user answers goes to that server and to nobody else; it approves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import orjson

from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import Exchange, Gone

if TYPE_CHECKING:
    from toolgate.facade import Gate
    from toolgate.upstream.asking import Elicitation, Reply

LONGEST = 10_000
"""Characters of a question, and bytes of its form. A longer one could hide what matters, so it is declined."""


@contextmanager
def questions(gate: Gate, exchange: Exchange) -> Iterator[None]:
    """For the time of a call. In the stateless era a client cannot be asked while its call runs."""
    if gate.upstream is None or exchange.modern or not exchange.can_elicit:
        yield
        return
    from toolgate.upstream.asking import Reply, answering

    async def show(question: Elicitation) -> Reply:
        if question.url or len(question.message) > LONGEST or len(orjson.dumps(question.schema)) > LONGEST:
            return Reply("decline")
        try:
            return _reply(await exchange.ask("elicitation/create", _form(question)))
        except Gone:
            return Reply("cancel")

    with answering(show):
        yield


def _form(question: Elicitation) -> Message:
    schema = {"type": "object", "properties": {}, **question.schema}
    return {"message": f"{question.label}\n\n{question.message}", "requestedSchema": schema}


def _reply(given: Message) -> Reply:
    from toolgate.upstream.asking import Reply

    action, content = given.get("action"), given.get("content")
    if action == "accept":
        return Reply("accept", content if isinstance(content, dict) else {})
    return Reply("decline" if action == "decline" else "cancel")
