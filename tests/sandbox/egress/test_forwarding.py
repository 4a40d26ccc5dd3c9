"""What goes through: plain and TLS requests of real clients, with what they may say and what comes back."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import urllib.error
import urllib.request

import deno
import httpx2
import pytest

from sampling import fewer
from toolgate.sandbox.egress.grant import EgressLimits

from .world import API, Asked, answer, certificates, echo, error, open_way, parsed, proxied, raw, server


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    return certificates(tmp_path_factory.mktemp("tls"), API, "127.0.0.1")


async def test_a_plain_request_reaches_the_allowed_host_and_is_recorded() -> None:
    async with server(answer()) as place, open_way(place) as way:
        assert await way.get(place.url("/a?b=c")) == (200, b"hello")
        (request,) = way.proxy.requests
        assert (request.method, request.url, request.allowed) == ("GET", place.url("/a?b=c"), True)
        assert (request.status, request.address, request.reason) == (200, "127.0.0.1", "")
        assert request.sent > 40
        assert request.received > 40
        (asked,) = place.asked
        assert asked.line == "GET /a?b=c HTTP/1.1"
        assert asked.headers["host"] == f"{API}:{place.port}"


async def test_a_host_that_was_not_granted_is_refused_in_words_and_recorded() -> None:
    async with server(answer()) as place, open_way(place) as way:
        status, body = await way.get("http://other.example.test/")
        assert status == 403
        assert error(body)["code"] == "not_allowed"
        assert "other.example.test:80" in error(body)["message"]
        assert API in error(body)["message"]
        assert (way.last.allowed, way.last.status, way.last.address) == (False, 403, "")
        assert place.asked == []


async def test_the_proxy_speaks_tls_itself_for_an_https_url(tls: tuple[ssl.SSLContext, str]) -> None:
    context, ca_file = tls
    async with server(echo, context) as place, open_way(place, ca_file=ca_file) as way:
        status, body = await way.get(place.url("/x", "https"), "X-Mine: 1")
        assert status == 400
        assert json.loads(body)["headers"]["x-mine"] == "1"
        assert (way.last.status, way.last.allowed) == (400, True)


async def test_a_certificate_for_another_name_or_from_nobody_is_refused(
    tls: tuple[ssl.SSLContext, str],
) -> None:
    context, ca_file = tls
    async with server(answer(), context) as place:
        other = [f"www.example.test:{place.port}"]
        async with proxied(other, private=other, ca_file=ca_file) as way:
            status, body = await way.get(place.url(scheme="https", host="www.example.test"))
            assert (status, "certificate" in error(body)["message"]) == (502, True)
        async with open_way(place) as way:  # without the authority
            status, body = await way.get(place.url(scheme="https"))
            assert (status, "certificate" in error(body)["message"]) == (502, True)
        assert place.asked == []


async def test_fetch_in_javascript_names_its_url_in_a_header(tls: tuple[ssl.SSLContext, str]) -> None:
    context, ca_file = tls
    async with server(echo, context) as place, open_way(place, ca_file=ca_file) as way:
        program = f"""
            const answer = await fetch("{way.url}/", {{method: "POST", body: "text",
                headers: {{"x-toolgate-url": "{place.url("/deno#part", "https")}"}}}});
            console.log(answer.status, JSON.stringify((await answer.json())));
        """
        process = await asyncio.create_subprocess_exec(
            deno.find_deno_bin(), "run", "--allow-net", "--no-config", "-",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, problems = await process.communicate(program.encode())
        assert process.returncode == 0, problems
        status, _, rest = out.decode().partition(" ")
        seen = json.loads(rest)
        assert (status, seen["line"], seen["body"]) == ("400", "POST /deno HTTP/1.1", "text")
        assert "x-toolgate-url" not in seen["headers"]
        assert seen["headers"]["host"] == f"{API}:{place.port}"


async def test_urllib_and_httpx_go_through_the_proxy_as_through_any(tls: tuple[ssl.SSLContext, str]) -> None:
    context, ca_file = tls
    async with server(answer(b"plain")) as place, server(answer(b"secure"), context) as secure:
        hosts = [f"{API}:{place.port}", f"{API}:{secure.port}"]
        async with proxied(hosts, private=hosts) as way:

            def by_urllib() -> bytes:
                proxies = urllib.request.ProxyHandler({"http": way.url, "https": way.url})
                trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file))
                opener = urllib.request.build_opener(proxies, trust)
                plain: bytes = opener.open(place.url(), timeout=10).read()
                return plain + opener.open(secure.url(scheme="https"), timeout=10).read()

            assert await asyncio.to_thread(by_urllib) == b"plainsecure"
            trust = ssl.create_default_context(cafile=ca_file)
            async with httpx2.AsyncClient(proxy=way.url, verify=trust, trust_env=False) as client:
                assert (await client.get(place.url())).text == "plain"
                assert (
                    await client.post(secure.url(scheme="https"), content=b"x" * 100_000)
                ).text == "secure"
        # A tunnel ends when its client closes it, or with the program; either way it is there.
        methods = [request.method for request in way.proxy.requests]
        assert sorted(methods) == ["CONNECT", "CONNECT", "GET", "GET"]


async def test_bodies_go_on_in_their_own_framing_with_their_methods() -> None:
    async with server(echo) as place, open_way(place) as way:
        _, body = await way.get(place.url(), method="PUT", body=b"known")
        assert json.loads(body)["body"] == "known"
        head = (
            f"POST {place.url()} HTTP/1.1\r\nHost: {API}:{place.port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        _, body = parsed(
            await way.say(head.encode() + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n")
        )
        assert json.loads(body)["body"] == "abcde"
        assert place.asked[-1].headers["transfer-encoding"] == "chunked"
        _, body = await way.get(place.url(), method="DELETE")
        assert place.asked[-1].line.startswith("DELETE")


async def test_who_waits_for_100_continue_gets_it_only_if_the_host_is_allowed() -> None:
    async with server(echo) as place, open_way(place) as way:
        lines = "POST {} HTTP/1.1\r\nHost: {}\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        got = await way.say(lines.format(place.url(), f"{API}:{place.port}").encode(), b"abc")
        assert got.startswith(b"HTTP/1.1 100")
        assert parsed(got)[0] == 400
        assert "expect" not in place.asked[0].headers
        got = await way.say(lines.format("http://evil.test/", "evil.test").encode())
        assert got.startswith(b"HTTP/1.1 403")


async def test_headers_that_are_for_the_next_hop_only_stay_here() -> None:
    async with server(echo) as place, open_way(place) as way:
        status, _ = await way.get(
            place.url(), "Proxy-Authorization: Basic eDp5", "Proxy-Connection: keep-alive", "Keep-Alive: 5", "TE: gzip",
            "Connection: keep-alive, X-Secret-Hop", "X-Secret-Hop: 1", "X-Toolgate-Other: 1", "X-Mine: 2",
        )  # fmt: skip
        assert status == 400
        assert sorted(place.asked[0].names) == ["connection", "host", "x-mine"]
        assert place.asked[0].headers["connection"] == "close"


async def test_answers_come_back_as_they_are() -> None:
    packed = gzip.compress(b"page" * 1000)
    page = answer(packed, "Content-Encoding: gzip\r\nSet-Cookie: a=b\r\n")
    async with server(page) as place, open_way(place) as way:
        got = await way.say(f"GET {place.url()} HTTP/1.1\r\nHost: {API}:{place.port}\r\n\r\n".encode())
        assert got.endswith(packed)
        assert b"set-cookie: a=b" in got.lower()
    informed = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
    async with server(raw(informed)) as place, open_way(place) as way:
        assert await way.get(place.url()) == (204, b"")
    async with (
        server(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")) as place,
        open_way(place) as way,
    ):
        got = await way.say(f"HEAD {place.url()} HTTP/1.1\r\nHost: {API}:{place.port}\r\n\r\n".encode())
        assert b"content-length: 999" in got.lower()
    async with server(raw(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")) as place, open_way(place) as way:
        assert await way.get(place.url()) == (200, b"until the end")


async def test_only_granted_methods_are_sent_and_no_tunnel_hides_others() -> None:
    async with server(answer()) as place, open_way(place, methods=["GET", "HEAD"]) as way:
        assert (await way.get(place.url()))[0] == 200
        for method in ("POST", "DELETE", "TRACE", "get"):
            status, body = await way.get(place.url(), method=method)
            assert (status, error(body)["code"]) == (403, "not_allowed")
        got = await way.say(
            f"CONNECT {API}:{place.port} HTTP/1.1\r\nHost: {API}:{place.port}\r\n\r\n".encode()
        )
        assert parsed(got)[0] == 403
        assert b"hide the method" in got
        assert len(place.asked) == 1


async def test_what_ends_is_told_to_the_listener_of_requests_in_order() -> None:
    told: list[str] = []
    async with (
        server(answer()) as place,
        open_way(place, on_request=lambda request: told.append(f"{request.status} {request.url}")) as way,
    ):
        await way.get(place.url("/1"))
        await way.get("http://evil.test/2")
        assert told == [f"200 {place.url('/1')}", "403 http://evil.test/2"]
        assert [f"{request.status} {request.url}" for request in way.proxy.requests] == told


async def test_what_cannot_be_recorded_ends_the_network() -> None:
    def broken(_: object) -> None:
        raise RuntimeError("the ledger is gone")

    async def one_request() -> None:
        async with server(answer()) as place, open_way(place, on_request=broken) as way:
            await way.get(place.url())
            await asyncio.wait_for(asyncio.shield(way.serving), 5)

    with pytest.raises(RuntimeError, match="the ledger is gone"):
        await one_request()


async def test_a_request_that_was_under_way_when_the_program_ended_is_recorded() -> None:
    async def silent(*_: object) -> None:
        await asyncio.sleep(60)

    async with server(silent) as place:
        async with open_way(place) as way:
            client = asyncio.create_task(way.get(place.url()))
            while not place.asked:
                await asyncio.sleep(0.01)
        await client
        assert (way.last.allowed, way.last.reason) == (True, "the program ended first")


async def test_an_answer_before_the_whole_body_was_sent_reaches_the_program() -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(early, "127.0.0.1", 0) as listening:
        place = f"{API}:{listening.sockets[0].getsockname()[1]}"
        async with proxied([place], private=[place]) as way:
            head = f"POST http://{place}/ HTTP/1.1\r\nHost: {place}\r\nContent-Length: 1000000\r\n\r\n"
            assert parsed(await way.say(head.encode() + b"x" * 500_000)) == (413, b"no")
            assert way.last.status == 413


async def test_a_refusal_reaches_a_program_that_is_still_sending() -> None:
    async with proxied([API]) as way:

        def by_urllib() -> int:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": way.url}))
            try:
                opener.open("http://evil.test/", data=b"x" * (4 << 20), timeout=10)
            except urllib.error.HTTPError as refused:
                refused.close()
                return refused.code
            return 0

        assert await asyncio.to_thread(by_urllib) == 403


async def test_a_long_upload_does_not_make_the_host_late() -> None:
    limits = EgressLimits(idle_s=0.3)
    async with server(echo) as place, open_way(place, limits=limits) as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(
            f"POST {place.url()} HTTP/1.1\r\nHost: {API}:{place.port}\r\nContent-Length: 8\r\n\r\n".encode()
        )
        for _ in range(8):
            await asyncio.sleep(0.1)
            writer.write(b"x")
        status, body = parsed(await reader.read())
        assert (status, json.loads(body)["body"]) == (400, "xxxxxxxx")
        writer.close()
        await writer.wait_closed()


async def test_megabytes_go_through_tls_both_ways_and_arrive_whole(tls: tuple[ssl.SSLContext, str]) -> None:
    context, ca_file = tls
    large = bytes(range(256)) * (fewer(4, 1) << 12)

    async def mirror(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(asked.body) + asked.body)

    async with server(mirror, context) as place, open_way(place, ca_file=ca_file) as way:
        many = await asyncio.gather(
            *(way.get(place.url(scheme="https"), method="POST", body=large) for _ in range(3))
        )
        assert many == [(200, large)] * 3
