"""A mount with names that are open and names that are shut, and what rg is told of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import program
from toolgate.workspace.search import search as known
from toolgate.workspace.search.query import FoundMatches, SearchQuery
from toolgate.workspace.search.search import search

SHUT = [
    "a!b.key", "[!a].key", "private!key!.py", " x .pem", "#.key", "b\\c.key",
    ".env", "id_rsa", "Secrets.JSON", "k.pem", ".hidden", "a/My-Private-Key.txt", "a/.git/x", ".tx/config", "b/{odd} [1]*.key",
]  # fmt: skip
OPEN = ["a.py", "a/b/c.py", ".gitignore", ".github/w.yml", "a/.editorconfig", "b/x.txt", "node_modules/x.js"]
FILES = [*SHUT, *OPEN]
Told = list[list[str]]
Script = Callable[[str], None]


def plant(project: Path, files: list[str] = FILES) -> None:
    for name in files:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("hit\n")


def ask(mounts: Mounts, **more: Any) -> FoundMatches:
    return search(mounts, SearchQuery("hit"), engine="rg", **more)


def ask_until_known(mounts: Mounts, **more: Any) -> FoundMatches:
    for _ in range(2):
        ask(mounts, **more)
    known.learned(mounts)
    return ask(mounts, **more)


def patterns(args: list[str]) -> bool:
    return any(arg.startswith("--iglob") for arg in args)


def stand_in(monkeypatch: pytest.MonkeyPatch, script: Path) -> None:
    """A script instead of rg. It needs more than rg does, so there is no fence around it."""
    monkeypatch.setattr(program, "find_rg", lambda: str(script))
    monkeypatch.setattr(program, "available", lambda: False)
