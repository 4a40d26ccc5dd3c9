"""The server itself: a socket, uvicorn on it, and an end that leaves nothing unsettled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from toolgate.core.errors import SetupError
from toolgate.faces.http.site import Site

log = logging.getLogger("toolgate.http")
PORT = 8721
GRACE = 10
"""Seconds that running calls have to finish before they are cancelled and settled."""
CONNECTIONS = 1000
KEEP_ALIVE = 75
"""Seconds that a quiet connection stays open. Clients keep theirs for 5 to 60: whoever lets go first, it should not be the
server, or a call that is sent at that moment is lost on its way."""


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


class Server(uvicorn.Server):
    """Signals are ours: uvicorn would raise them again after its end, and we want to end with 0."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


async def serve(
    app: Any, site: Site, sock: socket.socket, *, proxy: str = "", ready: Callable[[], None] = lambda: None
) -> None:
    """Until SIGTERM, SIGINT or `site.closing`. Forwarded headers are believed only from `proxy`."""
    server = Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", ws="none", server_header=False,
            timeout_graceful_shutdown=GRACE, timeout_keep_alive=KEEP_ALIVE, limit_concurrency=CONNECTIONS, backlog=512,
            proxy_headers=bool(proxy), forwarded_allow_ips=proxy or None,
        ),
        ready,
    )  # fmt: skip
    with _signals(site.closing), sock:
        ending = asyncio.create_task(_end(server, site))
        try:
            await server.serve([sock])
            await _settled(server)
        finally:
            site.closing.set()
            ending.cancel()


async def _end(server: Server, site: Site) -> None:
    await site.closing.wait()
    server.should_exit = True
    for close in site.closers:
        try:
            await close()
        except Exception:
            log.exception("a face could not be closed")


async def _settled(server: Server) -> None:
    """Calls that were cancelled still write down what became of them; the ledger is open until they have."""
    late = [task for task in server.server_state.tasks if not task.done()]
    if late:
        await asyncio.wait(late, timeout=GRACE)


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
