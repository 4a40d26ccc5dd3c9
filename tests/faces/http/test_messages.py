"""Requests as bytes on a connection: in pieces, one behind another, and spelled as no honest client spells them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolgate.faces.http.connection import WAITING

from .serving import PATIENCE, House

MOST = 32 << 10
BODY = b'{"tool":"system.ping","args":{"message":"hi"}}'
LINE = b"POST /api/v1/calls HTTP/1.1\r\n"
HEAD = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(BODY)


def message(more: bytes = b"", body: bytes = BODY, host: bytes = b"127.0.0.1") -> bytes:
    head = b"Host: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % (host, len(body))
    return LINE + head + more + b"\r\n" + body


def bearer(here: House, name: str) -> bytes:
    return f"Authorization: Bearer {here.site.tokens.of(name)}\r\n".encode()


async def exchanged(
    here: House, *parts: bytes, answers: int = 1
) -> list[tuple[bytes, dict[bytes, bytes], Any]]:
    """What comes back: status line, headers, body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        return [await asyncio.wait_for(_answer(reader), PATIENCE) for _ in range(answers)]
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[bytes, dict[bytes, bytes], Any]:
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
    return status, headers, json.loads(await reader.readexactly(int(headers[b"content-length"])))


async def test_a_call_that_comes_in_pieces_is_answered_once(here: House) -> None:
    whole = message(bearer(here, "helper"))
    for at in (1, len(LINE), whole.index(b"\r\n\r\n") + 4, whole.index(b"\r\n\r\n") + 9, len(whole) - 1):
        [(status, _, answer)] = await exchanged(here, whole[:at], whole[at:])
        assert status == b"HTTP/1.1 200 OK"
        assert answer["ok"]
    assert (await here.kinds()).count("committed") == 5


async def test_what_comes_behind_a_call_waits_for_its_turn(here: House) -> None:
    one, other = (
        message(bearer(here, "helper"), b'{"tool":"system.ping","args":{"message":"%s"}}' % word)
        for word in (b"first", b"second")
    )
    get = b"GET /api/v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\n" + bearer(here, "helper") + b"\r\n"
    for parts in (
        (one + other + get,),
        (one, other, get),
        (one, other + get),
        (one[:-3], one[-3:] + other, get),
    ):
        first, second, third = await exchanged(here, *parts, answers=3)
        assert ("first" in str(first[2]), "second" in str(second[2])) == (True, True)
        assert "tools" in third[2]


async def test_nothing_runs_for_a_caller_who_left_while_a_human_was_asked(here: House) -> None:
    body = b'{"tool":"door.open","args":{"room":"lab"},"wait":30}'
    _, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
    writer.write(message(bearer(here, "helper"), body))
    async with asyncio.timeout(PATIENCE):
        while not (asked := await here.gate.approvals()):
            await asyncio.sleep(0.01)
        writer.transport.abort()
        while any(each.busy for each in here.site.places.each()):
            await asyncio.sleep(0.01)
    await here.gate.answer(asked[0].id, "approve")
    assert here.opened == []


async def test_a_crowd_of_requests_behind_one_is_sent_away(here: House) -> None:
    shown = bearer(here, "helper")
    first = message(shown, b'{"tool":"door.open","args":{"room":"lab"},"wait":30}')
    reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
    writer.write(first + message(shown) * (WAITING + 2))
    assert (await asyncio.wait_for(reader.read(), PATIENCE)).startswith(b"HTTP/1.1 400")
    writer.close()
    assert "committed" not in await here.kinds()


def chunked(trailer: bytes) -> bytes:
    head = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    return LINE + head + b"\r\n%x\r\n%s\r\n0\r\n%s\r\n" % (len(BODY), BODY, trailer)


async def test_what_stands_behind_a_body_is_no_header(here: House) -> None:
    [(status, _, _)] = await exchanged(here, chunked(bearer(here, "helper")))
    assert status.startswith(b"HTTP/1.1 401")
    assert "committed" not in await here.kinds()


WRONG = {
    "a length and chunks": message(b"Transfer-Encoding: chunked\r\n"),
    "a spelling of chunks": message(b"TRANSFER-encoding: gzip\r\n"),
    "chunks that are not the last coding": message(b"Transfer-Encoding: chunked, gzip\r\n"),
    "two lengths": message(b"Content-Length: 5\r\n"),
    "the same length twice": message(b"content-length: %d\r\n" % len(BODY)),
    "a signed length": message().replace(b"Length: ", b"Length: +"),
    "a list of lengths": message().replace(b"Length: 46", b"Length: 46, 46"),
    "two hosts": message(b"Host: 127.0.0.1\r\n"),
    "no host": message().replace(b"Host", b"Most"),
    "a small letter in the method": message().replace(b"POST", b"pOST"),
    "a space before the colon": message(b"X : a\r\n"),
    "a lone carriage return": message(b"X: a\rY: b\r\n"),
    "a NUL": message(b"X: a\0b\r\n"),
    "no name": message(b": a\r\n"),
    "a name in brackets": message(b"[X]: a\r\n"),
    "a version that is none": message().replace(b"HTTP/1.1", b"HTTP/1.7"),
    "a long head": message(b"X: %s\r\n" % (b"a" * MOST)),
    "a head without an end": LINE + HEAD + b"X: %s" % (b"a" * 2 * MOST),
    "a byte in the target": message().replace(b"/calls", b"/c\xffalls"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_request_that_two_readers_could_read_differently_is_refused(here: House, name: str) -> None:
    shown = bearer(here, "helper")
    text = WRONG[name].replace(b"Content-Type", shown[:-2] + b"\r\nContent-Type", 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url.rpartition(":")[2]))
    writer.write(text)
    status = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    assert status.startswith(b"HTTP/1.1 4"), status
    assert "committed" not in await here.kinds()
