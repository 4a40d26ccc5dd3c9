"""`toolgate mcp` as a client starts it: a process, two pipes, and the real SDK at the other end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import toolgate
from toolgate.faces.cli.main import main
from toolgate.faces.mcp.command import McpArguments, parse
from toolgate.faces.mcp.jsonrpc import MAX_BYTES
from toolgate.faces.mcp.stdio import Lines, Stdio
from toolgate.project import config, trust

from .clients import APPROVE, MODES, User, soon
from .conftest import World

POLICY = """\
version: 1
default_persona: builder
personas: {builder: {phase: contribute}}
"""
COMMAND = [sys.executable, "-m", "toolgate", "mcp"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "toolgate.yaml").write_text(POLICY)
    (root / "hours.md").write_text("9 to 17\n")
    trust.trust(root, config.state_dir())
    return root


def spoken(project: Path, *lines: Any) -> tuple[list[Any], str, int]:
    text = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    done = subprocess.run(COMMAND, input=text, capture_output=True, cwd=project, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode(), done.returncode


INIT = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"experimental": {"toolgate/structured": {}}},
    },
}


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_real_client_starts_it_reads_and_has_a_write_approved(project: Path, era: str) -> None:
    user = User([APPROVE])
    server = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], cwd=project,
        env={"TOOLGATE_STATE_DIR": str(config.state_dir()), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )  # fmt: skip
    async with Client(server, mode=MODES[era], elicitation_callback=user) as mcp:
        read = await soon(mcp.call_tool("code.read", {"path": "hours.md"}))
        assert read.content[0].text == "hours.md 1-1/1\n1\t9 to 17"
        assert read.structured_content is None
        written = await soon(mcp.call_tool("fs.write", {"path": "new.md", "content": "hello\n"}))
        assert written.content[0].text.startswith("created new.md")
    assert (project / "new.md").read_text() == "hello\n"
    assert "+hello" in user.shown[0]
    assert "can be undone: yes" in user.shown[0]


def test_half_a_line_garbage_and_a_closed_input_end_well_with_every_answer(project: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "system.ping"}}
    answers, errors, code = spoken(
        project, INIT, b"\xff\xfe", b"", call, b'{"jsonrpc": "2.0", "id": 3, "meth'
    )
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[2]["result"]["structuredContent"]["ok"]
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32700, -32700]
    assert (errors, code) == ("", 0)


NOISY = """\
import os, subprocess, sys
from toolgate import tool

def toolset(services):
    @tool("noisy.speak", reads=["system"])
    async def speak() -> str:
        \'\'\'Print where only the protocol belongs.\'\'\'
        print('{"jsonrpc": "2.0", "id": "forged", "result": {}}', flush=True)
        os.write(1, b'written\\n')
        subprocess.run(["echo", "started"], check=True)
        return sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True, timeout=10).stdout

    return [speak]
"""


def test_what_a_tool_prints_does_not_reach_the_client_and_it_cannot_read_from_it(project: Path) -> None:
    (project / "noisy.py").write_text(NOISY)
    with (project / "toolgate.yaml").open("a") as policy:
        policy.write('plugins: ["./noisy.py"]\n')
        policy.write("policy: {rules: [{persona: builder, tools: [noisy.speak], decision: allow}]}\n")
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "noisy.speak"}}
    answers, errors, code = spoken(project, INIT, call, {"jsonrpc": "2.0", "id": 3, "method": "ping"})
    assert {answer["id"] for answer in answers} == {0, 2, 3}
    assert (
        next(answer for answer in answers if answer["id"] == 2)["result"]["structuredContent"]["data"] == ""
    )
    assert "forged" in errors
    assert "started" in errors
    assert code == 0


def test_it_starts_without_what_other_commands_need(project: Path) -> None:
    watched = "import sys; sys.argv = ['toolgate', 'mcp']; from toolgate.faces.cli.main import main; main(); "
    heavy = "typer rich fastapi uvicorn mcp tree_sitter asyncpg starlette cryptography urllib.request chardet"
    done = subprocess.run(
        [sys.executable, "-c", watched + f"sys.stderr.write(' '.join(set({heavy.split()!r}) & set(sys.modules)))"],
        input=json.dumps(INIT).encode(), capture_output=True, cwd=project, timeout=60,
    )  # fmt: skip
    assert b'"serverInfo"' in done.stdout
    assert done.stderr == b""


def test_the_first_answer_loads_next_to_nothing() -> None:
    heavy = "asyncio pydantic yaml sqlite3 dataclasses toolgate.app toolgate.core.errors"
    loaded = "import sys, toolgate.faces.mcp.command, toolgate.faces.mcp.greeting"
    done = subprocess.run(
        [sys.executable, "-c", f"{loaded}; print(*set({heavy.split()!r}) & set(sys.modules))"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("", "")


SLOW = """\
import pathlib, time

