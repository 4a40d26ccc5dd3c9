"""The server itself: a socket, uvicorn on it, and an end that leaves nothing unsettled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn

from toolgate.core.errors import SetupError
from toolgate.faces.http.connection import HttpConnection
from toolgate.faces.http.places import BATCH, ConnectionPlaces
from toolgate.faces.http.site import ServerSite

log = logging.getLogger("toolgate.http")
PORT = 8721
TICKS = 2
"""uvicorn ticks ten times a second; connections are looked at five times."""
GRACE = 10
"""Seconds that running calls have to finish before they are cancelled and settled."""
QUEUE = 1024
"""Connections that the system keeps for us until they are accepted."""
_NO_DESCRIPTORS = "socket.accept() out of system resource"


def listen(host: str, port: int | None) -> socket.socket:
    """A port that was asked for is taken or refused; without one, the usual port or else any free one."""
    try:
        return _bound(host, PORT if port is None else port)
    except OSError as error:
        if port is None:
            with contextlib.suppress(OSError):
                return _bound(host, 0)
        raise SetupError(
            f"{host}:{port or PORT} cannot be used: {error.strerror or error}",
            "give another --host or --port",
        ) from None


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named, because asyncio sends small packets at once only where it sees TCP; else each answer takes 40 ms more
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


class HttpServer(uvicorn.Server):
    """Signals are ours: uvicorn would raise them again after its end, and we want to end with 0."""

    def __init__(self, config: uvicorn.Config, places: ConnectionPlaces, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._places, self._ready = places, ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(QUEUE)  # asyncio also accepts as many at once as it queues, and that is to be few
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                assert isinstance(connection, HttpConnection)
                connection.look(now)
        return await super().on_tick(counter)


async def serve(
    app: Any,
    site: ServerSite,
    sock: socket.socket,
    *,
    proxy: str = "",
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Until SIGTERM, SIGINT or `site.closing`. Forwarded headers are believed only from `proxy`."""
    places = site.places
    places.fit()
    protocol: Any = partial(HttpConnection, places=places)
    server = HttpServer(
        uvicorn.Config(
            app, http=protocol, log_config=None, access_log=False, lifespan="on", ws="none", server_header=False,
            timeout_graceful_shutdown=GRACE, backlog=BATCH,
            proxy_headers=bool(proxy), forwarded_allow_ips=proxy or None,
        ),
        places,
        ready,
    )  # fmt: skip
    with _signals(site.closing), _descriptors(places), sock:
        ending = asyncio.create_task(_end(server, site))
        try:
            await server.serve([sock])
            await _settled(server)
        finally:
            site.closing.set()
            ending.cancel()


async def _end(server: HttpServer, site: ServerSite) -> None:
    await site.closing.wait()
    server.should_exit = True
    for close in site.closers:
        try:
            await close()
        except Exception:
            log.exception("a face could not be closed")


async def _settled(server: HttpServer) -> None:
    """Calls that were cancelled still write down what became of them; the ledger is open until they have."""
    late = [task for task in server.server_state.tasks if not task.done()]
    if late:
        await asyncio.wait(late, timeout=GRACE)


@contextlib.contextmanager
def _descriptors(places: ConnectionPlaces) -> Iterator[None]:
    """Where there are no descriptors left, asyncio stops accepting for a second, and says so for each that it did not
    accept. It is enough to say it once, and to let go of some."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    shedding: asyncio.TimerHandle | None = None
    told = False

    def settle() -> None:
        nonlocal shedding, told
        shedding = None
        places.fit()
        if not told:
            told = True
            log.error("no file descriptors were left: connections had to wait or went; raise `ulimit -n`")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal shedding
        if context.get("message") == _NO_DESCRIPTORS:
            if shedding is None:
                places.make_room()
                shedding = loop.call_later(0.2, settle)  # the log needs a descriptor, too
        elif before is not None:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


@contextlib.contextmanager
def _signals(closing: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, closing.set)
    except (RuntimeError, ValueError):  # not the main thread: whoever runs us there sets `closing`
        yield
        return
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
