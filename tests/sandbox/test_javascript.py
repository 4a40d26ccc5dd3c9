"""JavaScript programs, through the whole sandbox: what runs, what comes back, what errors say."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.core.errors import Unavailable
from toolgate.sandbox import javascript
from toolgate.sandbox.host import Host
from toolgate.sandbox.job import Job, Left, Limits, Outcome, Request, View

HELD = "tg_placeholder_0a1b2c/3d+4e"


class Keys:
    """A broker that holds one secret."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        return (
            {"placeholder": HELD}
            if message == {"op": "secret", "name": "TOKEN"}
            else {"error": "it does not exist"}
        )


class Echo:
    """An egress that lets everything through to nowhere, and answers with what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str], str]] = []

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(Request(method, url, True, 200) for method, url, _, _ in self.seen)

    async def serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._answer, sock=listener)
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
        body = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
        url = headers["x-toolgate-url"]
        self.seen.append((head[0].split(" ")[0], url, headers, body))
        status = (
            "404 Not Found"
            if url.endswith("/missing")
            else "302 Found"
            if url.endswith("/moved")
            else "200 OK"
        )
        text = json.dumps({"url": url})
        writer.write(
            f"HTTP/1.1 {status}\r\nLocation: /there\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode()
        )
        await writer.drain()
        writer.close()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    yield made
    await made.close()


async def run(host: Host, code: str, **more: Any) -> Outcome:
    doors = {key: more.pop(key) for key in ("egress", "broker") if key in more}
    return await host.run(Job("javascript", code, **more), **doors)


async def test_a_module_runs_with_top_level_await_input_output_and_files(host: Host) -> None:
    code = """
