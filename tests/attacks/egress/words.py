"""What the attacks on the egress proxy share: a program with full control of its code, servers that help it."""

from __future__ import annotations

import asyncio

from sandbox.egress.world import Asked
from toolgate.sandbox.egress.grant import EgressLimits

QUICK = EgressLimits(connect_s=0.4, idle_s=0.3, total_s=1.0)


def lines(*parts: str | bytes, body: bytes = b"") -> bytes:
    return (
        b"\r\n".join(
            [part.encode("latin-1") if isinstance(part, str) else part for part in parts] + [b"", b""]
        )
        + body
    )


async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()
