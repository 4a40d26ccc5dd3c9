"""Documents and what `init` writes name only tools that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolgate
from toolgate.project.sections import DEFAULT_YAML

from .pages import PAGES, REPOSITORY, name_of

PLANNED = ("ai", "db", "git", "http", "web")
"""Families of the source documents that are not built."""
_NAME = re.compile(r"(?<![\w./*-])([a-z]+)\.(\*|[a-z][a-z_]*)(?![\w.(/:-])")
_SAID = re.compile(r"```.*?```|`[^`\n]+`", re.S)
NOT_TOOLS = {
    "data.findings",  # of a result
    "data.near",
    "file.path",  # an attribute
    "jobs.db",  # a file
    "ledger.database",  # settings
    "ledger.key_file",
}
HISTORY = {"CHANGELOG.md"}


async def _names(project: Path) -> set[str]:
    async with toolgate.open(project, {"version": 1}, "memory") as gate:
        return {*gate.tool_names(), *(alias for tool in gate.services.registry for alias in tool.aliases)}


@pytest.mark.parametrize("what", ["pages", "starter"])
async def test_only_tools_that_exist_are_named(project: Path, what: str) -> None:
    names = await _names(project)
    families = {name.partition(".")[0] for name in names} | {*PLANNED}
    examples = sorted(REPOSITORY.glob("examples/**/*.md"))
    texts = {"toolgate.yaml": DEFAULT_YAML}
    if what == "pages":
        pages = [page for page in (*PAGES, *examples) if name_of(page) not in HISTORY]
        texts = {name_of(page): "\n".join(_SAID.findall(page.read_text("utf-8"))) for page in pages}
    missing = {
        f"{where}: {found[0]}"
        for where, text in texts.items()
        for found in _NAME.finditer(text)
        if found[1] in families and found[2] != "*" and found[0] not in names | NOT_TOOLS
    }
    missing |= {
        f"{where}: {found[0]}"
        for where, text in texts.items()
        for found in _NAME.finditer(text)
        if found[1] in PLANNED and found[2] == "*"
    }
    assert not missing
