"""Every command explains itself with an example; what is not needed is not loaded; TAB runs nothing."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from toolgate.faces.cli import root
from toolgate.kits.terminal import complete
from toolgate.version import VERSION

from .driving import COMMAND, Cli, environment

FAMILIES = {
    "ledger": ("tail", "show", "verify", "export", "archive", "checkpoint", "resolve", "rotate-key"),
    "secrets": ("set", "list", "remove", "test"),
    "policy": ("check", "test", "explain", "replay"),
}
COMMANDS = [(name,) for name in root.names() if name not in FAMILIES] + [
    (family, name) for family, names in FAMILIES.items() for name in names
]
HEAVY = ("pydantic", "asyncpg", "cryptography", "psutil", "toolgate.app")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli(*command, "--help")
    assert done.code == 0
    assert f"Example: toolgate {' '.join(command)}" in " ".join(done.out.split())


@pytest.mark.parametrize("command", [(), ("ledger",), *COMMANDS], ids=" ".join)
def test_help_asks_for_no_value_of_a_flag_and_brackets_an_argument_once(
    cli: Cli, command: tuple[str, ...]
) -> None:
    text = cli(*command, "--help").out
    assert "<bool>" not in text
    assert "[[" not in text
    assert "...]" not in text.replace("[ARGS]...", "")


@pytest.mark.parametrize("command", [("call",), ("policy", "explain")], ids=" ".join)
def test_the_example_of_a_call_names_a_tool_and_arguments_that_are_there(
    cli: Cli, command: tuple[str, ...]
) -> None:
    text = " ".join(cli(*command, "--help").out.split())
    words = shlex.split(text.partition("Example: toolgate ")[2])
    explained = cli("policy", "explain", *words[len(command) :])
    assert explained.code == 0, explained.err


def test_the_families_are_complete(cli: Cli) -> None:
    for family, names in FAMILIES.items():
        assert set(root.load(family).commands) == set(names)


def test_the_overview_lists_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert all(f" {name} " in done.out for name in root.names())
    assert cli("frobnicate").code == 2
    assert cli("call").code == 2


def imported(*args: str, **environ: str) -> set[str]:
    process = subprocess.run(
        [COMMAND[0], "-X", "importtime", *COMMAND[1:], *args], env=environment(**environ),
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def test_the_version_loads_next_to_nothing() -> None:
    loaded = imported("--version")
    assert not loaded & {*HEAVY, "typer", "rich", "asyncio"}


def test_help_and_completion_load_no_engine() -> None:
    assert not imported("--help") & set(HEAVY)
    completing = imported(_TOOLGATE_COMPLETE="complete_bash", COMP_WORDS="toolgate ", COMP_CWORD="1")
    assert "toolgate.faces.cli.completion" in completing
    assert not completing & set(HEAVY)


def test_the_version_is_said_in_both_spellings(cli: Cli) -> None:
    assert cli("--version").out == f"toolgate {VERSION}\n"
    assert cli("-v", "--version").out == f"toolgate {VERSION}\n"


def complete_bash(words: str, project: Path) -> list[str]:
    shell = environment(
        _TOOLGATE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1)
    )
    done = subprocess.run(
        COMMAND, cwd=project, env=shell, capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout.split()


def test_tab_offers_commands_tools_personas_and_open_questions(project: Path, cli: Cli) -> None:
    ident = cli("call", "notes.append", "--arg", "path=a.md", "--arg", "text=x", "--no-wait", "--json").data[
        "question"
    ]
    assert complete_bash("toolgate pol", project) == ["policy"]
    assert complete_bash("toolgate call notes.", project) == ["notes.append", "notes.read"]
    assert complete_bash("toolgate call system.ping --persona r", project) == ["reader"]
    assert complete_bash("toolgate approvals q_", project) == [ident]


def test_tab_in_a_broken_project_offers_nothing_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toolgate.yaml").write_text("personas: [")
    (tmp_path / ".toolgate").mkdir()
    (tmp_path / ".toolgate" / "ledger.db").write_text("no database")
    monkeypatch.chdir(tmp_path)
    assert (complete.tools(""), complete.personas(""), complete.questions("")) == ([], [], [])
    assert sorted(os.listdir(tmp_path / ".toolgate")) == ["ledger.db"]


def test_logs_are_json_lines_where_no_human_looks(cli: Cli) -> None:
    done = cli("call", "more.fail", "--arg", "message=boom")
    logged = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    assert [(entry["level"], entry["message"]) for entry in logged] == [("error", "more.fail raised")]
    assert "Traceback" not in done.err
    traced = cli("--debug", "call", "more.fail", "--arg", "message=boom")
    assert "Traceback" in traced.err
