"""`code.log` and `code.blame` of a deep file against plain `git`, on a real repository or on a generated one with deep history."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import toolgate
from bench import world
from bench.measure import Line, Step, alternate, median, millis
from bench.run import Run

BAR = 0.35
CODE = {".py", ".c", ".h", ".cc", ".cpp", ".js", ".ts", ".go", ".rs", ".java", ".rb", ".php", ".cs", ".kt"}
ASKED = 20
COMMITS, LINES = 100, 300
"""A deep file has at least as many."""
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
    lines = []
    real = run.clone("git-repository")
    if real is not None:
        commits = int(_say(real, "rev-list", "--count", "HEAD"))
        lines += await _measure(
            run,
            real,
            deepest(real),
            f"a real repository of {commits:,} commits, files with at least {COMMITS} of them and {LINES} lines whose last {ASKED} reach furthest down",
        )
    commits = run.count(20_000, 5_000)
    run.tell(f"making a repository of {commits:,} commits")
    root = run.folder("git")
    await asyncio.to_thread(make, root, commits)
    return lines + await _measure(run, root, DEEP, f"{commits:,} commits over {FILES} files, fast-imported")


async def _measure(run: Run, root: Path, deep: Sequence[str], about: str) -> list[Line]:
    asked: list[tuple[str, str, dict[str, Any], tuple[str, ...]]] = [
        ("`code.log`", "code.log", {}, ("log", f"-{ASKED}", "--format=fuller", "--numstat")),
        ("`code.blame`", "code.blame", {}, ("blame", "--porcelain")),
        ("`code.blame` of 41 lines", "code.blame", {"start_line": 50, "end_line": 90}, ("blame", "--porcelain", "-L50,90")),
    ]  # fmt: skip
    lines = []
    async with toolgate.open(root, CONFIG, "memory") as gate:
        run.tell("waiting for the commit-graph")
        await _graph(gate, root)
        for what, tool, args, plain in asked:
            run.tell(what)
            files, same = iter(deep), iter(deep)

            async def ours(
                tool: str = tool, args: dict[str, Any] = args, files: Iterator[str] = files
            ) -> object:
                result = await gate.call(tool, {"path": next(files), **args})
                if not result.ok:
                    raise RuntimeError(f"{tool} does not run here: {result.error}")
                return result

            mine, theirs = await alternate(ours, _plain(root, plain, same), run.count(len(deep), 8))
            lines.append(_line(what, plain, about, mine, theirs))
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


def _line(what: str, plain: tuple[str, ...], about: str, mine: list[float], theirs: list[float]) -> Line:
    """The same file at the same moment, one after the other; so the ratio is that of each pair, and its median."""
    ratio = median([ours / peer for ours, peer in zip(mine, theirs, strict=True)])
    return Line(
        what=f"{what} of a deep file, warm",
        ours=f"p50 {millis(median(mine))}",
        peer=f"p50 {millis(median(theirs))}",
        ratio=ratio,
        bar=f"≤ {BAR} ×",
        holds=ratio <= BAR,
        how=f"`gate.call`, parsed and shaped, against `git {' '.join(plain)}`, each time of another file, median of "
        f"the {len(mine)} ratios; {about}; the shadow commit-graph is built",
    )


def _say(root: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=root, check=True, stdout=subprocess.PIPE).stdout.decode(
        "utf-8", "replace"
    )


def deepest(root: Path) -> list[str]:
    """Large files that many commits were about, the newest of them lying furthest down: what `git` has to walk for."""
    commits = _say(root, "log", "--format=%x00", "--name-only", "-n30000").split("\0")
    touched: dict[str, list[int]] = {}
    for depth, commit in enumerate(commits):
        for name in commit.split("\n"):
            touched.setdefault(name, []).append(depth)
    known = [name for name, at in touched.items() if len(at) >= COMMITS and (root / name).suffix in CODE]
    large = [
        name for name in known if (root / name).is_file() and (root / name).read_bytes().count(b"\n") >= LINES
    ]
    return sorted(large, key=lambda name: -touched[name][ASKED - 1])[: len(DEEP)]


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
