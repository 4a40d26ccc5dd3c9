"""`toolgate up` as a real process: its two addresses, a first approval over HTTP, a clean end."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from toolgate.faces.cli.main import main
from toolgate.faces.http import serve

from ..cli.driving import Done, environment, finish, heard, start

PATIENCE = 60


@contextmanager
def up(*args: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Until the block ends; then it must end by itself within seconds of SIGTERM."""
    process = start("up", "--port", "0", "--json", *args, cwd=cwd)
    try:
        said = json.loads(heard(process, "stdout"))
        yield process, said["data"]
    finally:
        if process.poll() is None:
            process.terminate()
        done = finish(process)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """What a command says, run in this process."""

    def run(*args: str) -> Done:
        capsys.readouterr()
        code = main(args)
        told = capsys.readouterr()
        return Done(code, told.out, told.err)

    return run


@pytest.fixture
def root(tmp_path: Path, said: Callable[..., Done]) -> Path:
    place = tmp_path / "shop"
    place.mkdir()
    assert said("init", str(place)).code == 0
    return place


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def events(client: httpx2.Client, human: dict[str, str], kind: str) -> list[dict[str, Any]]:
    """Events of this kind, as soon as there are any."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found: list[dict[str, Any]] = client.get(
            "/api/v1/events", params={"kind": kind}, headers=human
        ).json()["events"]
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {kind} event came")


def heard_of(process: subprocess.Popen[str], words: str) -> str:
    """The next line that says these words, before the server is told to end: what it says later may be cut short."""
    while line := heard(process, "stdout"):
        if words in line:
            return line
    raise AssertionError(f"it ended without saying {words!r}")


def test_the_sample_guides_to_a_first_approval_and_leaves_nothing_that_git_does_not_ignore(
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitignore").write_text((Path(__file__).parents[3] / ".gitignore").read_text())
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    process = start("up", "--port", "0", "--sample", ".sample", cwd=tmp_path)
    try:
        console = heard(process, "stdout").split()[1]
        address, token = console.split("/?token=")
        heard_of(process, "A call is waiting for you")
        heard_of(process, "An agent, scripted so that no model is asked")
        with httpx2.Client(base_url=address, timeout=PATIENCE) as client:
            human = bearer(token)
            asked = events(client, human, "asked")[0]
            hours = tmp_path / ".sample" / "shop" / "hours.md"
            before = hours.read_text()
            (question,) = client.get("/api/v1/approvals", headers=human).json()["approvals"]
            assert question["id"] == asked["ref"]
            assert "Saturday" in question["preview"]
            client.post(f"/api/v1/approvals/{question['id']}", json={"answer": "approve"}, headers=human)
            done = events(client, human, "committed")[0]
            assert hours.read_text() == before + question["args"]["text"]
        heard_of(process, f"event {done['seq']}")
        process.terminate()
    finally:
        ended = finish(process)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain"], check=True, capture_output=True, text=True
    )
    assert status.stdout.split() == ["??", ".gitignore"]


def test_up_prints_the_addresses_with_the_tokens_that_work_on_them(
    root: Path, said: Callable[..., Done]
) -> None:
    with up(cwd=root) as (_, told):
        assert told["console"].startswith("http://127.0.0.1:")
        assert told["persona"] == "reviewer"
        with httpx2.Client(timeout=PATIENCE) as client:
            page = client.get(told["console"], follow_redirects=True)
            assert client.post(told["mcp"], json={}).status_code == 401
            assert client.post(told["mcp"], json={}, headers=bearer(told["token"])).status_code == 400
            assert (page.status_code, "token" in str(page.url)) == (200, False)
            call = client.post(
                told["api"] + "/calls", json={"tool": "system.ping"}, headers=bearer(told["token"])
            )
            assert call.json()["ok"] is True
            refused = client.get(told["api"] + "/approvals", headers=bearer(told["token"]))
            assert refused.status_code == 403
            assert said("token", "reviewer", "--root", str(root)).out.strip() == told["token"]
            fresh = said("token", "reviewer", "--new", "--root", str(root)).out.strip()
            assert client.get(told["api"] + "/tools", headers=bearer(told["token"])).status_code == 401
            assert client.get(told["api"] + "/tools", headers=bearer(fresh)).status_code == 200


def test_up_ends_at_once_although_a_stream_is_open_and_a_call_waits(root: Path) -> None:
    with up("--persona", "builder", cwd=root) as (process, said), httpx2.Client(timeout=PATIENCE) as client:
        headers = bearer(said["token"])
        write = {"tool": "fs.write", "args": {"path": "a.txt", "content": "x"}}
        with client.stream("GET", said["api"] + "/stream", headers=headers) as stream:
            lines = stream.iter_lines()
            next(lines)
            host, port = said["api"].removeprefix("http://").removesuffix("/api/v1").split(":")
            waiting = socket.create_connection((host, int(port)))
            body = json.dumps(write | {"wait": True}).encode()
            head = f"POST /api/v1/calls HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {said['token']}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            waiting.sendall(head.encode() + body)
            while not next(lines).startswith("event: asked"):
                pass
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE) == 0
            assert time.monotonic() - began < 20
            waiting.settimeout(PATIENCE)
            answer = waiting.recv(65536)
            waiting.close()
    assert answer.startswith(b"HTTP/1.1 202")
    assert b'"pending"' in answer
    assert not (root / "a.txt").exists()


def test_up_refuses_what_would_surprise(tmp_path: Path, root: Path, said: Callable[..., Done]) -> None:
    bare = said("up", str(tmp_path))
    assert (bare.code, "toolgate init" in bare.err) == (2, True)
    opened = said("up", str(root), "--host", "0.0.0.0")
    assert (opened.code, "--allow-host" in opened.err) == (2, True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = said("up", str(root), "--port", str(taken.getsockname()[1]))
    assert (busy.code, "--port" in busy.err) == (2, True)
    nobody = said("up", str(root), "--persona", "nobody")
    assert (nobody.code, "reviewer" in nobody.err) == (2, True)


def test_the_usual_port_gives_way_to_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(serve, "PORT", taken.getsockname()[1])
        with serve.listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] not in (0, serve.PORT)


def test_other_commands_do_not_import_the_server(tmp_path: Path) -> None:
    code = (
        "import sys; from toolgate.faces.cli.main import main; main(['tools', '--help']); "
        "bad = {'fastapi', 'uvicorn', 'starlette', 'jinja2'} & set(sys.modules); sys.exit(bool(bad))"
    )
    env = environment() | {"COLUMNS": "100"}
    assert (
        subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True).returncode
        == 0
    )


def test_tokens_are_private_and_differ(root: Path, said: Callable[..., Done]) -> None:
    at = ("--root", str(root))
    human = said("token", *at).out.strip()
    assert said("token", *at).out.strip() == human
    builder = said("token", "builder", *at).out.strip()
    assert builder != human
    assert len(human) > 43  # 256 bits and a prefix
    (kept,) = (Path(os.environ["TOOLGATE_STATE_DIR"]) / "tokens").glob("*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not any(human.encode() in file.read_bytes() for file in root.rglob("*") if file.is_file())
    stranger = said("token", "stranger", *at)
    assert (stranger.code, "builder" in stranger.err) == (2, True)
    kept.chmod(0o644)
    open_to_all = said("token", *at)
    assert (open_to_all.code, "chmod 600" in open_to_all.err) == (2, True)


@contextmanager
def flood(address: str, count: int, sent: bytes) -> Iterator[None]:
    """So many connections that have sent this and say nothing more."""
    host, _, port = address.removeprefix("http://").partition("/")[0].partition(":")
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            opened.append(socket.create_connection((host, int(port)), timeout=PATIENCE))
            with suppress(ConnectionError):
                opened[-1].sendall(sent)
        yield
    finally:
        for each in opened:
            each.close()


def test_pause_on_the_command_line_stops_everybody_while_the_server_is_flooded(
    root: Path, said: Callable[..., Done]
) -> None:
    with (
        up(cwd=root) as (_, words),
        httpx2.Client(timeout=PATIENCE, headers=bearer(words["token"])) as client,
    ):
        calls = f"{words['api']}/calls"
        assert client.post(calls, json={"tool": "system.ping"}).json()["ok"]
        with flood(words["api"], 300, b"GET / HTTP/1.1\r\nX: "):
            assert said("pause", "--root", str(root)).code == 0
            stopped = client.post(calls, json={"tool": "system.ping"}).json()
            assert (stopped["ok"], stopped["error"]["code"]) == (False, "not_allowed")
            assert "paused" in stopped["error"]["message"]


def test_a_server_without_descriptors_goes_on_when_there_are_some_and_says_so_once(root: Path) -> None:
    process = start("up", "--port", "0", "--json", cwd=root)
    try:
        words = json.loads(heard(process, "stdout"))["data"]
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (100, 100))  # after it has made its plans
        look = {"tool": "fs.read", "args": {"path": "toolgate.yaml"}}
        with httpx2.Client(timeout=PATIENCE, headers=bearer(words["token"])) as client:
            with flood(words["api"], 150, b"GET / HTTP/1.1\r\nX: "):
                assert client.post(f"{words['api']}/calls", json=look).json()["ok"]
            assert client.post(f"{words['api']}/calls", json=look).json()["ok"]
    finally:
        process.terminate()
        done = finish(process)
    assert done.code == 0
    assert done.err.count("no file descriptors were left") == 1