import { join } from "node:path";
import fs from "fs";
const text = await new Response(Deno.stdin.readable).text();
console.log(text.toUpperCase(), join("a", "b"), import.meta.main);
console.error("aside");
output({ deep: [1, { a: null }] });
output("second");
await sleep(5);
fs.writeFileSync("made.txt", "by node");
"""
    outcome = await run(host, code, stdin=b"from outside")
    assert (outcome.stdout, outcome.stderr) == (b"FROM OUTSIDE a/b true\n", b"aside\n")
    assert (outcome.exit_code, outcome.limit) == (0, None)
    assert outcome.outputs == ({"deep": [1, {"a": None}]}, "second")
    assert outcome.left == (Left("made.txt", b"by node", 0o644),)


ERRORS = [
    ("thrown", "const a = 1;\n\nthrow new Error('boo');", "Error: boo\nthrow new Error('boo');\n      ^\n    at file:///work/program.mjs:3:7\n"),
    ("first line", "null.x", "TypeError: Cannot read properties of null (reading 'x')\nnull.x\n     ^\n    at file:///work/program.mjs:1:6\n"),
    ("in a function", "function f() {\n  null.x;\n}\nf();", "(reading 'x')\n  null.x;\n       ^\n    at f (file:///work/program.mjs:2:8)\n    at file:///work/program.mjs:4:1\n"),
    ("not a program", "let a = 1;\nlet b = ;", "SyntaxError: Expression expected\nlet b = ;\n        ^\n    at file:///work/program.mjs:2:9\n"),
    ("late", "\nsetTimeout(() => { null.x }, 1)", "at Timeout._onTimeout (file:///work/program.mjs:2:25)"),
    ("rejected", "\nPromise.reject(new Error('no'))", "Error: no\nPromise.reject(new Error('no'))\n               ^\n    at file:///work/program.mjs:2:16\n"),
    ("no error object", "throw 'text'", 'error: Uncaught "text"\n'),
    ("never", "await new Promise(() => {})", "error: Top-level await promise never resolved\n"),
    ("snippet", "const p = require('path'); null.x", "const p = require('path'); null.x\n                                ^\n    at Object.default (file:///work/program.mjs:1:33)\n"),
    ("snippet that is none", "module.exports = ;", "module.exports = ;\n                 ^\n    at file:///work/program.mjs:1:18\n"),
    ("missing import", "\nimport x from './nothing.mjs'", "Module not found \"file:///work/nothing.mjs\".\nimport x from './nothing.mjs'\n              ^\n    at file:///work/program.mjs:2:15\n"),
    ("remote import", "import 'https://deno.land/x.ts'", "file:///work/program.mjs:1"),
]  # fmt: skip


async def test_errors_name_the_lines_of_the_program_and_none_of_ours(host: Host) -> None:
    for name, code, said in ERRORS:
        outcome = await run(host, code)
        text = outcome.stderr.decode()
        assert said in text, name
        assert "javascript.js" not in text, name
        assert (outcome.exit_code, outcome.limit) == (1, None), name


SNIPPETS: list[tuple[str, tuple[Any, ...]]] = [
    ("const x = 2;\nmodule.exports = { x, list: [1] };", ({"x": 2, "list": [1]},)),
    ("module.exports = () => 3", (3,)),
    (
        "const { join } = require('node:path');\nmodule.exports = async () => { await sleep(1); return join('a', 'b') }",
        ("a/b",),
    ),
    ("exports.a = 1; exports.b = 'two'", ({"a": 1, "b": "two"},)),
    ("module.exports = null", (None,)),
    ("const os = require('os'); output(typeof os.EOL)", ("string",)),
    ("if (require.main === module) output(await Promise.resolve('main'))", ("main",)),
    ("#!/usr/bin/env node\nmodule.exports = 'hash'", ("hash",)),
    ("// module.exports is only mentioned\nexport const a = 1; output(a)", (1,)),
]


async def test_commonjs_snippets_run_and_what_they_export_is_an_output(host: Host) -> None:
    for code, outputs in SNIPPETS:
        outcome = await run(host, code)
        assert (outcome.outputs, outcome.stderr) == (outputs, b""), code
    only = await run(host, "exports.run = () => 1")
    assert b"module.exports has only functions (run): export one function, or data" in only.stderr
    other = await run(host, "require('./other')")
    assert b'require("./other") is refused: only modules built into Node are here' in other.stderr


PRINTED = [
    "console.log(t)", "console.log(`${t}`, [t], { t })", "console.error(t + '')", "console.warn({ a: { b: `${t}` } })",
    "console.info('%s', t)", "console.debug(String(t))", "console.table([{ t: `${t}` }])", "console.dir({ t })",
    "console.trace(`${t}`)", "console.group(`${t}`)", "console.assert(false, `${t}`)", "console.dirxml(`${t}`)",
    "console.count(`${t}`)", "console.time(`${t}`); console.timeEnd(`${t}`)",
    "console.log(JSON.stringify({ t }), JSON.stringify(`${t}`))", "console.log(new Error(`bad ${t}`))",
    "console.log(new Error('outer', { cause: new Error(`${t}`) }))", "console.log(btoa(t), encodeURIComponent(t))",
    "throw new Error(`bad ${t}`)", "throw `${t}`", "Promise.reject(new TypeError(`${t}`))", "setTimeout(() => { throw new Error(`${t}`) })",
    "reportError(new Error(`${t}`))", "output({ t, u: `x${t}`, [t]: [t] })",
    "Deno.stdout.writeSync(new TextEncoder().encode(`${t}`))", "await Deno.stderr.write(new TextEncoder().encode(`${t}`))",
    "process.stdout.write(`${t}`)", "await new Response(`${t}`).body.pipeTo(Deno.stdout.writable)",
    "console.log(Deno.inspect(t), t.concat('more'), new Map([[t, `${t}`]]), new Set([`${t}`]))",
    "import { inspect } from 'node:util'; console.log(inspect(t), inspect({ t }))",
    "module.exports = { t, u: `${t}` }",
]  # fmt: skip


async def test_a_secret_is_masked_wherever_it_is_printed(host: Host) -> None:
    for code in PRINTED:
        outcome = await run(host, f"const t = getSecret('TOKEN');\n{code}", secrets=("TOKEN",), broker=Keys())
        shown = outcome.stdout.decode() + outcome.stderr.decode() + json.dumps(outcome.outputs)
        assert "[REDACTED]" in shown, code
        assert HELD[:16] not in shown, code
        assert "dGdfcGxhY2Vob2xkZXJf" not in shown, code
        assert outcome.left == (), code


async def test_secrets_are_given_by_name_and_the_helpers_cannot_be_replaced(host: Host) -> None:
    code = """
