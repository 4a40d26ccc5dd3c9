"""One request to its host and the answer back. Redirects are the program's to follow: each is a request of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import h11

from toolgate.core.errors import NotAllowed, TooLarge, Unavailable

from .addresses import Pins
from .ask import Ask, onward
from .dial import dial
from .grant import Grant
from .http1 import Wire
from .injection import Filled, Injector
from .limits import EgressLimits
from .record import Attempt


@dataclass(frozen=True, slots=True)
class Way:
    """What every request of one program has to pass."""

    grant: Grant
    pins: Pins
    injector: Injector
    limits: EgressLimits
    ca_file: str | None = None


async def forward(ask: Ask, program: Wire, way: Way, attempt: Attempt) -> None:
    addresses = await way.pins.addresses(ask.target)
    # Loopback addresses came this far because the owner listed them.
    safe = ask.target.scheme == "https" or all(address.is_loopback for address in addresses)
    body = await program.whole() if way.injector.wants_body(ask) else None
    filled = way.injector.fill(ask, body, safe)
    attempt.allowed = True
    streams, attempt.address = await dial(ask.target, addresses, way.limits, way.ca_file)
    host = Wire(h11.CLIENT, streams, attempt.spent, attempt.receive, ask.target.place)
    try:
        attempt.injected = filled.names
        await host.send(_onward(filled, way.injector))
        sending = _send(filled, program, host, way.injector)
        await _until_answered(program, sending, _answer(program, host, way, attempt))
    finally:
        await host.close()


def _onward(filled: Filled, injector: Injector) -> h11.Request:
    ask = filled.ask
    length = ask.length if filled.body is None else len(filled.body)
    # A method that usually has a body says its length even if that is 0.
    if length is None:
        framing = [(b"transfer-encoding", b"chunked")]
    else:
        framing = (
            [(b"content-length", b"%d" % length)] if length or ask.method in ("POST", "PUT", "PATCH") else []
        )
    host = (b"host", ask.target.host_header.encode())
    headers = [host, *injector.guarded(ask.headers), *framing, (b"connection", b"close")]
    return h11.Request(method=ask.method, target=ask.target.path, headers=headers)


async def _until_answered(
    program: Wire, sending: Coroutine[Any, Any, None], answering: Coroutine[Any, Any, None]
) -> None:
    """The answer ends it, also before all was sent. A body that cannot be read ends it too, unless the answer has begun;
    one that the host would not take does not, since the host may have answered."""
    send, answer = asyncio.create_task(sending), asyncio.create_task(answering)
    try:
        await asyncio.wait({send, answer}, return_when=asyncio.FIRST_COMPLETED)
        waiting = not answer.done() and not program.answered
        if waiting and (error := send.exception()) and not isinstance(error, Unavailable):
            raise error
        await answer
    finally:
        for task in (send, answer):
            task.cancel()
        await asyncio.gather(send, answer, return_exceptions=True)


async def _send(filled: Filled, program: Wire, host: Wire, injector: Injector) -> None:
    if filled.body is not None:
        await host.send(h11.Data(data=filled.body))
    else:
        tail = b""
        while (piece := await program.piece()) is not None:
            tail += piece
            if injector.found(tail):
                raise NotAllowed(
                    "a secret's placeholder is in a body that is not small text of known length",
                    "put the secret in a header, or send the body as text or JSON of less than 1 MB",
                )
            tail = tail[max(0, len(tail) - injector.longest) :]
            await host.send(h11.Data(data=piece))
    await host.send(h11.EndOfMessage())


async def _answer(program: Wire, host: Wire, way: Way, attempt: Attempt) -> None:
    response = await host.event()
    while isinstance(response, h11.InformationalResponse):
        response = await host.event()
    if not isinstance(response, h11.Response):
        raise Unavailable(f"{host.peer} closed the connection without an answer", "try again")
    redaction = way.injector.redaction()
    headers = [*way.injector.redacted(onward(response.headers)), (b"connection", b"close")]
    found = dict(iter(response.headers))
    if redaction and found.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Unavailable(
            f"{host.peer} packed its answer to a program that uses secrets, so it cannot be searched for them",
            "use a host that heeds Accept-Encoding: identity",
        )
    if (length := found.get(b"content-length")) is not None and redaction is None:
        if int(length) > way.limits.response_bytes and attempt.method != "HEAD":
            most = way.limits.response_bytes
            raise TooLarge(f"the response has {int(length):,} bytes; {most:,} are the most", "ask for a part")
        headers.append((b"content-length", length))
    attempt.status = response.status_code
    await program.send(h11.Response(status_code=response.status_code, headers=headers))
    while (piece := await host.piece()) is not None:
        if data := redaction.feed(piece) if redaction else piece:
            await program.send(h11.Data(data=data))
    if redaction and (data := redaction.close()):
        await program.send(h11.Data(data=data))
    await program.send(h11.EndOfMessage())
