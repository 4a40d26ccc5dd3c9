"""What a command may import: a start that nobody notices is one that loads nothing it does not use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .driving import COMMAND, environment

NEVER = {
    "typer", "click", "argparse", "rich", "fastapi", "starlette", "uvicorn", "jinja2", "tree_sitter", "mcp", "dbos",
    "jsonschema", "asyncpg", "httpx", "cryptography", "chardet",
}  # fmt: skip
TOOLS = {
    "toolgate.app", "toolgate.facade", "toolgate.features.code.reading", "toolgate.features.files.fs",
    "toolgate.features.programs.programs", "toolgate.features.servers.servers", "toolgate.features.jobs.jobs",
}  # fmt: skip
HEAVY = {"pydantic", "pydantic_core", "yaml", "orjson", "dataclasses", "uuid", "difflib", "shutil"}
"""What takes longer to load than most calls take."""
DRAWS_A_QUESTION = {
    "toolgate.kits.terminal.conversation", "toolgate.kits.terminal.question", "toolgate.kits.words",
    "toolgate.kits.diffs", "toolgate.kits.pieces", "toolgate.core.lookalikes", "termios",
}  # fmt: skip
CONTROL = [("pause", "reader"), ("approvals",), ("grants",), ("ledger", "tail")]


def imported(root: Path, *words: str) -> set[str]:
    """The modules that a command loads; `rich` stands for all that is below it."""
    done = subprocess.run(
        [COMMAND[0], "-X", "importtime", *COMMAND[1:], *words], cwd=root, env=environment(), capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    names = {line.rpartition("|")[2].strip() for line in lines}
    return names | {name.partition(".")[0] for name in names}


def test_help_loads_the_tables_of_commands_and_nothing_else(project: Path) -> None:
    loaded = imported(project, "--help")
    assert not loaded & (NEVER | TOOLS | {"pydantic", "yaml", "asyncio", "sqlite3", "dataclasses", "inspect"})
    own = {
        name for name in loaded if name.startswith("toolgate.") and not name.startswith("toolgate.features")
    }
    assert own == {
        "toolgate.version", "toolgate.feature", "toolgate.faces", "toolgate.faces.cli", "toolgate.faces.cli.main",
        "toolgate.faces.cli.root", "toolgate.kits", "toolgate.kits.terminal", "toolgate.kits.terminal.help_pages",
        "toolgate.core", "toolgate.core.collecting", "toolgate.core.named_tuples",
    } - {"toolgate"}  # fmt: skip


@pytest.mark.parametrize("words", CONTROL, ids=" ".join)
def test_a_control_command_loads_no_tool_and_draws_without_rich_in_a_pipe(
    project: Path, words: tuple[str, ...]
) -> None:
    imported(project, "approvals")  # the file has been read in full once
    assert not imported(project, *words) & (
        NEVER
        | TOOLS
        | {
            "asyncio",
            "logging",
            "pydantic",
            "yaml",
            "toolgate.project.config",
            "orjson",
            "dataclasses",
            "inspect",
        }
    )


def test_no_plugin_of_pydantic_is_looked_for_by_a_command(project: Path) -> None:
    script = "import os; from toolgate.faces.cli.main import main; main(['approvals']); print(os.environ['PYDANTIC_DISABLE_PLUGINS'])"
    for given, told in (({}, "1"), ({"PYDANTIC_DISABLE_PLUGINS": "0"}, "0")):
        done = subprocess.run(
            [COMMAND[0], "-c", script], cwd=project, env=environment() | given, capture_output=True, text=True,
            timeout=60, check=True,
        )  # fmt: skip
        assert done.stdout.split()[-1] == told


def test_a_call_loads_its_own_family_of_tools_and_nothing_that_draws_a_question(project: Path) -> None:
    (project / "toolgate.yaml").write_text(
        "version: 1\ndefault_persona: r\npersonas: {r: {phase: observe}}\n"
    )
    imported(project, "trust", "--yes")
    imported(project, "call", "system.ping")  # the file has been read in full once
    loaded = imported(project, "call", "system.ping")
    assert loaded & (NEVER | HEAVY | DRAWS_A_QUESTION) == set()
    assert not loaded & (TOOLS - {"toolgate.app", "toolgate.facade"})


def test_a_write_loads_no_pydantic(project: Path) -> None:
    rules = "policy: {rules: [{name: w, persona: r, tools: [fs.write], decision: allow, reason: a test}]}"
    (project / "toolgate.yaml").write_text(
        f"version: 1\ndefault_persona: r\npersonas: {{r: {{phase: contribute}}}}\n{rules}\n"
    )
    imported(project, "trust", "--yes")
    for content in ("one", "two"):
        loaded = imported(project, "call", "fs.write", json.dumps({"path": "a.md", "content": content}))
    assert loaded & (NEVER | HEAVY | DRAWS_A_QUESTION) <= {"toolgate.kits.words"}
