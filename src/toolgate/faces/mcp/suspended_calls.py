"""Calls of the stateless era that wait for their client, because a server behind the gate wants something of it.

The call is not ended and begun again: it goes on running, its client gets `input_required`, and what the client sends
with the state it was given goes to the server that waits. A state is random, works once, and only for the same persona
and the same request. It approves nothing; questions of toolgate's own have states of another kind.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Coroutine
from typing import Any

from toolgate.core.errors import NotAllowed
from toolgate.faces.mcp import request_state as sealing
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import Exchange, Gone

MARK = "waiting."
WAIT_SECONDS = 300.0
"""That a client has to come back. The server's own time limit for the call may be shorter."""
MOST_SUSPENDED, MOST_OF_PERSONA = 256, 16
"""Calls that wait, and of one persona."""


class SuspendedCall:
    """One call under way, and what its server wants to know."""

    def __init__(self, calls: SuspendedCalls, exchange: Exchange, request: str) -> None:
        self.exchange, self.request = exchange, request
        self.task: asyncio.Task[Message]
        self.news = asyncio.Event()
        self._calls = calls
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[Message, asyncio.Future[Message]]] = {}
        self._shown: tuple[str, ...] = ()
        self._left = False

    def show(self) -> Message:
        """What the client is asked now. Only that can it answer when it comes back."""
        asked = {key: asked for key, (asked, future) in self._open.items() if not future.done()}
        self._shown = tuple(asked)
        return asked

    async def ask(self, method: str, params: Message) -> Message:
        if self._left:
            raise Gone("the client did not come back")
        if not self._open and not self._calls.room(self.exchange.persona):
            raise Gone("too many calls wait for an answer")
        key = f"server-{next(self._numbers)}"
        shown = {"mode": "form", **params} if method == "elicitation/create" else params
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[key] = {"method": method, "params": shown}, future
        self._calls.asking.add(self)
        self.news.set()
        try:
            return await future
        finally:
            self._open.pop(key, None)
            if not self._open:
                self._calls.asking.discard(self)

    def resume(self, exchange: Exchange) -> None:
        """The client is back. What it was shown and does not answer now it will not be asked again; what came up
        meanwhile it is shown next, whatever it says to it now."""
        given = exchange.params.get("inputResponses")
        self.news.clear()
        mine = self.exchange
        mine.id, mine.params, mine.send = exchange.id, exchange.params, exchange.send
        for key, (_, future) in list(self._open.items()):
            answer = given.get(key) if isinstance(given, dict) else None
            if future.done():
                continue
            if key not in self._shown:
                self.news.set()
            elif isinstance(answer, dict):
                future.set_result(answer)
            else:
                future.set_exception(Gone("the client gave no answer"))

    def give_up(self) -> None:
        self._left = True
        for _, future in list(self._open.values()):
            if not future.done():
                future.set_exception(Gone("the client did not come back"))


class SuspendedCalls:
    def __init__(self) -> None:
        self._waiting: dict[str, tuple[SuspendedCall, asyncio.TimerHandle]] = {}
        self.asking: set[SuspendedCall] = set()
        """Those with a question that is open."""
        self._left: set[asyncio.Task[Message]] = set()
        """Of clients that did not come back."""

    def room(self, persona: str) -> bool:
        of_persona = sum(one.exchange.persona == persona for one in self.asking)
        return len(self.asking) < MOST_SUSPENDED and of_persona < MOST_OF_PERSONA

    async def begin(self, exchange: Exchange, work: Coroutine[Any, Any, Message]) -> Message:
        call = exchange.suspended
        assert call is not None
        call.task = asyncio.create_task(work)
        return await self._until_news(call)

    def ready(self, exchange: Exchange, tool: str, args: Message) -> None:
        """From here on the client of this call can be asked."""
        exchange.suspended = SuspendedCall(self, exchange, sealing.request_hash(tool, args))

    async def go_on(self, exchange: Exchange, tool: str, args: Message) -> Message:
        """Raises NotAllowed for a state that is not the client's, or not for this call, or was used."""
        state = exchange.params["requestState"]
        found = self._waiting.get(state)
        if found is None:
            raise NotAllowed("no call waits under this requestState", "make the call again without it")
        call, timer = found
        if (call.exchange.persona, call.request) != (
            exchange.persona,
            sealing.request_hash(tool, args),
        ):
            raise NotAllowed("the requestState belongs to another call", "make the call again without it")
        del self._waiting[state]
        timer.cancel()
        call.resume(exchange)
        return await self._until_news(call)

    async def _until_news(self, call: SuspendedCall) -> Message:
        """The call's result, or what its server wants to know first."""
        news = asyncio.ensure_future(call.news.wait())
        try:
            await asyncio.wait((call.task, news), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the client has gone, or takes its call back
            call.task.cancel()
            await asyncio.wait((call.task,))
            raise
        finally:
            news.cancel()
        if call.task.done():
            return call.task.result()
        self._make_room()
        state = MARK + secrets.token_urlsafe(32)
        timer = asyncio.get_running_loop().call_later(WAIT_SECONDS, self._give_up, state)
        self._waiting[state] = call, timer
        return {
            "resultType": "input_required", "inputRequests": call.show(), "requestState": state,
        }  # fmt: skip

    def _make_room(self) -> None:
        """Calls may end while their clients are away; their results are kept for a while, but not any number."""
        if len(self._waiting) >= MOST_SUSPENDED:
            ended = (state for state, (one, _) in self._waiting.items() if one.task.done())
            self._give_up(next(ended, None) or next(iter(self._waiting)))

    def _give_up(self, state: str) -> None:
        call, timer = self._waiting.pop(state)
        timer.cancel()
        call.give_up()
        self._left.add(call.task)
        call.task.add_done_callback(self._heard)

    def _heard(self, task: asyncio.Task[Message]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            task.exception()  # the ledger has how it ended; nobody else wants to know

    async def close(self) -> None:
        tasks = {call.task for call, _ in self._waiting.values()} | self._left
        for _, timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
