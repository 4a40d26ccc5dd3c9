"""The Python prelude, in an interpreter of its own, with a host that answers and a proxy that records."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import toolgate.sandbox
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job, Request

HELD = "tg_placeholder_0a1b2c/3d+4e"
DRIVER = """
import json, sys
sys.path.insert(0, {directory!r})
from inside import prelude
prelude.PROXY = {proxy!r}
outputs = []
class Link:
    def ask(self, message):
        json.dumps(message)
        if message["op"] == "list":
            return {{"names": ["TOKEN"]}}
        if message["op"] == "output":
            outputs.append(message["data"])
            return {{"ok": True}}
        return {{"placeholder": {held!r}}} if message["name"] == "TOKEN" else {{"error": "it does not exist"}}
namespace = {{"__name__": "__main__"}}
prelude.install(namespace, Link())
import traceback
code = sys.stdin.read()
try:
    exec(compile(code, "program.py", "exec"), namespace)
except BaseException:
    traceback.print_exc()
sys.stdout.flush()
sys.__stdout__.write("\\0" + json.dumps(outputs))
"""


@dataclass
class Ran:
    stdout: str
    stderr: str
    outputs: list[Any]


@dataclass
class Proxy:
    address: str
    seen: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            made.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if self.path.endswith("/moved"):
                self.send_response(302)
                self.send_header("Location", "https://other.test/there")
                self.end_headers()
                return
            self.send_response(404 if self.path.endswith("/missing") else 200)
            self.end_headers()
            self.wfile.write(b'{"answer": 42}')

        do_POST = do_PUT = do_GET  # noqa: N815  the server looks for these names

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    made = Proxy(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def run(code: str, proxy: str = "127.0.0.1:1") -> Ran:
    directory = str(Path(toolgate.sandbox.__file__).parent)
    driver = DRIVER.format(directory=directory, proxy=proxy, held=HELD)
    done = subprocess.run(
        [sys.executable, "-I", "-c", driver], input=code, capture_output=True, text=True, timeout=20
    )
    stdout, _, outputs = done.stdout.rpartition("\0")
    return Ran(stdout, done.stderr, json.loads(outputs))


PRINTED = [
    "print(t)", "print([t], {'t': t}, (t,))", "print(repr(t))", "print(str(t))", "print('%s %r' % (t, t))",
    "print(f'{t}')", "print(f'{t!r:>40} {t!s} {t:>40}')", "print('{}'.format(t))", "print('a' + t, t + 'b')",
    "print(' '.join([t]))", "import json; print(json.dumps({'t': t}), json.dumps(f'x{t}'))", "print(t.encode())",
    "import sys; sys.stdout.write(t); sys.stdout.writelines([t])", "import sys; sys.stderr.write(f'{t}')",
    "import logging; logging.warning('a %s', t); logging.error(f'{t}')",
    "raise ValueError(t)", "raise ValueError(f'bad {t}')", "raise KeyError(f'{t}')", "{}[t]", "assert False, f'{t}'",
    "import warnings; warnings.warn(f'{t}')", "import base64; print(base64.b64encode(t.encode()).decode())",
    "import urllib.parse; print(urllib.parse.quote(f'{t}', safe=''))", "import pprint; pprint.pprint({'a': [t]})",
    "import traceback\ntry:\n    int(f'{t}')\nexcept ValueError:\n    traceback.print_exc()",
    "open('/dev/stdout', 'w').write(t)", "import copy, pickle; print(pickle.dumps(t), copy.deepcopy(t))",
    "output({'t': t, 'u': f'x{t}', t: [t]})", "print(t[:20], list(map(str, [t])), t.strip())",
]  # fmt: skip


@pytest.mark.parametrize("code", PRINTED)
def test_a_secret_is_masked_wherever_it_is_printed(code: str) -> None:
    ran = run(f"t = get_secret('TOKEN')\n{code}")
    shown = ran.stdout + ran.stderr + json.dumps(ran.outputs)
    assert "[REDACTED]" in shown
    assert HELD[:16] not in shown
    assert "dGdfcGxhY2Vob2xkZXJf" not in shown


def test_a_secret_goes_out_in_requests_in_every_way_programs_make_them(proxy: Proxy) -> None:
    ran = run(
        """
import urllib.request, json
t = get_secret('TOKEN')
fetch_with_auth('https://api.test/a', auth_secret='TOKEN')
fetch_with_auth('https://api.test/b', headers={'x-key': t})
fetch_with_auth('https://api.test/c?k=' + t)
post_json('https://api.test/d', {'deep': [{'token': t}]})
fetch_with_auth('http://api.test/e', 'PUT', body=f'k={t}')
urllib.request.urlopen(urllib.request.Request('https://api.test/f', headers={'Authorization': 'Bearer ' + t}))
urllib.request.urlopen('https://api.test/g?k=' + t)
urllib.request.urlopen('http://api.test/h', data=t.encode())
""",
        proxy.address,
    )
    assert ran.stderr == ""
    assert [path.split("?")[0] for _, path, _, _ in proxy.seen] == [
        f"http{'' if name in 'eh' else 's'}://api.test/{name}" for name in "abcdefgh"
    ]
    assert all(HELD in path + str(headers.values()) + body for _, path, headers, body in proxy.seen)
    assert {headers["host"] for _, _, headers, _ in proxy.seen} == {"api.test"}


def test_requests_give_status_headers_text_and_json_and_follow_redirects(proxy: Proxy) -> None:
    ran = run(
        """
