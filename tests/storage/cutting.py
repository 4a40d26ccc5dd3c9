"""A wire to PostgreSQL that can be cut at the worst moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class Wire:
    """Forwards bytes. Armed, it cuts the connection at the next message that holds `trigger`."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self.trigger: bytes | None = None
        self.tear = self.deliver = False
        """Whether the message still reaches the server; its answer never comes back."""
        self.cuts = 0
        self.torn = False
        """Whether nobody gets through any more."""
        self._tasks: set[asyncio.Task[None]] = set()

    def arm(self, trigger: bytes, *, deliver: bool, tear: bool = False) -> None:
        self.trigger, self.deliver, self.tear = trigger, deliver, tear

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.torn:
            return writer.close()
        self._tasks.add(task)
        there_reader, there_writer = await asyncio.open_unix_connection(self._server / SOCKET)
        back = asyncio.create_task(self._answers(there_reader, writer))
        try:
            while data := await reader.read(1 << 20):
                cut = self.trigger is not None and self.trigger in data
                if cut:
                    back.cancel()
                    self.trigger = None
                    self.cuts += 1
                    self.torn = self.tear
                if not cut or self.deliver:
                    there_writer.write(data)
                    await there_writer.drain()
                if cut:
                    break
        except OSError:
            pass
        finally:
            writer.close()
            there_writer.close()
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            self._tasks.discard(task)

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 20):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def wire_to(server: Path, here: Path) -> AsyncIterator[Wire]:
    wire = Wire(server)
    listening = await asyncio.start_unix_server(wire.serve, here / SOCKET)
    try:
        yield wire
    finally:
        listening.close()
        await wire.end()
