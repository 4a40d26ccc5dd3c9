"""What a model reads over MCP beside what the plain program prints, in characters; and the size of a list of tools.

The questions are asked of a real repository, over a real connection, in a project as `toolgate init` makes it. They are made
from what the repository has, so that another one (TOOLGATE_BENCH_REPOSITORY) is asked about its own files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import Line, median
from bench.run import Run
from toolgate import testing
from toolgate.core.tool import Tool, tool
from toolgate.faces.mcp.listing import ToolListing
from toolgate.policy.hard import is_blocked
from toolgate.workspace.search.program import find_rg

OURS = Path(__file__).parents[1]
CODE = (".py", ".c", ".h", ".js", ".ts", ".go", ".rs", ".java", ".rb")
MEDIAN, MOST, SMALL = 1.25, 2.5, 120
"""The promise: the median ratio, the largest one, and characters that a small answer may have more."""
LISTS = {"code": 20_000, "minimal": 5_000, "300 tools": 25_000}
FIRST, SHARE = 3, 0.9
"""Of `tools.find`: among how many the right tool is, for what share of the queries."""
FINDING = OURS / "tests" / "toolsets" / "finding"


class Asked(NamedTuple):
    what: str
    tool: str
    args: dict[str, Any]
    plain: Sequence[str]


class Answered(NamedTuple):
    asked: Asked
    ours: int
    plain: int

    @property
    def ratio(self) -> float:
        return self.ours / max(self.plain, 1)

    @property
    def holds(self) -> bool:
        return self.ratio <= MOST or self.ours - self.plain <= SMALL


async def lean(run: Run) -> list[Line]:
    run.tell("what a model pays")
    root = run.clone("lean") or _own(run)
    with Connection(root, run.folder("lean-state")) as client:
        answers = [ask(client, root, one) for one in questions(root)]
        sizes = {"code": client.listed()}
    with Connection(root, run.scratch / "lean-state", "--profile", "minimal") as client:
        sizes["minimal"] = client.listed()
    sizes["300 tools"], found = await _many()
    return [
        _summary(answers),
        *(_size(name, size) for name, size in sizes.items()),
        found,
        *map(_line, answers),
    ]


async def _many() -> tuple[int, Line]:
    """Tools of other servers by the hundred: what is listed, and whether the right one is found."""
    lines = [
        line.partition(": ")
        for file in ("tools", "more_tools")
        for line in (FINDING / f"{file}.txt").read_text().splitlines()
    ]
    made = {name: _stranger(name, text) for name, _, text in lines}
    asked = [line.rpartition(": ") for line in (FINDING / "more_queries.txt").read_text().splitlines()]
    wanted = {name for _, _, names in asked for name in names.split()}
    some = [made[name] for name in sorted(made, key=lambda name: name not in wanted)[:300]]
    async with testing.gate(tools=some) as gate:
        listing = ToolListing(gate)
        tools, _ = listing.page("tester", None)
        size = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False))
        right = 0
        for query, _, names in asked:
            result = await gate.call("tools.find", {"query": query, "limit": FIRST}, persona="tester")
            right += any(one["name"] in names.split() for one in result.data)
    share = right / len(asked)
    return size, Line(
        what=f"`tools.find`: the right tool among the first {FIRST}", ours=f"{right} of {len(asked)} queries", ratio=share,
        bar=f"≥ {SHARE:.0%}", holds=share >= SHARE, how="300 tools of other servers beside toolgate's own; tests/toolsets/finding",
    )  # fmt: skip


def _stranger(name: str, description: str) -> Tool:
    @tool(name, description=description, reads=["outside"], origin="imported")
    async def run(query: str = "", limit: int = 10) -> str:
        return query[:limit]

    return run


def _own(run: Run) -> Path:
    """toolgate's own repository, with its history."""
    made = run.scratch / "lean"
    subprocess.run(["git", "clone", "-q", "--dissociate", str(OURS), str(made)], check=True)
    return made


