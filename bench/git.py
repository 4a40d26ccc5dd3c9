"""`code.log` and `code.blame` of a deep file against plain `git`, on a generated repository with deep history."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import toolgate
from bench import world
from bench.measure import Line, Step, alternate, median, millis
from bench.run import Run

BAR = 0.35
FILES = 800
DEEP = tuple(f"src/lib/part{number % 8}/core/deep{number}.py" for number in range(16))
"""Each is asked about once, so that nothing of an answer is known before; the commit-graph is."""
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "bench",
    "personas": {"bench": {"phase": "observe"}},
    "limits": world.LIMITS,
}


async def git(run: Run) -> list[Line]:
    commits = run.count(20_000, 5_000)
    run.tell(f"making a repository of {commits:,} commits")
    root = run.folder("git")
    await asyncio.to_thread(make, root, commits)
    asked: list[tuple[str, str, dict[str, Any], tuple[str, ...]]] = [
        ("`code.log`", "code.log", {}, ("log", "-20", "--format=fuller", "--numstat")),
        ("`code.blame`", "code.blame", {}, ("blame", "--porcelain")),
        ("`code.blame` of 41 lines", "code.blame", {"start_line": 50, "end_line": 90}, ("blame", "--porcelain", "-L50,90")),
    ]  # fmt: skip
    lines = []
    async with toolgate.open(root, CONFIG, "memory") as gate:
        run.tell("waiting for the commit-graph")
        await _graph(gate, root)
        for what, tool, args, plain in asked:
            run.tell(what)
            files, same = iter(DEEP), iter(DEEP)

            async def ours(
                tool: str = tool, args: dict[str, Any] = args, files: Iterator[str] = files
            ) -> object:
                result = await gate.call(tool, {"path": next(files), **args})
                if not result.ok:
                    raise RuntimeError(f"{tool} does not run here: {result.error}")
                return result

            mine, theirs = await alternate(ours, _plain(root, plain, same), run.count(len(DEEP), 6))
            lines.append(_line(what, plain, commits, median(mine), median(theirs)))
    return lines


async def _graph(gate: toolgate.Gate, root: Path) -> None:
    """The first call asks for it; from then on it is only waited for."""
    await gate.call("code.log", {"limit": 1})
    async with asyncio.timeout(300):
        while not list((root / ".toolgate" / "cache" / "git").glob("*/objects/info/commit-graph")):
            await asyncio.sleep(0.1)


def _plain(root: Path, args: tuple[str, ...], files: Iterator[str]) -> Step:
    async def step() -> object:
        argv = ("git", "-C", str(root), *args, "--", next(files))
        process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
        out, _ = await process.communicate()
        if not out:
            raise RuntimeError(f"git {args} prints nothing")
        return out

    return step


def _line(what: str, plain: tuple[str, ...], commits: int, ours: float, peer: float) -> Line:
    return Line(
        what=f"{what} of a deep file, warm",
        ours=f"p50 {millis(ours)}",
        peer=f"p50 {millis(peer)}",
        ratio=ours / peer,
        bar=f"≤ {BAR} ×",
        holds=ours / peer <= BAR,
        how=f"`gate.call`, parsed and shaped, against `git {' '.join(plain)}`, in turn, each time of another file; "
        f"{commits:,} commits over {FILES} files, fast-imported; the shadow commit-graph is built",
    )


def make(root: Path, commits: int) -> None:
    """A trunk with the deep file touched now and then, so that its history reaches far down."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    stream = subprocess.Popen(["git", "-C", str(root), "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert stream.stdin is not None
    for chunk in _stream(commits):
        stream.stdin.write(chunk)
    stream.stdin.close()
    if stream.wait(300) != 0:
        raise RuntimeError("git fast-import failed")
    subprocess.run(["git", "-C", str(root), "reset", "-q", "--hard"], check=True)
    subprocess.run(["git", "-C", str(root), "repack", "-adq"], check=True)


def _stream(commits: int) -> Iterator[bytes]:
    chance = random.Random(1)
    files = {f"src/lib/part{number % 8}/module{number}.py": ["x"] * 20 for number in range(FILES)}
    names = list(files)
    files |= {name: [f"line {number}" for number in range(300)] for name in DEEP}
    for number in range(commits):
        touched = chance.sample(names, 2) + [name for at, name in enumerate(DEEP) if number % 250 == 15 * at]
        message = f"commit {number}".encode()
        yield b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\n" % (
            1_600_000_000 + number * 300
        )
        yield b"data %d\n%s\n" % (len(message), message)
        for name in touched if number else files:
            lines = files[name]
            lines[chance.randrange(len(lines))] = f"changed in {number}"
            content = "\n".join(lines).encode() + b"\n"
            yield b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content)