console.log(listSecrets(), list_secrets === listSecrets, `${getSecret("TOKEN")}`.length, getSecret("TOKEN").length);
for (const name of ["NOPE", "OTHER", "toString"]) try { get_secret(name) } catch (error) { console.log(error.message) }
for (const change of [() => { getSecret = 1 }, () => { console.log = 1 }, () => { fetch = 1 }]) {
  try { change(); console.log("replaced") } catch (error) { console.log(error.name) }
}
"""
    outcome = await run(host, code, secrets=("TOKEN", "OTHER"), broker=Keys())
    assert outcome.stdout.decode().splitlines() == [
        '[ "TOKEN", "OTHER" ] true 27 27',
        "Secret 'NOPE' not found. Available: TOKEN, OTHER",
        "Secret 'OTHER' was not given: it does not exist",
        "Secret 'toString' not found. Available: TOKEN, OTHER",
        *["TypeError"] * 3,
    ]


async def test_requests_go_to_the_proxy_with_secrets_in_them(host: Host) -> None:
    code = """
const t = getSecret("TOKEN");
await getJSON("https://api.test/a", "TOKEN");
await fetchWithAuth("https://api.test/b", { headers: { "x-key": t } });
await fetch(`http://api.test/c?k=${t}`);
await postJSON("https://api.test/d", { deep: [{ t }] });
await fetch(new Request("https://api.test/e", { method: "PUT", body: `${t}` }));
await fetch_with_auth("https://api.test/f", { auth_secret: "TOKEN", method: "DELETE" });
"""
    echo = Echo()
    outcome = await run(host, code, secrets=("TOKEN",), broker=Keys(), egress=echo)
    assert (outcome.stderr, outcome.exit_code) == (b"", 0)
    assert [url.split("?")[0][-1] for _, url, _, _ in echo.seen] == list("abcdef")
    assert [method for method, _, _, _ in echo.seen] == ["GET", "GET", "GET", "POST", "PUT", "DELETE"]
    assert all(HELD in url + str(headers.values()) + body for _, url, headers, body in echo.seen)
    assert len(outcome.requests) == 6


async def test_answers_have_their_address_and_redirects_are_followed(host: Host) -> None:
    code = """
const moved = await fetch("https://api.test/moved");
console.log(moved.status, moved.url, moved.redirected, (await moved.json()).url);
console.log((await fetch("https://api.test/moved", { redirect: "manual" })).status);
try { await getJSON("https://api.test/missing") } catch (error) { console.log(error.message) }
try { await fetch("https://api.test/", { method: "POST", body: JSON.stringify({ t: getSecret("TOKEN") }) }) } catch (error) { console.log(error.message) }
"""
    outcome = await run(host, code, secrets=("TOKEN",), broker=Keys(), egress=Echo())
    assert outcome.stdout.decode().splitlines() == [
        "200 https://api.test/there true https://api.test/there",
        "302",
        'HTTP 404 from https://api.test/missing: {"url":"https://api.test/missing"}'.replace('":"', '": "'),
        "the request holds [REDACTED] in the place of a secret: JSON.stringify masks secrets. Give the object itself to "
        "postJSON, or put String(secret) into it",
    ]


async def test_without_a_grant_a_request_says_how_to_get_one(host: Host) -> None:
    outcome = await run(host, "await getJSON('https://api.test:8443/x')")
    assert (
        b"this program has no network, so api.test:8443 cannot be reached: run it again with a network grant"
        in outcome.stderr
    )


LIMITS: list[tuple[str, str, Limits]] = [
    ("time", "for (;;) {}", Limits(wall_s=0.4)),
    ("time", "await new Promise((done) => setTimeout(done, 60_000))", Limits(wall_s=0.4)),
    (
        "memory",
        "const all = []; for (;;) all.push(new Array(100_000).fill(1.5))",
        Limits(memory_bytes=96 << 20),
    ),
    (
        "memory",
        "const all = []; for (;;) all.push(new Uint8Array(1e7).fill(1))",
        Limits(memory_bytes=96 << 20),
    ),
    ("output", "for (;;) console.log('x'.repeat(10_000))", Limits(output_bytes=100_000)),
    ("cpu", "for (;;) {}", Limits(cpu_s=1, wall_s=10)),
]


async def test_what_a_program_runs_into_is_named(host: Host) -> None:
    for name, code, limits in LIMITS:
        outcome = await run(host, code, limits=limits)
        assert outcome.limit == name, (code, outcome)
        assert b"C stack trace" not in outcome.stderr


async def test_nothing_a_program_was_given_is_in_its_command_line_environment_or_files(host: Host) -> None:
    code = """
