"""A program with a network grant and a secret: it reaches what it was given, and nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.errors import ConfigError
from toolgate.project.config import Config
from toolgate.storage.port import Filter

from .running import code, good

VALUE = "s3cr3t/value+1234567890"


@dataclass
class Place:
    """A server on this machine that echoes what it is sent, in its answers and in its error pages."""

    port: int = 0
    seen: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def serving() -> Iterator[Place]:
    place = Place()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            token, body = self.headers.get("Authorization", ""), self.rfile.read(size).decode()
            place.seen.append((f"{self.command} {self.path}", token, body))
            if self.path.startswith("/away"):
                self.send_response(302)
                self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            else:
                self.send_response(500 if self.path.startswith("/error") else 200)
            answer = json.dumps({"you": token, "said": body}).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def gated(root: Path, place: Place, other: Place | None = None) -> AsyncIterator[toolgate.Gate]:
    private = [place.name, *([other.name] if other else [])]
    config = {
        "version": 1,
        "default_persona": "builder",
        "personas": {"builder": {"phase": "contribute"}},
        "policy": {"rules": [{"persona": "*", "tools": ["exec.*"], "decision": "allow"}]},
        "sandbox": {"network": {"private": private}},
    }
    async with toolgate.open(root, config) as gate:
        assert gate.vault is not None
        gate.vault.set("API_TOKEN", VALUE, hosts=[place.name])
        yield gate


FETCHES = {
    "exec.python": """
output(get_json("http://{place}/ok", "API_TOKEN"))
print(post_json("http://{place}/ok", {{"key": str(get_secret("API_TOKEN"))}}, "API_TOKEN"))
""",
    "exec.javascript": """
output(await getJSON("http://{place}/ok", "API_TOKEN"));
console.log(await postJSON("http://{place}/ok", {{key: `${{getSecret("API_TOKEN")}}`}}, "API_TOKEN"));
""",
}


@pytest.mark.parametrize("tool", FETCHES)
async def test_the_proxy_puts_the_token_in_and_takes_it_out_of_what_comes_back(root: Path, tool: str) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            program = FETCHES[tool].format(place=place.name)
            args = {"code": program, "network": [place.name], "secrets": ["API_TOKEN"]}
            found = good(await gate.call(tool, args))
            assert found["exit_code"] == 0, found["stderr"]
            assert [token for _, token, _ in place.seen] == [f"Bearer {VALUE}"] * 2
            assert json.loads(place.seen[1][2]) == {"key": VALUE}
            assert found["output"]["you"] == "Bearer [secret:API_TOKEN]"
            assert VALUE not in json.dumps(found)
            assert [list(each["injected"]) for each in found["requests"]] == [["API_TOKEN"]] * 2


REFUSED = {
    "another host": "http://example.org/",
    "another port": "http://127.0.0.1:{other}/",
    "a private address": "http://10.0.0.1/",
    "the cloud's metadata": "http://169.254.169.254/",
    "a redirect to it": "http://{place}/away",
    "an odd spelling": "http://2130706433:{port}/",
    "a user part": "http://{place}@example.org/",
}
TRIES = """
import urllib.request
try:
    print("GOT", urllib.request.urlopen({url!r}, timeout=5).read())
except Exception as error:
    print("no:", type(error).__name__)