class Connection:
    """A client that starts `toolgate mcp` as clients do, and counts what its model is shown."""

    def __init__(self, root: Path, state: Path, *options: str) -> None:
        self._environment = {**os.environ, "TOOLGATE_STATE_DIR": str(state), "TOOLGATE_DATA_HOME": str(state)}
        self._root, self._options, self._number = root, options, 0

    def __enter__(self) -> Connection:
        toolgate = [sys.executable, "-m", "toolgate"]
        if not (self._root / "toolgate.yaml").exists():
            subprocess.run(
                [*toolgate, "init"], cwd=self._root, env=self._environment, check=True, capture_output=True
            )
        self._process = subprocess.Popen(
            [*toolgate, "mcp", "--persona", "builder", *self._options], cwd=self._root, env=self._environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        info = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                return answer
        raise RuntimeError(f"the server ended before it answered {method}")

    def call(self, tool: str, args: dict[str, Any]) -> str:
        """Everything of the answer that a model could be shown."""
        answer = self.ask("tools/call", {"name": tool, "arguments": args})
        result = answer.get("result")
        if result is None or result.get("isError"):
            raise RuntimeError(f"{tool} {args} failed: {answer}")
        whole = json.dumps(result["structuredContent"]) if "structuredContent" in result else ""
        return "".join(block.get("text", "") for block in result["content"]) + whole

    def listed(self) -> int:
        """Characters of the list of tools, as JSON without white space."""
        tools = self.ask("tools/list", {})["result"]["tools"]
        return len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False))


def ask(client: Connection, root: Path, asked: Asked) -> Answered:
    said = subprocess.run(asked.plain, cwd=root, capture_output=True, text=True, errors="replace")
    return Answered(asked, len(client.call(asked.tool, asked.args)), len(said.stdout))


