"""One request to its host and the answer back, or a tunnel (CONNECT) to it.

Redirects are the program's to follow: each is a request of its own. What is said in a tunnel nobody sees; only how much is
counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import h11

from toolgate.core.errors import Cancelled, NotAllowed, TimedOut, TooLarge, Unavailable

from .addresses import AddressPins, dial
from .ask import Ask, onward
from .grant import Grant
from .http1 import READ, Wire
from .injection import Filled, Injector
from .usage import EgressLimits, RequestAttempt


@dataclass(frozen=True, slots=True)
class ForwardContext:
    """What every request of one program has to pass."""

    grant: Grant
    pins: AddressPins
    injector: Injector
    limits: EgressLimits
    ca_file: str | None = None


async def forward(ask: Ask, program: Wire, way: ForwardContext, attempt: RequestAttempt) -> None:
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


async def _answer(program: Wire, host: Wire, way: ForwardContext, attempt: RequestAttempt) -> None:
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


_OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def tunnel(ask: Ask, program: Wire, way: ForwardContext, attempt: RequestAttempt) -> None:
    if way.injector.meant_for(ask.target.place):
        # In a tunnel no value could be put in, and what the host sends back could not be searched for it.
        raise NotAllowed(
            f"a secret of this program is for {ask.target.place}, so it is not reached by CONNECT",
            "send the https:// URL itself to the proxy (get_json and fetch_with_auth do)",
        )
    addresses = await way.pins.addresses(ask.target)
    attempt.allowed = True
    (reader, writer), attempt.address = await dial(ask.target, addresses, way.limits, None)
    try:
        attempt.status, program.answered = 200, True
        await program.write(_OPEN)
        async with asyncio.timeout(way.limits.idle_s) as patience:
            await _together(
                _pump(program.reader, writer, attempt.send, patience, way.limits.idle_s),
                _pump(reader, program.writer, attempt.receive, patience, way.limits.idle_s),
            )
    except TimeoutError as error:
        raise TimedOut(f"nothing went through the tunnel for {way.limits.idle_s:g} s") from error
    except OSError as error:
        raise Cancelled("the tunnel broke") from error
    finally:
        writer.transport.abort()


async def _together(*pumps: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(pump) for pump in pumps]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    source: asyncio.StreamReader,
    sink: asyncio.StreamWriter,
    count: Callable[[int], None],
    patience: asyncio.Timeout,
    idle_s: float,
) -> None:
    while data := await source.read(READ):
        count(len(data))
        if not patience.expired():
            patience.reschedule(asyncio.get_running_loop().time() + idle_s)
        sink.write(data)
        await sink.drain()
        await asyncio.sleep(0)
    sink.write_eof()