"""


async def test_everything_else_fails_and_every_try_is_recorded(root: Path) -> None:
    with serving() as place, serving() as other:
        async with gated(root, place, other) as gate:
            words = {"place": place.name, "port": place.port, "other": other.port}
            urls = [url.format(**words) for url in REFUSED.values()]
            program = "".join(TRIES.format(url=url) for url in urls)
            found = good(await gate.call("exec.python", {"code": program, "network": [place.name]}))
            assert found["stdout"].count("no:") == len(urls), found["stdout"]
            assert "GOT" not in found["stdout"]
            assert other.seen == []
            assert [asked for asked, _, _ in place.seen] == ["GET /away"]
            rows = [json.loads(row.body) for row in await gate.events(Filter(kinds=("requested",)))]
            assert len(rows) == len(found["requests"]) >= len(urls)
            assert [row["allowed"] for row in rows].count(True) == 1
            report = await gate.verify()
            assert report.ok


async def test_without_a_grant_there_is_no_network(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            program = TRIES.format(url=f"http://{place.name}/ok")
            found = good(await gate.call("exec.python", {"code": program}))
            assert found["stdout"].startswith("no:")
            assert place.seen == []


async def test_a_secret_is_sent_nowhere_but_where_its_owner_said(root: Path) -> None:
    with serving() as place, serving() as other:
        async with gated(root, place, other) as gate:
            program = f"get_json('http://{other.name}/ok', 'API_TOKEN')"
            args = {"code": program, "network": [other.name], "secrets": ["API_TOKEN"]}
            found = good(await gate.call("exec.python", args))
            assert found["exit_code"] == 1
            assert "API_TOKEN is not for" in found["stderr"]
            assert other.seen == []


async def test_an_error_page_that_repeats_the_token_does_not_bring_it_in(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            program = f"get_json('http://{place.name}/error', 'API_TOKEN')"
            args = {"code": program, "network": [place.name], "secrets": ["API_TOKEN"]}
            found = good(await gate.call("exec.python", args))
            assert found["exit_code"] == 1
            assert "HTTP 500" in found["stderr"]
            assert VALUE not in json.dumps(found)


async def test_methods_can_be_limited(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            program = f"print(get_json('http://{place.name}/ok'))\npost_json('http://{place.name}/ok', 1)"
            network = {"hosts": [place.name], "methods": ["get"]}
            found = good(await gate.call("exec.python", {"code": program, "network": network}))
            assert (found["exit_code"], len(place.seen)) == (1, 1)


async def test_a_secret_that_is_not_there_is_said_before_anything_runs(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            result = await gate.call("exec.python", {"code": "print(1)", "secrets": ["OTHER"]})
            assert code(result) == "not_found"
            assert result.error is not None
            assert "API_TOKEN" in result.error.fix


async def test_what_there_is_not_is_said_before_anybody_is_asked(root: Path) -> None:
    settings = {
        "version": 1, "default_persona": "builder", "personas": {"builder": {"phase": "contribute"}}
    }  # fmt: skip
    async with toolgate.open(root, settings) as gate:
        for asked, problem in (
            ({"secrets": ["OTHER"]}, "not_found"),
            ({"packages": ["numpy"]}, "not_allowed"),
        ):
            args = {"code": "1", "project": "read", **asked}
            assert code(await gate.call("exec.python", args, wait=False)) == problem
        assert await gate.approvals() == []


async def test_a_run_leaves_a_trace_without_its_secrets(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            await gate.call(
                "exec.python",
                {"code": f"x = '{VALUE}'\nraise TypeError(x)"},
                conversation="talk",
                reason="to see",
            )
            (trace,) = await gate.traces.failures("talk")
            assert (trace.error_category, trace.persona, trace.llm_reasoning) == ("type", "builder", "to see")
            assert VALUE not in trace.code + trace.stderr
            assert "[secret:API_TOKEN]" in trace.stderr


async def test_a_program_in_the_background_is_a_job_whose_call_passes_the_gate(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            submitted = good(
                await gate.call("exec.python", {"code": "output(6 * 7)", "background": True, "stdin": "x"})
            )
            assert submitted["job_id"]
            async with gate.jobs.running():
                job = await gate.jobs.wait(submitted["job_id"])
            assert job.state == "done"
            status = good(await gate.call("code.status", {"job_id": submitted["job_id"]}))
            assert (status["success"], status["result"]["result"]["output"]) == (True, 42)
            started = [row for row in await gate.events() if row.kind == "started"]
            assert [row.tool for row in started].count("exec.python") == 2


async def test_what_a_program_leaves_or_changes_is_not_kept_if_it_holds_a_secret(root: Path) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            assert gate.vault is not None
            gate.vault.set("OPEN_TOKEN", "value-that-programs-may-hold", reveal=True)
            program = """
import base64
token = get_secret("OPEN_TOKEN").encode().decode()
open("plain.txt", "w").write("good")
open("bad.txt", "w").write(base64.b64encode(("x" + token).encode()).decode())
open("/project/a.txt", "w").write("now " + token)
"""
            args = {"code": program, "secrets": ["OPEN_TOKEN"], "project": "overlay"}
            found = good(await gate.call("exec.python", args))
            assert found["exit_code"] == 0, found["stderr"]
            assert [each["name"] for each in found["files"]] == ["bad.txt", "plain.txt"]
            read = good(await gate.call("fs.read", {"path": found["files"][0]["path"]}))
            assert "[secret:OPEN_TOKEN]" in read["content"]
            assert found["proposal"]["state"] == "refused"
            assert found["proposal"]["error"]["code"] == "blocked_content"
            kept = b"".join(file.read_bytes() for file in (root / ".toolgate").rglob("*") if file.is_file())
            assert b"value-that-programs" not in kept


@pytest.mark.parametrize("host", ["", "*.com", "0x7f.1", "http://a b/", "a.example:99999"])
async def test_a_host_that_is_none_is_said_before_anybody_is_asked(root: Path, host: str) -> None:
    with serving() as place:
        async with gated(root, place) as gate:
            result = await gate.call("exec.python", {"code": "1", "network": [host]})
            assert code(result) == "invalid_args"
            assert await gate.approvals() == []


def test_a_private_host_that_is_none_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.from_dict({"version": 1, "sandbox": {"network": {"private": ["not a host:1"]}}})
    assert "sandbox.network.private" in str(caught.value)