def questions(root: Path) -> list[Asked]:
    """Some of each kind, about files that are there."""
    git = ["git", "--no-pager"]
    rg = [find_rg() or "rg", "-n", "--color=never", "--no-heading", "--sort=path"]
    tracked = [
        name for name in _say(root, "ls-files").splitlines() if not any(map(is_blocked, name.split("/")))
    ]
    files = _chosen(root, tracked)
    one, two, three = files[0], files[len(files) // 2], files[-1]
    directory = two.rpartition("/")[0] or "."
    word, rare = _words(root, [two])[0], _words(root, files)[1]
    commits = _say(root, "rev-list", "HEAD").split()
    touched = _say(root, "rev-list", "HEAD", "--", directory).split()
    back = f"{touched[min(2, len(touched) - 1)]}~1" if len(touched) > 3 else commits[min(3, len(commits) - 1)]
    deep = max((name.rpartition("/")[0] for name in tracked), key=lambda name: (name.count("/"), name))
    suffix = Path(one).suffix
    insensitive = [*rg, "-i", "-m", "100"]
    return [
        Asked("read a file", "fs_read", {"path": one}, _sed(1, "$", one)),
        Asked("read another file", "fs_read", {"path": three}, _sed(1, "$", three)),
        Asked("read a file as code", "code_read", {"path": two}, _sed(1, 500, two)),
        Asked("20 lines", "fs_read", {"path": two, "ranges": [[1, 20]]}, _sed(1, 20, two)),
        Asked("60 lines", "fs_read", {"path": one, "ranges": [[20, 79]]}, _sed(20, 79, one)),
        Asked("5 lines", "fs_read", {"path": three, "ranges": [[10, 14]]}, _sed(10, 14, three)),
        Asked("40 lines as code", "code_read", {"path": two, "start_line": 5, "end_line": 44}, _sed(5, 44, two)),
        Asked("a usual word", "fs_search", {"pattern": rf"\b{word}\b", "path": directory}, [*insensitive, rf"\b{word}\b", directory]),
        Asked("a rare word", "fs_search", {"pattern": rf"\b{rare}\b"}, [*insensitive, rf"\b{rare}\b"]),
        Asked("a word in one file", "fs_search", {"pattern": word, "path": two}, [*insensitive, "-H", word, two]),
        Asked("a word with context", "fs_search", {"pattern": rf"\b{rare}\b", "context_lines": 2}, [*insensitive, "-C2", rf"\b{rare}\b"]),
        Asked("imports", "code_search", {"pattern": "^(import|#include|from) ", "paths": [directory]}, [*insensitive, "^(import|#include|from) ", directory]),
        Asked("no match", "fs_search", {"pattern": "zqxjkv-nothing"}, [*rg, "zqxjkv-nothing"]),
        Asked("a directory", "fs_list", {"path": directory}, ["ls", "-d", *_in(root, directory)]),
        Asked("the deepest directory, beside its bare names", "fs_list", {"path": deep}, ["ls", "-A", deep]),
        Asked("files by ending", "fs_list", {"glob": f"**/*{suffix}"}, [*git, "ls-files", f"*{suffix}"]),
        Asked("files of a directory", "code_list", {"directory": directory}, [*git, "ls-files", directory]),
        Asked("the last commit's diff", "code_diff", {"base": "HEAD~1", "compare": "HEAD"}, [*git, "diff", "HEAD~1", "HEAD"]),
        Asked("three commits' diff", "code_diff", {"base": back, "compare": "HEAD", "paths": [directory]}, [*git, "diff", back, "HEAD", "--", directory]),
        Asked("a commit", "code_show", {"commit": commits[len(commits) // 2]}, [*git, "show", commits[len(commits) // 2]]),
        Asked("10 commits", "code_log", {"limit": 10}, [*git, "log", "-10"]),
        Asked("10 commits in one line each", "code_log", {"limit": 10, "oneline": True}, [*git, "log", "--oneline", "-10"]),
        Asked("the files of a diff", "code_diff", {"base": back, "compare": "HEAD", "view": "stat"}, [*git, "diff", "--stat", back, "HEAD"]),
        Asked("matches close together, with context", "fs_search", {"pattern": word, "path": two, "context_lines": 3}, [*insensitive, "-C3", "-H", word, two]),
        Asked("20 commits of a directory", "code_log", {"path": directory}, [*git, "log", "-20", "--", directory]),
        Asked("commits of a file", "code_log", {"path": two, "limit": 5}, [*git, "log", "-5", "--", two]),
        Asked("blame of 30 lines", "code_blame", {"path": two, "start_line": 1, "end_line": 30}, [*git, "blame", "-L1,30", two]),
        Asked("blame of a file", "code_blame", {"path": one, "end_line": 120}, [*git, "blame", "-L1,120", one]),
    ]  # fmt: skip


def _sed(first: int, last: int | str, file: str) -> list[str]:
    return ["sed", "-n", f"{first},{last}p", file]


def _say(root: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout


def _chosen(root: Path, tracked: Sequence[str]) -> list[str]:
    """Source files of a usual length, in the order of their names."""
    found = []
    for name in tracked:
        if name.endswith(CODE) and " " not in name:
            lines = (root / name).read_text(errors="replace").count("\n")
            if 120 <= lines <= 450:
                found.append(name)
    if len(found) < 3:
        raise RuntimeError(f"{root} has too few source files of a usual length")
    return found


def _words(root: Path, files: Sequence[str]) -> tuple[str, str]:
    """One that many lines have, and one that few do."""
    counts: Counter[str] = Counter()
    for name in files[:: max(len(files) // 60, 1)]:
        counts.update(
            word
            for word in (root / name).read_text(errors="replace").split()
            if word.isalpha() and 5 <= len(word) <= 12
        )
    usual = [word for word, _ in counts.most_common(6)]
    few = sorted(word for word, count in counts.items() if count == 3) or usual
    return usual[-1], few[len(few) // 2]


def _in(root: Path, directory: str) -> list[str]:
    """What `ls` is asked for, so that it prints whole paths as well."""
    prefix = "" if directory == "." else f"{directory}/"
    return [f"{prefix}{one.name}" for one in sorted((root / directory).iterdir()) if one.name != ".git"]


def _summary(answers: Sequence[Answered]) -> Line:
    ratios = [one.ratio for one in answers]
    middle, worst = (
        median(ratios),
        max(answers, key=lambda one: one.ratio if one.ours - one.plain > SMALL else 0),
    )
    return Line(
        what="what a model reads, beside the plain program", ours=f"median of {len(answers)} questions",
        peer=f"most: {worst.asked.what}, {worst.ratio:.2f} ×", ratio=middle,
        bar=f"≤ {MEDIAN} ×, none > {MOST} × (small: +{SMALL})",
        holds=middle <= MEDIAN and all(one.holds for one in answers),
        how="characters of the answers over MCP on stdio, project as `toolgate init` makes it",
    )  # fmt: skip


def _size(profile: str, size: int) -> Line:
    most = LISTS[profile]
    return Line(
        what=f"tools/list with {profile}" if profile[0].isdigit() else f"tools/list, profile `{profile}`", ours=f"{size:,} characters", bar=f"≤ {most:,}", holds=size <= most,
        how="persona `builder`, as JSON without white space",
    )  # fmt: skip


def _line(one: Answered) -> Line:
    plain = " ".join(
        Path(one.asked.plain[0]).name if not at else word for at, word in enumerate(one.asked.plain)
    )
    return Line(
        what=f"model reads: {one.asked.what}", ours=f"{one.ours:,} characters", peer=f"{one.plain:,}", ratio=one.ratio,
        how=f"`{one.asked.tool}` and `{plain[:100].replace('|', ' or ')}`",
    )  # fmt: skip
