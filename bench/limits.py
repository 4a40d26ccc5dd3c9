"""`python -m bench.limits [ENTRIES]`: what each tool does with far too much, how long it takes and how much memory.

A sparse file of 10 GB, one line of 100 MB, a directory of a million entries, a file that grows while it is read,
patterns that ruin other engines. Every call runs in a process of its own, so that its largest memory is its own.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import toolgate
from bench import world

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "bench",
    "personas": {"bench": {"phase": "contribute", "allow": ["fs.*"]}},
    "limits": world.LIMITS,
}
HUGE, LINE, MANY, BUSY = "sparse.bin", "line.js", "many", "busy.txt"
CASES: list[tuple[str, dict[str, Any]]] = [
    ("system.ping", {}),
    *((tool, {"path": HUGE}) for tool in ("fs.read", "code.read", "code.outline", "fs.hash", "fs.delete")),
    ("fs.read", {"path": HUGE, "ranges": [[1, 2]]}),
    ("fs.edit", {"path": HUGE, "find": "a", "replace": "b"}),
    ("fs.append", {"path": HUGE, "text": "a"}),
    ("fs.move", {"path": HUGE, "new_path": "other.bin"}),
    ("code.search", {"pattern": "needle", "paths": [HUGE]}),
    *((tool, {"path": LINE}) for tool in ("fs.read", "code.read", "code.outline", "fs.hash")),
    ("fs.read", {"path": LINE, "ranges": [[1, 1]]}),
    *(("code.search", {"pattern": each, "paths": [LINE]}) for each in ("needle", "(x+x+)+y", r"(\w+)*\d$", "x")),
    ("fs.edit", {"path": LINE, "find": "needle", "replace": "b"}),
    ("fs.list", {"path": MANY}),
    ("fs.list", {"path": MANY, "details": True, "limit": 10000}),
    ("fs.find", {"base": MANY, "pattern": "*7.txt"}),
    ("code.list", {"directory": MANY}),
    ("code.list", {"directory": MANY, "sort_by": "modified"}),
    ("code.search", {"pattern": "x", "paths": [MANY]}),
    ("fs.delete", {"path": MANY}),
    ("fs.read", {"path": BUSY}),
    ("code.read", {"path": BUSY}),
    ("fs.hash", {"path": BUSY}),
    ("code.search", {"pattern": "line", "paths": [BUSY]}),
]  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(asyncio.run(_one(Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])))))
        return
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        _build(root, entries)
        print(f"{entries:,} entries\n\n| call | time | memory | answer |\n|---|---|---|---|")
        for tool, args in CASES:
            print(_row(root, tool, args), flush=True)


def _build(root: Path, entries: int) -> None:
    with (root / HUGE).open("wb") as file:
        file.truncate(10 << 30)
    (root / LINE).write_bytes(b"x" * (100 << 20) + b"needle")
    (root / BUSY).write_bytes(b"line\n" * 1000)
    (root / MANY).mkdir()
    for number in range(entries):
        (root / MANY / f"{number}.txt").touch()


def _row(root: Path, tool: str, args: dict[str, Any]) -> str:
    argv = [sys.executable, "-m", "bench.limits", "--one", str(root), tool, json.dumps(args)]
    said = json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=300).stdout)
    shown = ", ".join(f"{key}={value}" for key, value in args.items())
    return (
        f"| `{tool}` {shown} | {said['seconds']:.2f} s | {said['megabytes']} MB | {said['answer']} |".replace(
            "|x", "\\|x"
        )
    )


async def _one(root: Path, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    stop = threading.Event()
    if args.get("path") == BUSY or BUSY in args.get("paths", ()):
        threading.Thread(target=_grow, args=(root / BUSY, stop), daemon=True).start()
    async with toolgate.open(root, CONFIG, "memory") as gate:
        begun = time.perf_counter()
        result = await gate.call(tool, args)
        seconds = time.perf_counter() - begun
    stop.set()
    answer = "ok" if result.ok else str(result.error and result.error.code)
    if result.ok and isinstance(result.data, dict) and result.data.get("truncated"):
        answer += ", truncated"
    return {"seconds": seconds, "megabytes": _most_memory(), "answer": answer}


def _most_memory() -> int:
    """Of this program alone: what `getrusage` says begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def _grow(file: Path, stop: threading.Event) -> None:
    with file.open("ab", buffering=0) as stream:
        while not stop.is_set() and stream.tell() < 1 << 30:
            stream.write(b"line\n" * 100)


if __name__ == "__main__":
    main()
