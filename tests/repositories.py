"""Generated repositories, made with plain git, and a gate on them: what tests of history share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import toolgate
from toolgate.core.result import Result
from toolgate.facade import Gate

MANY = {"per_minute": 100_000, "per_hour": 100_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "reviewer",
    "personas": {"reviewer": {"phase": "observe"}},
    "limits": {"global": MANY, "persona": MANY},
}
_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Bob",
    "GIT_COMMITTER_EMAIL": "bob@example.org",
    "LC_ALL": "C",
}


class Repo:
    """A repository under test. Every commit is a minute after the one before, so that order is certain."""

    def __init__(self, root: Path, *init: str) -> None:
        self.root = root
        self.minutes = 0
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init)

    def git(self, *args: str, env: Mapping[str, str] | None = None, stdin: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, env={"PATH": os.environ["PATH"], **_ENV, **(env or {})}, input=stdin,
            capture_output=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        for name, content in files.items():
            file = self.root / name
            if content is None:
                file.unlink()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, message: str, files: Mapping[str, str | bytes | None] | None = None, *args: str) -> str:
        self.write(files or {})
        self.git("add", "-A", "-f")
        return self.seal(message, *args)

    def seal(self, message: str, *args: str) -> str:
        """Commit what is staged."""
        self.minutes += 1
        when = f"{1_750_000_000 + self.minutes * 60} +0200"
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        self.git("commit", "-q", "--allow-empty", "-m", message, *args, env=dates)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()


@asynccontextmanager
async def history(root: Path, config: Mapping[str, Any] | None = None) -> AsyncIterator[Gate]:
    async with toolgate.open(root, dict(config or CONFIG), "memory") as gate:
        yield gate


async def data(gate: Gate, tool: str, **args: Any) -> dict[str, Any]:
    result = await gate.call(tool, args)
    assert result.ok, result.error
    found: dict[str, Any] = result.data
    return found


async def refused(gate: Gate, tool: str, **args: Any) -> str:
    result: Result = await gate.call(tool, args)
    assert result.error is not None, result.data
    assert result.error.fix
    return result.error.code.value
