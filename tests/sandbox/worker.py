"""A process that has a sandbox: it runs the jobs that a test sends it, as root or as an unprivileged user.

`python worker.py FD MODE [LAYER ...]`; each request comes on a socket of its own. See remote.py. Deno's own permissions
are left out as the layer `deno`.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import sys
from collections.abc import Mapping
from typing import Any

from sandbox import opened
from toolgate.sandbox import host as pool
from toolgate.sandbox import javascript, program
from toolgate.sandbox.host import Host, Walls
from toolgate.sandbox.job import Broker, Job, Request
from toolgate.sandbox.program import ProgramCommand


class Echo:
    """A broker that says what it was asked."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if message.get("op") == "fail":
            raise RuntimeError("the host's own words")
        if message.get("op") == "big":
            return {"big": "x" * int(message["size"])}
        return {"echo": dict(message)}


class Door:
    """An egress that answers everything with one page."""

    def __init__(self) -> None:
        self.requests: tuple[Request, ...] = ()

    async def serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._serve, sock=listener)
        async with server:
            await server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, url, _ = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
        self.requests += (Request(method.decode(), url.decode(), allowed=True, status=200),)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()


def runtime(job: Job, networked: bool, broker: Broker | None) -> ProgramCommand:
    """Deno, or whatever program the job names."""
    if job.argv:
        return ProgramCommand(job.argv, program.libraries(), (job.argv[0], *program.loaders()))
    return javascript.program(job, networked, broker)


async def serve(control: socket.socket, host: Host) -> None:
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[socket.socket | None] = asyncio.Queue()

    def take() -> None:
        word, handles, _, _ = socket.recv_fds(control, 1, 1)
        arrived.put_nowait(socket.socket(fileno=handles[0]) if word else None)

    loop.add_reader(control, take)
    tasks = set()
    while (line := await arrived.get()) is not None:
        tasks.add(task := asyncio.create_task(answer(line, host)))
        task.add_done_callback(tasks.discard)
    loop.remove_reader(control)
    await host.close()


async def answer(line: socket.socket, host: Host) -> None:
    reader, writer = await asyncio.open_connection(sock=line)
    request = pickle.loads(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
    task = asyncio.ensure_future(carry_out(request, host))
    gone = asyncio.ensure_future(reader.read(1))
    await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
    task.cancel()  # whoever hangs up cancels
    try:
        found: Any = await task
    except BaseException as error:
        found = error
    gone.cancel()
    writer.write(pickle.dumps(found))
    writer.close()


async def carry_out(request: dict[str, Any], host: Host) -> Any:
    if request["do"] == "mode":
        return await asyncio.to_thread(lambda: host.mode)
    broker = Echo() if request["broker"] else None
    egress = Door() if request["egress"] else None
    return await host.run(request["job"], broker=broker, egress=egress)


async def main(handle: str, mode: Any, *off: str) -> None:
    pool.JOBS = 100  # so that zygotes are replaced while a test looks
    run = opened.program if "deno" in off else runtime
    host = Host(mode, programs={"javascript": run}, walls=Walls(frozenset(off) - {"deno"}))
    await serve(socket.socket(fileno=int(handle)), host)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
