"""Request states: what a stateless client carries between a question and its answer. There are two kinds.

A question of toolgate's own is sealed: signed, bound, expiring. That state is no secret and no ticket. It says which
question was put to whom about which request; whether an answer still counts is decided by the desk, where a question is
answered once.

A call waits for its client because a server behind the gate wants something of it. It is not ended and begun again: it goes
on running, its client gets `input_required`, and what the client sends with the state it was given goes to the server that
waits. That state is random, works once, and only for the same persona and the same request. It approves nothing.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import itertools
import re
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.core.canonical import canonical, sha256
from toolgate.core.errors import NotAllowed
from toolgate.core.ports import Question
from toolgate.facade import Gate
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.faces.mcp.protocol import Exchange, Gone

_PURPOSE = "toolgate mcp request state 1"
_LONGEST_STATE = 4096
_VERSION = re.compile(r"[0-9]{1,9}")
MARK = "waiting."
WAIT_SECONDS = 300.0
"""That a client has to come back. The server's own time limit for the call may be shorter."""
MOST_SUSPENDED, MOST_OF_PERSONA = 256, 16
"""Calls that wait, and of one persona."""


@dataclass(frozen=True)
class RequestState:
    question: str
    digest: str


def request_hash(tool: str, args: Any) -> str:
    return sha256(canonical([tool, args]))


def seal(gate: Gate, question: Question, persona: str, request: str) -> str:
    body = orjson.dumps(
        {
            "question": question.id, "digest": question.digest, "persona": persona, "request": request,
            "expires": question.expires_at,
        }
    )  # fmt: skip
    version, mac = gate.mac(_PURPOSE, body)
    return f"{base64.urlsafe_b64encode(body).decode()}.{version}.{mac}"


def unseal(gate: Gate, state: Any, persona: str, request: str) -> RequestState:
    """What we sealed for this persona and this very request; anything else is refused."""
    body = _verified(gate, state)
    if body is None:
        raise NotAllowed("the requestState is not one that this gate made", "make the call again without it")
    if body["persona"] != persona or body["request"] != request:
        raise NotAllowed("the requestState belongs to another call", "make the call again without it")
    if body["expires"] <= gate.now:
        raise NotAllowed("the requestState has expired", "make the call again without it")
    return RequestState(body["question"], body["digest"])


def _verified(gate: Gate, state: Any) -> dict[str, Any] | None:
    if not isinstance(state, str) or len(state) > _LONGEST_STATE or not state.isascii():
        return None
    spelled, _, sealed = state.partition(".")
    version, _, mac = sealed.partition(".")
    if not _VERSION.fullmatch(version):
        return None
    try:
        raw = base64.b64decode(spelled, b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    known = gate.mac(_PURPOSE, raw, int(version))[1]
    if not known or not hmac.compare_digest(mac, known):
        return None
    body: dict[str, Any] = orjson.loads(raw)
    return body


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
        exchange.suspended = SuspendedCall(self, exchange, request_hash(tool, args))

    async def go_on(self, exchange: Exchange, tool: str, args: Message) -> Message:
        """Raises NotAllowed for a state that is not the client's, or not for this call, or was used."""
        state = exchange.params["requestState"]
        found = self._waiting.get(state)
        if found is None:
            raise NotAllowed("no call waits under this requestState", "make the call again without it")
        call, timer = found
        if (call.exchange.persona, call.request) != (
            exchange.persona,
            request_hash(tool, args),
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
