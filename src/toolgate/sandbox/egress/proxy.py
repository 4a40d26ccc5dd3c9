"""The egress proxy: accepts on the listening socket inside a program's network, one request to a connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterable
from functools import partial

import h11

from toolgate.core.errors import CallError, Cancelled, Failed, RateLimited, TimedOut

from ..job import Request
from .addresses import AddressPins, Resolver, system_resolver
from .ask import ask_of, url_of
from .forward import ForwardContext, forward, tunnel
from .grant import Grant
from .http1 import Wire
from .injection import Injector, SecretSource
from .usage import EgressLimits, RequestAttempt, RequestRecord, Spent

_log = logging.getLogger(__name__)
_PAUSE_S = 0.05


class Proxy:
    """An `Egress` for one program. Nothing is kept from one program to the next."""

    def __init__(
        self,
        grant: Grant,
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
