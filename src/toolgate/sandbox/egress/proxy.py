"""The egress proxy: accepts on the listening socket inside a program's network, one request to a connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11

from toolgate.core.errors import (
    CallError,
    Cancelled,
    Failed,
    NotAllowed,
    RateLimited,
    TimedOut,
    TooLarge,
    Unavailable,
)
from toolgate.sandbox.egress.addresses import AddressPins, Resolver, dial, system_resolver
from toolgate.sandbox.egress.grant import EgressLimits, HostGrant, RequestAttempt, RequestRecord, Spent
from toolgate.sandbox.egress.http1 import READ, Ask, Wire, ask_of, onward, url_of
from toolgate.sandbox.egress.injection import Filled, Injector, SecretSource
from toolgate.sandbox.job import Request

# One request to its host and the answer back, or a tunnel (CONNECT) to it. Redirects are the program's to
# follow: each is a request of its own. What is said in a tunnel nobody sees; only how much is counted.


@dataclass(frozen=True, slots=True)
class ForwardContext:
    """What every request of one program has to pass."""

    grant: HostGrant
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


_log = logging.getLogger(__name__)
_PAUSE_S = 0.05


class Proxy:
    """An `Egress` for one program. Nothing is kept from one program to the next."""

    def __init__(
        self,
        grant: HostGrant,
        *,
        private: Iterable[str] = (),
        secrets: SecretSource | None = None,
        redact: Callable[[str], str] = str,
        on_request: Callable[[Request], None] | None = None,
        limits: EgressLimits | None = None,
        resolver: Resolver = system_resolver,
        ca_file: str | None = None,
    ) -> None:
        self._limits = limits or EgressLimits()
        pins = AddressPins(private, resolver, self._limits.connect_s, self._limits.names)
        self._way = ForwardContext(grant, pins, Injector(secrets), self._limits, ca_file)
        self._spent = Spent(self._limits)
        self._record = RequestRecord(self._limits.listed, redact, on_request)

    @property
    def requests(self) -> tuple[Request, ...]:
        return self._record.requests

    @property
    def exhausted(self) -> bool:
        """Whether the program made more requests than it may: `Outcome.limit` is then `requests`."""
        return self._spent.requests > self._limits.requests

    async def serve(self, listener: socket.socket) -> None:
        """Until cancelled. The socket stays the caller's to close. An error of `on_request` ends it: what cannot be
        recorded does not happen again."""
        listener.setblocking(False)
        slots = asyncio.Semaphore(self._limits.connections)
        try:
            async with asyncio.TaskGroup() as connections:
                while self._spent.requests < self._limits.requests + self._limits.patience:
                    await slots.acquire()
                    client = await _accepted(listener)
                    self._spent.requests += 1
                    task = connections.create_task(self._connection(client, slots, self.exhausted))
                    task.add_done_callback(partial(_close, client))
                # Whoever still does not stop is refused by the kernel, at no cost to us.
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)
                await asyncio.Event().wait()
        except* Exception as group:
            raise group.exceptions[0] from None
        finally:
            await self._way.pins.close()

    async def _connection(self, client: socket.socket, slots: asyncio.Semaphore, crowded: bool) -> None:
        try:
            try:
                streams = await asyncio.open_connection(sock=client, limit=self._limits.head_bytes)
            except OSError:
                return
            attempt = RequestAttempt(self._spent)
            program = Wire(h11.SERVER, streams, self._spent, attempt.send, "the program")
            try:
                await self._settled(program, attempt, crowded)
                await program.linger()
            finally:
                await program.close()
        finally:
            slots.release()

    async def _settled(self, program: Wire, attempt: RequestAttempt, crowded: bool) -> None:
        """The request with its end, whatever that is, told to the program and recorded."""
        try:
            error = await self._failure(program, attempt, crowded)
            attempt.reason = error.message if error else ""
            if error is None:
                return
            if program.answered:
                program.cut()
            elif isinstance(error, Cancelled):
                attempt.reason = error.message if attempt.method else ""
            else:
                attempt.status = await self._refused(program, error)
        finally:
            if attempt.method or attempt.reason:
                self._record.add(attempt)

    async def _refused(self, program: Wire, error: CallError) -> int:
        try:
            return await program.refuse(error)
        except CallError:
            return 0  # nobody was there to hear it

    async def _failure(self, program: Wire, attempt: RequestAttempt, crowded: bool) -> CallError | None:
        try:
            async with asyncio.timeout(self._limits.total_s):
                await self._request(program, attempt, crowded)
        except CallError as error:
            return error
        except TimeoutError:
            return TimedOut(f"the request took more than {self._limits.total_s:g} s", "ask for less")
        except Exception:
            _log.exception("the egress proxy failed")
            return Failed("the proxy failed", "see the log")
        return None

    async def _request(self, program: Wire, attempt: RequestAttempt, crowded: bool) -> None:
        request = await program.request()
        attempt.method, attempt.url = request.method.decode(), url_of(request)
        attempt.reason = "the program ended first"  # unless something else is said
        if crowded:
            most = self._limits.requests
            raise RateLimited(
                f"this program has made {most} requests, which is the most", "make fewer requests"
            )
        ask = ask_of(request)
        self._way.grant.check(ask.method, ask.target)
        await (tunnel if ask.tunnel else forward)(ask, program, self._way, attempt)


def _close(client: socket.socket, _: object) -> None:
    """Also where the connection's task was cancelled before it began."""
    client.close()


async def _accepted(listener: socket.socket) -> socket.socket:
    """The next connection. Nothing is awaited once it is taken, so none is lost when we are cancelled."""
    while True:
        try:
            client, _ = listener.accept()
        except BlockingIOError:
            await _readable(listener)
        except OSError:
            # Out of descriptors, or the connection is gone already: neither is a reason to stop for good.
            await asyncio.sleep(_PAUSE_S)
        else:
            client.setblocking(False)
            return client


async def _readable(listener: socket.socket) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listener)
