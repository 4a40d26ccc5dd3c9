"""Run in a mount namespace of its own by test_full_disk.py: a project on a disk that fills up."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import toolgate
from toolgate.storage.port import Filter

CONFIG = {"version": 1, "default_persona": "p", "personas": {"p": {"phase": "contribute", "allow": ["*"]}}}


def fill(root: Path, leave: int) -> Path:
    """Take all space but so many bytes."""
    filler = root / "filler"
    with filler.open("ab", buffering=0) as stream:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    stream.write(b"\0" * size)
            except OSError:
                pass
    if leave:
        os.truncate(filler, max(0, filler.stat().st_size - leave))
    return filler


async def writes(root: Path, leave: int) -> dict[str, Any]:
    """What is said of each write while there is no space, what is there, and what the journal says afterwards."""
    async with toolgate.open(root, CONFIG) as gate:
        assert (await gate.call("fs.write", {"path": "old", "content": "old"})).ok
        filler = fill(root, leave)
        calls = [
            *(("fs.write", {"path": f"new{n}", "content": "x" * 9000 * (n + 1)}) for n in range(8)),
            *(("fs.write", {"path": f"d{n}/e/new", "content": "x" * 9000}) for n in range(4)),
            ("fs.write", {"path": "old", "content": "y" * 9000}),
        ]
        results = [await gate.call(*call) for call in calls]
        said = [
            {
                "path": call[1]["path"],
                "code": result.error.code.value if result.error else "ok",
                "message": result.error.message if result.error else "",
                "there": _now(root, call[1]["path"]) == call[1]["content"],
                "call": result.meta.call_id,
            }
            for call, result in zip(calls, results, strict=True)
        ]
        filler.unlink()
        for _ in range(500):
            if not await gate.services.ledger.look(lambda state, now: list(state.live)):
                break
            await asyncio.sleep(0.02)
        for one in said:
            rows = await gate.events(
                Filter(call=one["call"], kinds=("started", "committed", "failed", "unknown"))
            )
            one["kinds"] = [row.kind for row in rows]
        verified = (await gate.verify()).ok
    left = [str(path) for path in root.rglob(".toolgate-tmp-*")]
    return {"said": said, "verified": verified, "left": left}


def _now(root: Path, path: str) -> str | None:
    return (root / path).read_text() if (root / path).is_file() else None


def main() -> None:
    root, size, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(root)], check=True)
    if what == "writes":
        print(json.dumps(asyncio.run(writes(root, int(sys.argv[4])))))
    else:
        print(json.dumps(end(root, what)))


def end(root: Path, what: str) -> dict[str, Any]:
    """How a server ends that is told to while there is no space."""
    tg = [sys.executable, "-m", "toolgate"]
    (root / "toolgate.yaml").write_text(json.dumps(CONFIG))  # JSON is YAML
    subprocess.run([*tg, "trust", "--root", str(root), "--yes"], check=True, capture_output=True)
    command = [*tg, "up", str(root), "--port", "0", "--json"] if what == "up" else [*tg, "mcp", str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            said = _up(server, root) if what == "up" else _talk(server, root)
        finally:
            server.terminate()
        _, err = server.communicate(timeout=60)
    return {"code": server.returncode, "said": said, "stderr": err}


def _read_json(stream: Any) -> Any:
    text = ""
    while not text.endswith("}\n"):
        line = stream.readline()
        assert line, text
        text += line
    return json.loads(text)


def _up(server: subprocess.Popen[str], root: Path) -> list[str]:
    where = _read_json(server.stdout)
    where = where.get("data", where)
    fill(root, 0)
    return _post(where)


def _post(where: dict[str, str]) -> list[str]:
    import urllib.error
    import urllib.request

    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    said = []
    for n in range(3):
        body = json.dumps({"tool": "fs.save", "args": {"path": f"n{n}", "content": "x"}}).encode()
        headers = {"authorization": f"Bearer {where['token']}", "content-type": "application/json"}
        request = urllib.request.Request(f"{where['api']}/calls", body, headers)
        try:
            with direct.open(request, timeout=30) as answer:
                said.append(answer.read().decode())
        except urllib.error.HTTPError as error:
            said.append(error.read().decode())
    return said


def _talk(server: subprocess.Popen[str], root: Path) -> list[str]:
    assert server.stdin is not None
    assert server.stdout is not None
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    said = []

    def ask(message: dict[str, Any]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(message | {"jsonrpc": "2.0"}) + "\n")
        server.stdin.flush()
        if "id" in message:
            said.append(server.stdout.readline())

    ask({"id": 1, "method": "initialize", "params": client})
    ask({"method": "notifications/initialized"})
    ask({"id": 9, "method": "ping"})  # the first answer comes before the gate is open, this one after
    ask({"id": 10, "method": "tools/list"})
    fill(root, 0)
    for n in range(3):
        args = {"name": "fs_save", "arguments": {"path": f"n{n}", "content": "x"}}
        ask({"id": n + 2, "method": "tools/call", "params": args})
    return said


if __name__ == "__main__":
    main()
