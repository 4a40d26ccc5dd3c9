"""Where a program's request leads: to what was granted, whatever it calls it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sandbox.egress.world import API, answer, echo, error, local_names, open_way, parsed, proxied, server

from .words import QUICK, lines


async def test_a_name_that_leads_elsewhere_later_does_not_lead_a_program_there() -> None:
    turns: list[str] = []

    async def rebinding(name: str) -> Sequence[str]:
        turns.append(name)
        return ["127.0.0.1"] if len(turns) == 1 else ["127.0.0.2"]

    async with server(answer()) as place, open_way(place, resolver=rebinding) as way:
        for _ in range(5):
            assert (await way.get(place.url()))[0] == 200
            assert way.last.address == "127.0.0.1"
        assert turns == [API]


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"]]
)
async def test_a_granted_name_that_leads_to_a_private_address_is_refused(answers: list[str]) -> None:
    async def resolver(_: str) -> Sequence[str]:
        return answers

    async with (
        server(answer()) as place,
        proxied([f"evil.example.test:{place.port}"], resolver=resolver) as way,
    ):
        status, body = await way.get(place.url(host="evil.example.test"))
        assert (status, error(body)["code"]) == (403, "not_allowed")
        got = await way.say(lines(f"CONNECT evil.example.test:{place.port} HTTP/1.1", "Host: x"))
        assert parsed(got)[0] == 403
        assert place.asked == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "file:///etc/passwd",
    ],
)
async def test_a_redirect_is_handed_back_and_following_it_is_checked_again(location: str) -> None:
    page = answer(b"", f"Location: {location}\r\n", "302 Found")
    async with server(page) as place, open_way(place, "169.254.169.254", "127.0.0.1:1", "[::1]") as way:
        head = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {API}:{place.port}"))
        assert f"location: {location}".encode() in head.lower()
        status, _ = await way.get(location)
        assert status in (400, 403)
        assert len(place.asked) == 1


ODD_TARGETS = [
    "http://allowed@evil.test/", "http://{api}@evil.test/", "http://{api}:80@evil.test/", "http://evil.test\\@{api}/",
    "http://evil.test/\\{api}", "http://evil.test#@{api}/", "http://{api}#@evil.test/", "http://evil.test?@{api}/",
    "http://{api}.evil.test/", "http://evil.test%2f@{api}/", "http://{api}%00.evil.test/", "http://{api}%2eevil.test/",
    "http:///{api}/", "http:/{api}/", "http:{api}/", "//{api}/", "http://[{api}]/", "http://{api}:80:80/", "http://{api}:/",
    "http://{api}:+80/", "http://{api}:0x50/", "http://{api}:99999/", "https:/\\{api}/", "ftp://{api}/", "gopher://{api}/_x",
    "file://{api}/etc/passwd", "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0177.0.0.1/", "http://0/", "http://[::]/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[fe80::1%25lo]/", "http://localhost/", "http://localhost.localdomain/", "http://169.254.169.254/",
    "http://metadata.google.internal/", "http://{api}..evil.test/", "http://\xe9vil.test/", "http://evil.test/ HTTP/1.1 {api}",
]  # fmt: skip


@pytest.mark.parametrize("target", ODD_TARGETS)
async def test_no_spelling_of_a_target_leads_out_of_the_grant(target: str) -> None:
    resolved: list[str] = []

    async def resolver(name: str) -> Sequence[str]:
        resolved.append(name)
        return await local_names(name)

    url = target.format(api=API)
    async with proxied([API], private=[f"{API}:80"], resolver=resolver) as way:
        for head in (
            [f"GET {url} HTTP/1.1", f"Host: {API}"],
            ["GET / HTTP/1.1", "Host: 127.0.0.1:3128", f"x-toolgate-url: {url}"],
        ):
            status, body = parsed(await way.say(lines(*head)))
            # What stands before a fragment is the URL, and nothing listens there.
            assert status in (400, 403) or (status == 502 and url.startswith(f"http://{API}#"))
            assert error(body)["fix"]
            assert "@" not in way.last.url.partition("?")[0].partition("#")[0]
        assert set(resolved) <= {API}


async def test_a_host_header_for_another_host_is_refused_and_the_right_one_is_written_anew() -> None:
    async with server(echo) as place, open_way(place) as way:
        for host in ("evil.test", API, f"{API}:1", f"x@{API}:{place.port}", "", f"{API}:{place.port}/"):
            assert parsed(await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: {host}")))[0] == 400
        assert place.asked == []
        got = await way.say(lines(f"GET {place.url()} HTTP/1.1", f"Host: API.EXAMPLE.test.:{place.port}"))
        assert parsed(got)[0] == 400
        assert place.asked[0].headers["host"] == f"{API}:{place.port}"


async def test_a_tunnel_goes_to_granted_ports_only_and_carries_both_ways() -> None:
    async with server(answer()) as place, open_way(place, limits=QUICK) as way:
        for other in (
            f"{API}:22",
            f"{API}:{place.port + 1}",
            f"evil.test:{place.port}",
            "127.0.0.1:22",
            f"{API}:0",
            f"x@{API}:1",
        ):
            got = await way.say(lines(f"CONNECT {other} HTTP/1.1", "Host: x"))
            assert parsed(got)[0] in (400, 403)
        inner = lines("GET /inside HTTP/1.1", "Host: x")
        got = await way.say(lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x") + inner)
        assert got.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
        assert got.endswith(b"hello")
        assert place.asked[0].line == "GET /inside HTTP/1.1"


async def test_a_program_cannot_forge_headers_or_targets_through_its_url() -> None:
    async with server(echo) as place, open_way(place) as way:
        await way.get(place.url("/%0d%0aX-Evil:%201"))
        assert place.asked[0].line == "GET /%0d%0aX-Evil:%201 HTTP/1.1"
        assert "x-evil" not in place.asked[0].headers


async def test_the_record_names_where_a_tunnel_went_whatever_its_headers_say() -> None:
    async with server(answer()) as place, open_way(place, limits=QUICK) as way:
        await way.say(
            lines(f"CONNECT {API}:{place.port} HTTP/1.1", "Host: x", "x-toolgate-url: http://harmless.test/")
        )
        assert (way.last.method, way.last.url) == ("CONNECT", f"{API}:{place.port}")


@pytest.mark.parametrize("method", ["TRACE", "trace", "connect", "Connect"])
async def test_methods_that_send_back_or_hide_are_never_forwarded_in_any_case(method: str) -> None:
    async with server(echo) as place, open_way(place) as way:
        assert (await way.get(place.url(), method=method))[0] == 403
        assert place.asked == []