const own = (name) => { try { return Deno.readTextFileSync(`/proc/self/${name}`) } catch (error) { return error.name } };
output([own("cmdline"), own("environ"), [...Deno.readDirSync(".")].map((entry) => entry.name), Deno.args]);
Deno.writeTextFileSync("copy.txt", Deno.readTextFileSync("program.mjs"));
"""
    outcome = await run(host, code, secrets=("TOKEN",), broker=Keys(), stdin=b"private")
    [left] = outcome.left
    assert HELD not in json.dumps(outcome.outputs) + left.content.decode()
    assert "private" not in json.dumps(outcome.outputs) + left.content.decode()


async def test_the_project_can_be_read_where_there_is_a_view(host: Host, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "part.mjs").write_text("export const part = 'of the project'; console.log(typeof output)")
    code = "import { part } from '/project/part.mjs'; output([part, Deno.readTextFileSync('/project/part.mjs').length])"
    outcome = await run(host, code, view=View(tmp_path))
    assert outcome.outputs == (["of the project", 64],)
    assert outcome.stdout == b"function\n"
    without = await run(host, "Deno.readTextFileSync('/project/part.mjs')")
    assert b'Requires read access to "/project/part.mjs", which programs do not have here' in without.stderr


def test_what_comes_back_as_output_cannot_hurt_the_host() -> None:
    made = javascript.DenoInputs("", {}, False)

    def finish(*lines: bytes) -> Outcome:
        left = (Left(made.outputs, b"\n".join(lines)), Left("own", b""))
        return made.finish(Outcome(b"", b"", 0, left=left))

    odd = finish(
        b"1",
        b"not json",
        b"[" * 100_000,
        b'{"a":' * 5000,
        b"",
        b'"\\ud800"',
        b"NaN",
        b"[" * 80 + b"]" * 80,
        b"[2]",
    )
    assert odd.outputs == (1, [2])
    assert odd.dropped == ("a value given to output() that is not JSON, or more than 64 deep",)
    assert [file.path for file in odd.left] == ["own"]
    many = finish(*[b"1"] * 101)
    assert (len(many.outputs), many.dropped) == (100, ("outputs beyond 100, or 1,048,576 bytes",))
    large = finish(b"2", b'"%s"' % (b"x" * (1 << 20)), b"3")
    assert (large.outputs, len(large.dropped)) == ((2,), 1)
    assert finish(*[b"1"] * 100, b"").dropped == ()


@given(st.text(max_size=300), st.sampled_from(["", "import.meta.main", "require('x')", "#!/x\n", "\ufeff"]))
def test_a_program_keeps_its_lines_and_arrives_whole(text: str, part: str) -> None:
    code = part + text
    made = javascript.DenoInputs(code, {}, False, b"input")
    stream = made.stream()
    size = int(stream[:10])
    assert stream[10 + size :] == b"input"
    arrived = json.loads(stream[10 : 10 + size])["code"]
    assert len(arrived.split("\n")) == len(code.split("\n"))
    assert len(arrived) == len(code.removeprefix("\ufeff"))


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"[" * 70, b"{}", b"1e999", b"\xff", b'"\0"'])))
def test_whatever_is_in_the_file_of_outputs_the_host_goes_on(lines: list[bytes]) -> None:
    made = javascript.DenoInputs("", {}, False)
    outcome = made.finish(Outcome(b"", b"", 0, left=(Left(made.outputs, b"\n".join(lines)),)))
    json.dumps(outcome.outputs)
    assert outcome.left == ()


def test_without_deno_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deno", None)
    with pytest.raises(Unavailable) as error:
        javascript.find()
    assert "pip install toolgate[js]" in error.value.fix
