"""A program uses a secret that it never holds: it sends a placeholder, and the host that the secret is for gets the value."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest

from .world import API, Asked, answer, certificates, echo, error, open_way, parsed, proxied, raw, server

VALUE = 'v"al ue/+&\u00e91234'
"""A value that needs another escape wherever it goes."""
MARK = "toolgate-secret-token-6f1c"
MASK = b"[TOKEN]"


@dataclass
class Vault:
    """Secrets in the clear, and a redaction that knows every form used here."""

    hosts: tuple[str, ...] = (API,)
    placeholders: dict[str, str] = field(default_factory=lambda: {MARK: "TOKEN"})
    value: str = VALUE

    def resolve(self, name: str, place: str) -> str | None:
        return self.value if place.rpartition(":")[0] in self.hosts else None

    def stream(self, names: Sequence[str]) -> Stream:
        assert names == ("TOKEN",)
        return Stream(self.value)


class Stream:
    def __init__(self, value: str) -> None:
        plain = value.encode()
        escaped = json.dumps(value)[1:-1]
        self.forms = [
            plain, escaped.encode(), quote(value, safe="").encode(), json.dumps(escaped)[1:-1].encode(),
            json.dumps(plain.decode("latin-1"))[1:-1].encode(), base64.b64encode(b"me:" + plain),
        ]  # fmt: skip
        self.held = b""

    def feed(self, data: bytes) -> bytes:
        self.held += data
        for form in self.forms:
            self.held = self.held.replace(form, MASK)
        keep = max(map(len, self.forms)) - 1
        out, self.held = self.held[:-keep], self.held[-keep:]
        return out

    def close(self) -> bytes:
        return self.held


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    return certificates(tmp_path_factory.mktemp("tls"), API, "www.example.test")


def clean(data: bytes) -> bool:
    return not any(form in data for form in Stream(VALUE).forms)


async def test_the_value_goes_to_the_host_and_does_not_come_back(tls: tuple[ssl.SSLContext, str]) -> None:
    context, ca_file = tls
    async with server(echo, context) as place, open_way(place, ca_file=ca_file, secrets=Vault()) as way:
        url = place.url(f"/p/{MARK}?key={MARK}&x=1", "https")
        body = json.dumps({"token": MARK}).encode()
        lines = [
            f"POST {url} HTTP/1.1", f"Host: {API}:{place.port}", f"Authorization: Bearer {MARK}",
            "Content-Type: application/json", "Accept-Encoding: gzip", "Range: bytes=0-5", f"Content-Length: {len(body)}",
        ]  # fmt: skip
        got = await way.say("\r\n".join([*lines, "", ""]).encode() + body)
        (asked,) = place.asked
        assert asked.line == f"POST /p/{quote(VALUE, safe='')}?key={quote(VALUE, safe='')}&x=1 HTTP/1.1"
        assert asked.headers["authorization"].encode("latin-1").decode() == f"Bearer {VALUE}"
        assert json.loads(asked.body) == {"token": VALUE}
        assert (asked.headers["accept-encoding"], "range" in asked.headers) == ("identity", False)
        assert parsed(got)[0] == 400
        assert clean(got)
        assert got.count(MASK) >= 4
        assert f"x-echo: bearer {MASK.decode()}".lower().encode() in got.lower()
        assert (way.last.injected, way.last.url) == (("TOKEN",), url)


async def test_basic_credentials_and_forms_are_filled_in_their_own_encoding(
    tls: tuple[ssl.SSLContext, str],
) -> None:
    context, ca_file = tls
    async with server(echo, context) as place, open_way(place, ca_file=ca_file, secrets=Vault()) as way:
        basic = base64.b64encode(f"me:{MARK}".encode()).decode()
        form = "Content-Type: application/x-www-form-urlencoded"
        _, got = await way.get(
            place.url(scheme="https"),
            f"Authorization: Basic {basic}",
            form,
            method="POST",
            body=f"a={MARK}&b=1".encode(),
        )
        (asked,) = place.asked
        assert base64.b64decode(asked.headers["authorization"].split(" ")[1]).decode() == f"me:{VALUE}"
        assert asked.body.decode() == "a=v%22al+ue%2F%2B%26%C3%A91234&b=1"
        assert clean(got)


@pytest.mark.parametrize("where", ["path", "header", "body", "basic"])
async def test_a_host_that_the_secret_is_not_for_gets_neither_value_nor_placeholder(
    tls: tuple[ssl.SSLContext, str], where: str
) -> None:
    context, ca_file = tls
    async with server(echo, context) as place:
        hosts = [f"www.example.test:{place.port}"]
        async with proxied(hosts, private=hosts, ca_file=ca_file, secrets=Vault()) as way:
            basic = base64.b64encode(f"me:{MARK}".encode()).decode()
            header = {"header": f"X-Key: {MARK}", "basic": f"Authorization: Basic {basic}"}.get(
                where, "X-Key: 1"
            )
            path = f"/{MARK}" if where == "path" else "/"
            url = place.url(path, "https", "www.example.test")
            status, body = await way.get(
                url, header, method="POST", body=MARK.encode() if where == "body" else b"x"
            )
            assert status == 403
            assert "the secret TOKEN is not for www.example.test" in error(body)["message"]
            assert (place.asked, way.last.injected, way.last.allowed) == ([], (), False)


async def test_no_secret_goes_over_plain_http_except_to_a_loopback_host_that_the_owner_listed() -> None:
    async with server(echo) as place, open_way(place, secrets=Vault()) as way:
        status, _ = await way.get(place.url(), f"X-Key: {MARK}")
        assert (status, way.last.injected) == (400, ("TOKEN",))

    async def elsewhere(_: str) -> Sequence[str]:
        return ["192.168.77.77"]

    listed = [f"{API}:80"]
    async with proxied(listed, private=listed, secrets=Vault(), resolver=elsewhere) as way:
        status, body = await way.get(f"http://{API}/", f"X-Key: {MARK}")
        assert (status, "plain http" in error(body)["message"]) == (403, True)


async def test_a_placeholder_in_a_body_that_cannot_be_filled_is_refused() -> None:
    async with server(echo) as place, open_way(place, secrets=Vault()) as way:
        host = f"Host: {API}:{place.port}"
        status, body = await way.get(
            place.url(),
            "Content-Type: application/octet-stream",
            method="POST",
            body=b"\0" * 10 + MARK.encode(),
        )
        assert (status, error(body)["code"]) == (403, "not_allowed")
        middle = len(MARK) // 2
        chunks = b"".join(
            b"%x\r\n%s\r\n" % (len(part), part) for part in (MARK[:middle].encode(), MARK[middle:].encode())
        )
        head = f"POST {place.url()} HTTP/1.1\r\n{host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        assert parsed(await way.say(head + chunks + b"0\r\n\r\n"))[0] == 403
        large = b"x" * (1 << 20) + MARK.encode()
        status, _ = await way.get(place.url(), "Content-Type: text/plain", method="POST", body=large)
        assert status == 403
        assert [asked for asked in place.asked if MARK.encode() in asked.body] == []


async def test_what_a_host_was_sent_before_does_not_come_back_later_in_pieces_or_packed() -> None:
    kept: list[str] = []

    async def remembers(asked: Asked, writer: asyncio.StreamWriter) -> None:
        kept.append(asked.headers.get("x-key", ""))
        data = kept[0].encode("latin-1") * 3
        for byte in b"HTTP/1.1 200 OK\r\n\r\n" + data:
            writer.write(bytes([byte]))
            await writer.drain()

    async with server(remembers) as place, open_way(place, secrets=Vault()) as way:
        await way.get(place.url(), f"X-Key: {MARK}")
        assert kept[0].encode("latin-1").decode() == VALUE
        assert await way.get(place.url(), "Range: bytes=0-3") == (200, MASK * 3)
        assert "range" not in place.asked[-1].headers
        assert way.last.injected == ()


async def test_an_answer_that_is_packed_all_the_same_is_not_handed_on() -> None:
    page = answer(gzip.compress(VALUE.encode()), "Content-Encoding: gzip\r\n")
    async with server(page) as place, open_way(place, secrets=Vault()) as way:
        status, body = await way.get(place.url(), f"X-Key: {MARK}")
        assert (status, "packed" in error(body)["message"]) == (502, True)


@pytest.mark.parametrize(
    "page",
    [
        "HTTP/1.1 200 {}\r\nContent-Length: 0\r\n\r\n",
        "{} not http\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbroken {}\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Long: {}{}\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}\r\nx\r\n0\r\nX-Trailer: {}\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: http://x/?{}\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 103 Early\r\nLink: {}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Toolgate-Error: {}\r\n\r\n",
    ],
)
async def test_no_part_of_an_answer_carries_the_value(page: str) -> None:
    vault = Vault(value="plainvalue123456")
    told = page.replace("{}", vault.value).encode()
    async with server(raw(told)) as place, open_way(place, secrets=vault) as way:
        head = f"GET {place.url()} HTTP/1.1\r\nHost: {API}:{place.port}\r\nX-Key: {MARK}\r\n\r\n"
        got = await way.say(head.encode())
        assert got
        assert vault.value.encode() not in got
        assert vault.value not in repr(way.proxy.requests)


async def test_a_header_name_made_of_the_value_is_left_out() -> None:
    vault = Vault(value="plainvalue123456")
    page = b"HTTP/1.1 200 OK\r\nX-plainvalue123456: 1\r\nX-Other: 2\r\nContent-Length: 0\r\n\r\n"
    async with server(raw(page)) as place, open_way(place, secrets=vault) as way:
        head = f"GET {place.url()} HTTP/1.1\r\nHost: {API}:{place.port}\r\nX-Key: {MARK}\r\n\r\n"
        got = (await way.say(head.encode())).lower()
        assert b"x-other" in got
        assert b"plainvalue" not in got


async def test_a_value_that_would_end_a_header_is_not_sent() -> None:
    async with server(echo) as place, open_way(place, secrets=Vault(value="abcdefgh\r\nX-Evil: 1")) as way:
        status, body = await way.get(place.url(), f"X-Key: {MARK}")
        assert (status, place.asked) == (502, [])
        assert "abcdefgh" not in error(body)["message"]


async def test_a_host_that_a_secret_is_for_is_not_reached_by_a_tunnel() -> None:
    async with server(echo) as place, open_way(place, secrets=Vault()) as way:
        line = f"CONNECT {API}:{place.port} HTTP/1.1\r\nHost: {API}:{place.port}\r\n\r\n"
        status, body = parsed(await way.say(line.encode()))
        assert (status, "is not reached by CONNECT" in error(body)["message"]) == (403, True)


async def test_the_record_is_redacted_and_has_no_user_names() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2hunter2", "[masked]")

    async with server(echo) as place, open_way(place, redact=redact) as way:
        await way.get(place.url("/?password=hunter2hunter2"))
        assert way.last.url == place.url("/?password=[masked]")
        await way.get(f"http://me:hunter2hunter2@{API}/x")
        assert (way.last.allowed, way.last.url) == (False, f"http://{API}/x")
        assert "hunter2" not in repr(way.proxy.requests)
