"""What a Python program in the sandbox finds in its namespace: secrets, requests, structured output.

Stand-alone: it runs inside the sandbox, on the standard library alone. `link.ask` is one JSON object to the host and
one back. Nothing here is a wall: the program runs in the same interpreter.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import email.message
import http.client
import io
import json
import math
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Protocol

MASK = "[REDACTED]"
LONG_ENOUGH = 8
"""Shorter values would mangle ordinary text."""

_forms: dict[str, None] = {}
"""Values and how they look encoded, in the order they became known."""


class Tainted(str):
    """A secret as a program holds it: usable in requests, masked where it is printed.

    Its characters *are* the mask, so that print, repr, `%s`, join, json.dumps, logging, files and C code see nothing else.
    The value comes out where it is asked for by name: `+`, f-strings and `format`, `encode`, comparison.
    """

    __slots__ = ("_value",)
    _value: str

    def __new__(cls, value: str) -> Tainted:
        made = super().__new__(cls, MASK)
        made._value = value
        _know(value)
        return made

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return self._value.encode(encoding, errors)

    def __format__(self, spec: str) -> str:
        return format(self._value, spec)

    def __add__(self, other: str) -> Tainted:
        return Tainted(self._value + plain(other))

    def __radd__(self, other: str) -> Tainted:
        return Tainted(plain(other) + self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._value == plain(other)

    def __hash__(self) -> int:
        return hash(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __getitem__(self, key: Any) -> Tainted:
        return Tainted(self._value[key])

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str) and plain(part) in self._value

    def __str__(self) -> Tainted:
        return self

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> Any:
        return str, (MASK,)

    def strip(self, chars: str | None = None) -> Tainted:
        return Tainted(self._value.strip(chars))

    def startswith(self, *args: Any) -> bool:
        return self._value.startswith(*args)

    def endswith(self, *args: Any) -> bool:
        return self._value.endswith(*args)


def plain(text: str) -> str:
    return text._value if isinstance(text, Tainted) else text


def _know(value: str) -> None:
    if len(value) < LONG_ENOUGH:
        return
    raw = value.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(raw).decode()
    quoted = urllib.parse.quote(raw, safe="")
    for form in (value, json.dumps(value)[1:-1], repr(value)[1:-1], quoted, encoded, encoded.rstrip("=")):
        _forms[form] = None


def redact(text: str) -> str:
    for form in list(_forms):
        if form in text:
            text = text.replace(form, MASK)
    return text


class Masking(io.TextIOBase):
    """A text stream that masks known values in what passes through to another."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, text: str) -> int:
        self._inner.write(redact(str.__str__(text) if isinstance(text, Tainted) else text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._inner.flush()

    def fileno(self) -> int:
        return int(self._inner.fileno())

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    @property
    def buffer(self) -> Any:
        return self._inner.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._inner.encoding)

    @property
    def errors(self) -> str:  # type: ignore[override]
        return str(self._inner.errors)


PROXY = "127.0.0.1:3128"
DEPTH = 60
NAMES = (
    "get_secret", "list_secrets", "get_json", "post_json", "fetch_with_auth", "output", "sleep", "Tainted",
)  # fmt: skip


class HostLink(Protocol):
    def ask(self, message: dict[str, Any]) -> dict[str, Any]: ...


class NoNetwork(OSError):
    """The program was started without a network grant."""


def install(namespace: dict[str, Any], link: HostLink) -> None:
    """Put the helpers into the namespace, mask what is printed, and lead urllib to the proxy."""
    helpers = Helpers(link)
    namespace.update({name: getattr(helpers, name) for name in NAMES[:-1]}, Tainted=Tainted)
    sys.stdout, sys.stderr = Masking(sys.stdout), Masking(sys.stderr)
    urllib.request.install_opener(
        urllib.request.build_opener(urllib.request.ProxyHandler({}), ThroughProxy())
    )
    _open_urls()


class Helpers:
    def __init__(self, link: HostLink) -> None:
        self._link = link
        self._secrets: dict[str, Tainted] = {}

    def get_secret(self, name: str) -> Tainted:
        """A secret that was given to this program, by its name."""
        if name not in self._secrets:
            answer = self._link.ask({"op": "secret", "name": name})
            if "error" in answer:
                available = ", ".join(self.list_secrets()) or "none"
                raise KeyError(f"secret {name!r} not given: {answer['error']}. Available: {available}")
            self._secrets[name] = Tainted(
                str(answer["value"] if "value" in answer else answer["placeholder"])
            )
        return self._secrets[name]

    def list_secrets(self) -> list[str]:
        """The names of the secrets that were given to this program."""
        return list(self._link.ask({"op": "list"})["names"])

    def fetch_with_auth(
        self,
        url: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        auth_secret: str | None = None,
        timeout: float = 30.0,
    ) -> Response:
        """A request, with `Authorization: Bearer` from a secret if one is named. A body that is not text or bytes is sent
        as JSON. The answer comes back whatever its status."""
        sent = dict(headers or {})
        if auth_secret is not None:
            sent["Authorization"] = f"Bearer {self.get_secret(auth_secret)}"
        if body is not None and not isinstance(body, str | bytes):
            body = _wire(body)
            sent.setdefault("Content-Type", "application/json")
        data = body.encode() if isinstance(body, str) else body
        request = urllib.request.Request(plain(url), data, sent, method=method)  # noqa: S310  the proxy decides
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
                return Response(answer.status, answer.url, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, error.url or url, error.headers, error.read())

    def get_json(self, url: str, auth_secret: str | None = None) -> Any:
        """GET, and the JSON that comes back; an error for any status but 2xx."""
        return self.fetch_with_auth(url, auth_secret=auth_secret).checked().json()

    def post_json(self, url: str, body: Any, auth_secret: str | None = None) -> Any:
        """POST of JSON, and the JSON that comes back; an error for any status but 2xx."""
        headers = {"Content-Type": "application/json"}
        sent = _wire(body)
        return self.fetch_with_auth(url, "POST", headers, sent, auth_secret).checked().json()

    def output(self, data: Any) -> None:
        """Structured output: a JSON value for whoever ran the program."""
        answer = self._link.ask({"op": "output", "data": _jsonable(data)})
        if "error" in answer:
            raise ValueError(f"output() was refused: {answer['error']}")

    def sleep(self, seconds: float) -> Slept:
        """Wait. `await sleep(1)` works as well, and waits as long: to wait beside other tasks use asyncio.sleep."""
        time.sleep(seconds)
        return Slept()


class Slept:
    def __await__(self) -> Generator[None, None, None]:
        return
        yield


class Response:
    def __init__(self, status: int, url: str, headers: email.message.Message, body: bytes) -> None:
        self.status, self.url, self.headers, self.body = status, url, headers, body

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.body.decode(self.headers.get_content_charset("utf-8"), "replace")

    def json(self) -> Any:
        return json.loads(self.body)

    def checked(self) -> Response:
        if not self.ok:
            raise OSError(redact(f"HTTP {self.status} from {self.url}: {self.text[:2000]}"))
        return self

    def __repr__(self) -> str:
        return f"<Response {self.status}>"


class ThroughProxy(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Every request in absolute form to the proxy, https too: the proxy speaks TLS, so that it can put secrets in."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self._through(req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self._through(req)

    def _through(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        host, url = request.host, request.full_url
        _refuse_masks(url, request)
        request.host, request.selector = PROXY, url
        try:
            return self.do_open(http.client.HTTPConnection, request)
        except urllib.error.URLError as error:
            if isinstance(error.reason, PermissionError | ConnectionRefusedError):
                raise NoNetwork(
                    f"this program has no network, so {host} cannot be reached: run it again with a network grant for that host"
                ) from None
            raise
        finally:
            request.host = host


def _open_urls() -> None:
    """An address made with `+` from a secret is masked too; urllib takes addresses apart by their characters."""
    made = urllib.request.Request.__init__

    def opened(self: urllib.request.Request, url: str, *args: Any, **more: Any) -> None:
        made(self, plain(url), *args, **more)

    urllib.request.Request.__init__ = opened  # type: ignore[method-assign]


def _refuse_masks(url: str, request: urllib.request.Request) -> None:
    body = request.data if isinstance(request.data, bytes) else b""
    parts = [
        urllib.parse.unquote(url),
        *(value for _, value in request.header_items() if not isinstance(value, Tainted)),
    ]
    if MASK.encode() in body or any(MASK in str(part) for part in parts):
        raise ValueError(
            f"the request holds {MASK} in the place of a secret: json.dumps, %s and join see a mask. "
            "Give the object itself to post_json, or use an f-string"
        )


def _wire(body: Any) -> bytes:
    """JSON as it is sent: the body of a request is where a secret belongs."""
    return json.dumps(_open(body)).encode()


def _open(value: Any) -> Any:
    match value:
        case Tainted():
            return plain(value)
        case dict():
            return {plain(key) if isinstance(key, str) else key: _open(item) for key, item in value.items()}
        case list() | tuple():
            return [_open(item) for item in value]
    return value


def _jsonable(value: Any, depth: int = DEPTH) -> Any:
    """Plain JSON of what a program has: what is close to JSON becomes it, the rest is an error that says so."""
    if depth == 0:
        raise ValueError(f"output() takes values nested at most {DEPTH} deep")
    match value:
        case dict():
            return {redact(str(key)): _jsonable(item, depth - 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_jsonable(item, depth - 1) for item in value]
        case None | bool() | int() | float() | str() | bytes():
            return _scalar(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal() | uuid.UUID() | pathlib.PurePath():
            return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _jsonable(getattr(value, field.name), depth - 1)
            for field in dataclasses.fields(value)
        }
    for turn in ("tolist", "to_dict"):  # numpy's arrays and numbers, pandas' tables
        if callable(getattr(value, turn, None)):
            return _jsonable(getattr(value, turn)(), depth - 1)
    raise TypeError(
        f"output() takes JSON values, not {type(value).__name__}: make it a dict, list, string or number"
    )


def _scalar(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case str():
            return redact(str.__str__(value))
        case bytes():
            return redact(base64.b64encode(value).decode())
    return value
