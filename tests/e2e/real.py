"""Six servers that people use, as they start, and calls of theirs that give the same answer each time."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from node.programs import CACHE, command

HERE = Path(__file__).parent
Calls = tuple[tuple[str, dict[str, Any]], ...]
THOUGHT = {"thought": "first", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
ADA = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}


@dataclass(frozen=True)
class Real:
    name: str
    """Behind the gate. `memory` and `git` are families of toolgate's own."""
    argv: list[str]
    calls: Calls
    env: dict[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        env = {"NODE_COMPILE_CACHE": str(CACHE), **self.env}
        return {"command": self.argv[0], "args": self.argv[1:], "env": env, "pin": "first"}


def six(place: Path) -> list[Real]:
    """What they write goes below `place`, and depends on nothing else."""
    files, repo = place / "files", str(_repository(place / "repo"))
    files.mkdir()
    (files / "poem.txt").write_text("Roses are red,\nviolets are blue.\n")
    path = str(files / "poem.txt")
    module = [sys.executable, "-m"]
    return [
        Real(
            "filesystem",
            [*command("filesystem"), str(files)],
            (
                ("read_text_file", {"path": path, "head": 1}),
                ("write_file", {"path": str(files / "new.txt"), "content": "new\n"}),
                ("list_directory", {"path": str(files)}),
                ("read_text_file", {"path": "/etc/passwd"}),
            ),
        ),
        Real(
            "memory-server",
            command("memory"),
            (("create_entities", {"entities": [ADA]}), ("search_nodes", {"query": "Ada"}), ("read_graph", {})),
            {"MEMORY_FILE_PATH": str(place / "memory.jsonl")},
        ),
        Real(
            "everything",
            [*command("everything"), "stdio"],
            (
                ("echo", {"message": "héllo"}),
                ("get-sum", {"a": 2, "b": 3}),
                ("get-structured-content", {"location": "Chicago"}),
                ("get-tiny-image", {}),
                ("get-resource-links", {"count": 2}),
                ("get-annotated-message", {"messageType": "success"}),
            ),
        ),
        Real("thinking", command("sequential-thinking"), (("sequentialthinking", THOUGHT),)),
        Real(
            "git-server",
            [*module, "mcp_server_git", "--repository", repo],
            (("git_log", {"repo_path": repo}), ("git_status", {"repo_path": repo}), ("git_show", {"repo_path": repo, "revision": "none"})),
        ),
        Real(
            "time",
            [*module, "mcp_server_time", "--local-timezone", "UTC"],
            (("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),),
        ),
    ]  # fmt: skip


def _repository(place: Path) -> Path:
    place.mkdir()
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}  # fmt: skip
    for line in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        (place / "a.txt").write_text("a\n")
        subprocess.run(["git", *line], cwd=place, env={**os.environ, **who}, check=True)
    return place


def processes(real: Real) -> list[psutil.Process]:
    """Of this server, started by us."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it ended while we looked
            if one.status() != psutil.STATUS_ZOMBIE and one.cmdline() == real.argv:
                found.append(one)
    return found
