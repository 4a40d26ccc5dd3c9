"""A server at an address: streamable HTTP, or the old SSE. Answers are bounded here, before anybody parses them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolgate.core import wire
from toolgate.features.servers.active_calls import request_refused

MAX_MESSAGE = wire.MAX_BYTES
READ_SECONDS = 24 * 3600.0
"""A stream may be silent for long; calls have time limits of their own."""


class _Bounded(httpx2.AsyncByteStream):
    """A body whose lines (SSE) or whole (JSON) may have so many bytes."""

    def __init__(self, inner: Any, by_line: bool) -> None:
        self._inner = inner
        self._by_line = by_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, count = 0, wire.Count()
        async for chunk in self._inner:
            end = chunk.rfind(b"\n") if self._by_line else -1
            size = len(chunk) - end - 1 if end >= 0 else size + len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.ReadError(f"a message of more than {MAX_MESSAGE:,} bytes")
            if count.feed(chunk[: end + 1] if end >= 0 else chunk) > wire.MAX_VALUES:
                raise httpx2.ReadError(f"a message of more than {wire.MAX_VALUES:,} values")
            if end >= 0:
                count = wire.Count()
                count.feed(chunk[end + 1 :])
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Guarded(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            request_refused()
            raise
        by_line = response.headers.get("content-type", "").startswith("text/event-stream")
        response.stream = _Bounded(response.stream, by_line)
        return response


def _client(headers: Mapping[str, str], seconds: float) -> httpx2.AsyncClient:
    """Nothing comes from the environment: no proxy, no credentials from a file."""
    return httpx2.AsyncClient(
        headers=dict(headers), timeout=httpx2.Timeout(seconds, read=READ_SECONDS), transport=_Guarded(),
        trust_env=False, follow_redirects=False,
    )  # fmt: skip


@asynccontextmanager
async def streamable(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        _client(headers, seconds) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


@asynccontextmanager
async def events(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[tuple[Any, Any]]:
    def factory(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return _client(headers or {}, seconds)

    async with sse_client(
        url, dict(headers), timeout=seconds, sse_read_timeout=READ_SECONDS, httpx_client_factory=factory
    ) as streams:
        yield streams
