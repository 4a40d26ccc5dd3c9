"""A small internet on 127.0.0.1: servers that answer as they are told, and proxies for programs that want to reach them."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from toolgate.sandbox.egress.grant import HostGrant
from toolgate.sandbox.egress.proxy import Proxy

API = "api.example.test"
"""The name that leads to 127.0.0.1."""

Handler = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Asked:
    """A request as the server received it."""

    line: str
    headers: dict[str, str]
    names: list[str]
    body: bytes
    reader: asyncio.StreamReader


@dataclass
class Place:
    port: int
    asked: list[Asked]

    def url(self, path: str = "/", scheme: str = "http", host: str = API) -> str:
        return f"{scheme}://{host}:{self.port}{path}"


async def local_names(name: str) -> Sequence[str]:
    if not name.endswith("example.test"):
        raise OSError("no such name")
    return ["127.0.0.1"]


def answer(body: bytes = b"hello", head: str = "", status: str = "200 OK") -> Handler:
    async def handle(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)

    return handle


def raw(data: bytes) -> Handler:
    async def handle(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return handle


async def echo(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """An error page that says everything it was sent."""
    body = json.dumps(
        {"line": asked.line, "headers": asked.headers, "body": asked.body.decode("latin-1")}
    ).encode()
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n" % len(body))
    writer.write(f"X-Echo: {asked.headers.get('authorization', '')}\r\n\r\n".encode("latin-1") + body)


@asynccontextmanager
async def server(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Place]:
    place = Place(0, [])
    tasks: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                asked = await _read(reader)
                place.asked.append(asked)
                await handler(asked, writer)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    place.port = listening.sockets[0].getsockname()[1]
    try:
        yield place
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip("\r\n").split("\r\n")
    pairs = [one.split(": ", 1) for one in rest]
    headers = {name.lower(): value for name, value in pairs}
    body = b""
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif "transfer-encoding" in headers:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    return Asked(line, headers, [name.lower() for name, _ in pairs], body, reader)


@dataclass
class Way:
    port: int
    proxy: Proxy
    serving: asyncio.Task[None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def say(self, data: bytes, then: bytes = b"") -> bytes:
        """Raw bytes to the proxy; all that it answers."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            with suppress(OSError):
                writer.write(data)
                await writer.drain()
            if then:
                await asyncio.sleep(0.02)
                writer.write(then)
            got = bytearray()
            with suppress(OSError):
                while data := await asyncio.wait_for(reader.read(65536), 10):
                    got += data
            return bytes(got)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def get(self, url: str, *headers: str, method: str = "GET", body: bytes = b"") -> tuple[int, bytes]:
        """A request as a simple client sends it: status and body."""
        host = url.split("/")[2].rpartition("@")[2]
        lines = [f"{method} {url} HTTP/1.1", f"Host: {host}", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return parsed(await self.say("\r\n".join([*lines, "", ""]).encode() + body))

    @property
    def last(self) -> Any:
        return self.proxy.requests[-1]


def parsed(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            whole += body[: int(size, 16)]
            body = body[int(size, 16) + 2 :]
        body = whole
    return (int(head.split(b" ")[1]), body) if head else (0, b"")


def error(body: bytes) -> dict[str, str]:
    found: dict[str, str] = json.loads(body)["error"]
    assert set(found) == {"code", "message", "fix"}
    return found


@asynccontextmanager
async def proxied(
    hosts: Sequence[str], methods: Sequence[str] | None = None, **more: Any
) -> AsyncIterator[Way]:
    """A proxy on a socket that stands for the one inside a program's network. Nothing of it may be left behind."""
    before = asyncio.all_tasks()
    more.setdefault("resolver", local_names)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        proxy = Proxy(HostGrant.parse(hosts, methods), **more)
        serving = asyncio.create_task(proxy.serve(listener))
        try:
            yield Way(listener.getsockname()[1], proxy, serving)
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
    left = {task for task in asyncio.all_tasks() - before if "toolgate/sandbox/egress" in repr(task)}
    assert not left


@asynccontextmanager
async def open_way(place: Place, *hosts: str, **more: Any) -> AsyncIterator[Way]:
    """A proxy for a program that may reach this place by its name."""
    allowed = f"{API}:{place.port}"
    async with proxied([allowed, *hosts], private=[allowed], **more) as way:
        yield way


def certificates(directory: Path, *names: str) -> tuple[ssl.SSLContext, str]:
    """A server's TLS with a certificate for these names, and the file of the authority that signed it."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )

    authority = (
        builder(issuer, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    leaf = (
        builder(x509.Name([]), key.public_key())
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (directory / "ca.pem").write_bytes(authority.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "server.pem").write_bytes(private + leaf.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem")
    return context, str(directory / "ca.pem")


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign, key_cert_sign=sign, crl_sign=sign, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
