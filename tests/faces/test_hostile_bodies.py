"""What a face is sent before anybody knows what it is: refused by its bytes, and others go on meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from bench.hostile import longest_wait

from faces.http.serving import CONFIG, House, house
from toolgate.core import wire

MB = 1 << 20
BEARABLE = 1.5
ROOMY = {"per_minute": 1_000_000, "per_hour": 10_000_000}
BODIES: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + b"[]," * (2 * MB) + b"1]",
    "objects": lambda: b"[" + b"{}," * (2 * MB) + b"1]",
    "empty texts": lambda: b"[" + b'"",' * (2 * MB) + b"1]",
    "numbers": lambda: b"[" + b"1," * (3 * MB) + b"1]",
    "floats": lambda: b"[" + b"0.1234567890123456789," * (MB // 4) + b"1]",
    "one number": lambda: b"9" * (7 * MB),
    "one fraction": lambda: b"0." + b"9" * (7 * MB),
    "brackets": lambda: b"[" * (7 * MB),
    "keys": lambda: b"{" + b",".join(b'"k%d":1' % n for n in range(90_000)) + b"}",
    "the same key": lambda: b"{" + b'"k":1,' * MB + b'"k":1}',
    "escapes": lambda: b'"' + b"\\u00e9" * MB + b'"',
    "surrogates": lambda: b'"' + b"\\ud800" * MB + b'"',
    "backslashes": lambda: b'"' + b"\\\\" * (3 * MB) + b'"',
    "an open text": lambda: b'"' + b"a," * (3 * MB),
    "sixteen megabytes": lambda: b'"' + b"a" * (16 * MB) + b'"',
    "spaces": lambda: b" " * (7 * MB),
    "no UTF-8": lambda: b'"' + b"\xff" * (7 * MB) + b'"',
}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    config = CONFIG | {"limits": {"persona": ROOMY, "global": ROOMY}}
    async with house(tmp_path, config) as made:
        yield made


async def posted(client: httpx2.AsyncClient, path: str, body: bytes, kind: str = "application/json") -> int:
    headers = {"Content-Type": kind, "Accept": "application/json, text/event-stream"}
    try:
        return (await client.post(path, content=body, headers=headers)).status_code
    except httpx2.TransportError:  # refused before all of it was sent
        return 413


async def bearable(here: House, work: Callable[[], Any], name: str) -> Any:
    waited, idle, answer = await longest_wait(here.gate, work, "other")
    assert waited < BEARABLE + 10 * idle, name
    return answer


async def test_no_body_holds_another_persona_up(here: House) -> None:
    async with here.client("helper") as client:
        for name, make in BODIES.items():
            raw = make()
            call = b'{"tool":"system.ping","args":{"x":' + raw + b"}}"
            assert await bearable(here, lambda body=call: posted(client, "/api/v1/calls", body), name) >= 400  # type: ignore[misc]
            message = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"system.ping","arguments":{"x":' + raw + b"}}}"  # fmt: skip
            assert await bearable(here, lambda body=message: posted(client, "/mcp", body), name) >= 400  # type: ignore[misc]


async def test_no_form_query_or_header_holds_another_persona_up(here: House) -> None:
    form = "application/x-www-form-urlencoded"
    async with here.client("human") as client:
        for name, body in (("percent", b"token=" + b"%41" * MB), ("fields", b"&".join([b"a=b"] * MB))):
            assert await bearable(here, lambda body=body: posted(client, "/login", body, form), name) == 413  # type: ignore[misc]
        scope = {"answer": "approve", "scope": {"paths": ["**/*" * 100] * 5000}}
        body = json.dumps(scope).encode()
        assert await bearable(here, lambda: posted(client, "/api/v1/approvals/q_1", body), "paths") == 400
        for name, headers in (("cookie", {"Cookie": "a=b;" * 2000}), ("token", {"Authorization": "Bearer " + "x" * 30_000})):  # fmt: skip
            await bearable(
                here, lambda headers=headers: client.get("/api/v1/approvals", headers=headers), name
            )  # type: ignore[misc]


async def test_a_message_on_a_pipe_is_measured_before_it_is_parsed() -> None:
    from toolgate.faces.mcp.jsonrpc import MAX_BYTES, RpcError, read
    from toolgate.faces.mcp.stdio import Lines

    assert MAX_BYTES <= wire.MAX_BYTES
    with pytest.raises(RpcError, match="values"):
        read(BODIES["lists"]())
    lines = Lines()
    assert lines.feed(b"x" * (MAX_BYTES + 1) + b"\n{}\n") == [None, b"{}"]
    await asyncio.sleep(0)