answer = fetch_with_auth('https://api.test/missing')
print(answer.status, answer.ok, answer.text, answer.json()['answer'], 'date' in answer.headers)
print(get_json('https://api.test/moved'))
print(post_json('http://api.test/x', {'a': 1}))
get_json('https://api.test/missing')
""",
        proxy.address,
    )
    assert ran.stdout.splitlines() == ['404 False {"answer": 42} 42 True', "{'answer': 42}", "{'answer': 42}"]
    assert 'OSError: HTTP 404 from https://api.test/missing: {"answer": 42}' in ran.stderr
    assert ("GET", "https://other.test/there") in [seen[:2] for seen in proxy.seen]
    assert ("application/json", '{"a": 1}') in [(h.get("content-type"), body) for _, _, h, body in proxy.seen]


def test_a_mask_is_never_sent_in_the_place_of_a_secret(proxy: Proxy) -> None:
    for code in (
        "urllib.request.urlopen('https://api.test/', data=json.dumps({'t': t}).encode())",
        "fetch_with_auth('https://api.test/', headers={'x': 'Bearer %s' % t})",
        "fetch_with_auth('https://api.test/?' + urllib.parse.urlencode({'k': ' '.join([t])}))",
    ):
        ran = run(
            f"import json, urllib.request, urllib.parse\nt = get_secret('TOKEN')\n{code}", proxy.address
        )
        assert "the request holds [REDACTED] in the place of a secret" in ran.stderr
    assert proxy.seen == []


def test_errors_say_what_is_missing_and_what_to_do() -> None:
    assert "it does not exist. Available: TOKEN" in run("get_secret('NOPE')").stderr
    without = run("get_json('https://api.test:8443/x')").stderr
    assert "this program has no network, so api.test:8443 cannot be reached" in without
    assert "network grant" in without


def test_output_takes_what_is_close_to_json_and_refuses_the_rest() -> None:
    ran = run(
        """
import dataclasses, datetime, decimal, pathlib
@dataclasses.dataclass
class Point:
    x: int
output([Point(1), datetime.date(2026, 1, 2), decimal.Decimal('1.5'), {1, }, (2,), float('nan'), pathlib.Path('a'), {3: b'x'}])
nested = []
for _ in range(200): nested = [nested]
for bad in (object(), nested):
    try: output(bad)
    except (TypeError, ValueError) as error: print(error)
"""
    )
    assert ran.outputs == [[{"x": 1}, "2026-01-02", "1.5", [1], [2], None, "a", {"3": "eA=="}]]
    assert ran.stdout.splitlines() == [
        "output() takes JSON values, not object: make it a dict, list, string or number",
        "output() takes values nested at most 60 deep",
    ]


def test_sleep_waits_with_and_without_await() -> None:
    ran = run(
        """
import asyncio, time
async def both():
    start = time.monotonic()
    await sleep(0.02)
    sleep(0.02)
    print(time.monotonic() - start >= 0.04, list_secrets())
asyncio.run(both())
"""
    )
    assert ran.stdout == "True ['TOKEN']\n"


class Keys:
    """A broker that holds one secret."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if message["op"] == "list":
            return {"names": ["TOKEN"]}
        return {"placeholder": HELD} if message["name"] == "TOKEN" else {"error": "it does not exist"}


class Door:
    """An egress that remembers what it was sent."""

    def __init__(self) -> None:
        self.seen = b""
        self.requests: tuple[Request, ...] = ()

    async def serve(self, listener: socket.socket) -> None:
        async with await asyncio.start_server(self._answer, sock=listener) as server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{"ok":true}')
        await writer.drain()
        writer.close()


async def test_behind_the_walls_the_helpers_speak_to_the_host_and_to_the_proxy() -> None:
    door, host = Door(), Host()
    code = "print(get_secret('TOKEN'), list_secrets())\noutput(get_json('https://api.test/x', 'TOKEN'))"
    try:
        outcome = await host.run(Job("python", code, secrets=("TOKEN",)), broker=Keys(), egress=door)
        assert (outcome.stdout, outcome.stderr) == (b"[REDACTED] ['TOKEN']\n", b"")
        assert outcome.outputs == ({"ok": True},)
        assert door.seen.startswith(b"GET https://api.test/x HTTP/1.1\r\n")
        assert f"Authorization: Bearer {HELD}\r\n".encode() in door.seen
        alone = await host.run(Job("python", code, secrets=("TOKEN",)), broker=Keys())
        assert b"NoNetwork: this program has no network, so api.test cannot be reached" in alone.stderr
    finally:
        await host.close()