for _ in range(600):
    if pathlib.Path(__file__).with_name("go").exists():
        break
    time.sleep(0.1)

def toolset(services):
    return []
"""


async def test_initialize_is_answered_before_the_gate_is_open_and_what_follows_waits(project: Path) -> None:
    (project / "slow.py").write_text(SLOW)
    with (project / "toolgate.yaml").open("a") as policy:
        policy.write('plugins: ["./slow.py"]\n')
    process = await asyncio.create_subprocess_exec(
        *COMMAND, cwd=project, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "system.ping"}}
    process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in (INIT, ping)))
    first = json.loads(await soon(process.stdout.readline()))
    assert (first["id"], first["result"]["serverInfo"]["name"]) == (0, "toolgate")
    (project / "go").write_text("")
    assert json.loads(await soon(process.stdout.readline()))["id"] == 1
    process.stdin.close()
    assert await soon(process.wait()) == 0


def test_a_client_that_was_greeted_is_told_why_the_gate_does_not_open(project: Path) -> None:
    trust.distrust(project, config.state_dir())
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    (first, second), errors, code = spoken(project, INIT, told, listing)
    assert first["result"]["serverInfo"]["name"] == "toolgate"
    assert (second["id"], second["error"]["code"]) == (1, -32000)
    assert "toolgate trust" in second["error"]["message"]
    assert "toolgate trust" in errors
    assert code == 2


@pytest.mark.parametrize(
    ("first", "ident", "key"),
    [
        (b"\xff", None, "error"),
        (INIT | {"id": True}, None, "error"),
        (INIT | {"params": {}}, 0, "error"),
        (INIT | {"method": "tools/list"}, 0, "error"),
        (INIT | {"params": {"protocolVersion": "1999-01-01", "capabilities": {}}}, 0, "result"),
    ],
)
def test_whatever_comes_first_has_one_answer(project: Path, first: Any, ident: Any, key: str) -> None:
    answers, errors, code = spoken(project, first, {"jsonrpc": "2.0", "id": 9, "method": "ping"})
    assert sorted((one["id"] or 0, key in one) for one in answers)[0] == (0, True)
    assert [one["id"] for one in answers if one["id"] != 9] == [ident]
    assert [one["id"] for one in answers].count(9) == 1
    assert (errors, code) == ("", 0)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--persona", "human"), "no persona 'human'"),
        (("--persona", "nobody"), "no persona 'nobody'"),
        (("--profile", "huge"), "no profile 'huge'"),
        (("/no/such/place",), "no directory"),
        (("--nonsense",), "there is no option"),
    ],
)
def test_a_wrong_start_says_what_to_do_on_stderr_and_nothing_on_stdout(
    project: Path,
    args: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project)
    assert main(["mcp", *args]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_a_project_that_is_not_trusted_is_not_served(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trust.distrust(project, config.state_dir())
    assert main(["mcp", str(project)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "toolgate trust" in printed.err


def test_the_plain_spellings_are_read_and_others_left_to_the_parser() -> None:
    assert parse(["p", "--persona", "x", "--profile=code"]) == McpArguments("p", "x", "code")
    assert parse(["--root", "p", "-p", "x"]) == McpArguments("p", "x")
    for words in (["--help"], ["a", "b"], ["--persona"], ["-x"]):
        assert parse(words) is None


async def test_sigterm_ends_it_in_the_middle_of_a_question(project: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, cwd=project, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    init = INIT | {"params": {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fs.write", "arguments": {"path": "a.md", "content": "x"}}}  # fmt: skip
    process.stdin.write(json.dumps(init).encode() + b"\n" + json.dumps(call).encode() + b"\n")
    await soon(process.stdout.readline())
    assert json.loads(await soon(process.stdout.readline()))["method"] == "elicitation/create"
    process.send_signal(signal.SIGTERM)
    assert await soon(process.wait()) == 0
    assert not (project / "a.md").exists()


async def test_a_message_that_is_too_long_is_dropped_as_it_comes_and_the_next_is_served(world: World) -> None:
    (ours_in, theirs_out), (theirs_in, ours_out) = os.pipe(), os.pipe()
    stdio = Stdio(world.server, "ada", ours_in, ours_out)
    serving = asyncio.create_task(stdio.serve())

    def speak() -> bytes:
        chunk = b"[" * (1 << 20)
        for _ in range(MAX_BYTES // len(chunk) + 2):
            os.write(theirs_out, chunk)
        os.write(theirs_out, b"\n" + json.dumps(INIT).encode() + b"\n")
        os.close(theirs_out)
        found = b""
        while part := os.read(theirs_in, 65536):
            found += part
            if found.count(b"\n") == 2:
                break
        return found

    answers = [json.loads(line) for line in (await soon(asyncio.to_thread(speak))).splitlines()]
    assert [answers[0]["error"]["code"], answers[1]["id"]] == [-32600, 0]
    await soon(serving)
    for handle in (ours_in, ours_out, theirs_in):
        os.close(handle)


async def test_a_client_that_does_not_read_is_not_read_from_and_gets_everything_in_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.faces.mcp import stdio as pipes

    monkeypatch.setattr(pipes, "BACKLOG", 20_000)
    (ours_in, theirs_out), (theirs_in, ours_out) = os.pipe(), os.pipe()
    stdio = Stdio(world.server, "ada", ours_in, ours_out)
    serving = asyncio.create_task(stdio.serve())
    count = 400

    def speak() -> int:
        os.write(theirs_out, json.dumps(INIT).encode() + b"\n")
        for number in range(count):
            os.write(
                theirs_out,
                json.dumps({"jsonrpc": "2.0", "id": f"{number} " + "x" * 1000, "method": "ping"}).encode()
                + b"\n",
            )
        return number

    speaking = asyncio.create_task(asyncio.to_thread(speak))
    async with asyncio.timeout(60):
        while not stdio.pipe.behind:
            await asyncio.sleep(0.005)
    assert stdio.pipe._backlog < 200_000
    assert not speaking.done()

    def read() -> bytes:
        found = b""
        while found.count(b"\n") <= count:
            found += os.read(theirs_in, 1 << 16)
        return found

    lines = (await soon(asyncio.to_thread(read))).splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == count + 1
    await soon(speaking)
    os.close(theirs_out)
    await soon(serving)
    for handle in (ours_in, ours_out, theirs_in):
        os.close(handle)


def test_lines_come_out_whole_however_the_bytes_come_in() -> None:
    text = b"one\n\ntwo\r\nthree"
    for size in range(1, len(text) + 1):
        lines = Lines()
        found = [
            line for start in range(0, len(text), size) for line in lines.feed(text[start : start + size])
        ]
        assert [*found, lines.rest()] == [b"one", b"", b"two\r", b"three"]


async def test_memory_stays_flat_over_many_calls(world: World) -> None:
    import psutil

    from .clients import Raw

    raw = Raw(world.server)
    await raw.shake()
    for _ in range(300):
        await raw.call("t.look", {"x": "1"})
    before = psutil.Process().memory_info().rss
    for _ in range(1000):
        await raw.call("t.look", {"x": "1"})
    assert psutil.Process().memory_info().rss - before < 8 << 20
    assert raw.connection.running == {}


async def test_a_server_that_loads_no_pydantic_records_what_it_sent(project: Path) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "fs_list", "arguments": {"path": "."}},
    }
    for _ in range(2):  # the second finds the configuration as the first has read it
        told, said, code = spoken(
            project, INIT, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call
        )
        assert (code, said) == (0, "")
        assert "hours.md" in str(told[-1])
    async with toolgate.open(project) as gate:
        rows = [row for row in await gate.events() if row.kind == "committed"]
    assert len(rows) == 2
    assert len({json.loads(row.body)["tokens"] for row in rows}) == 1
    assert json.loads(rows[0].body)["tokens"] > 0
    assert not (project / ".toolgate" / "log" / "toolgate.jsonl").exists(), "nothing went wrong"
