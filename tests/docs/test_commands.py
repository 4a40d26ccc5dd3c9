"""Commands that the documents name exist, and those of the README run as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from faces.cli.driving import Terminal, finish, start
from toolgate.faces.cli.root import load, names

from .pages import PAGES, blocks, name_of, read

_NAMED = re.compile(r"(?:^\$ |`)toolgate ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", re.M)
_RUN = "import sys; from toolgate.faces.cli.main import main; sys.exit(main(sys.argv[1:]))"


def test_every_command_that_a_page_names_exists() -> None:
    for page in PAGES:
        for command, sub in _NAMED.findall(page.read_text("utf-8")):
            assert command in names(), f"{name_of(page)} names `toolgate {command}`"
            group = getattr(load(command), "commands", None)
            if group is not None and sub:
                assert sub in group, f"{name_of(page)} names `toolgate {command} {sub}`"


def test_the_commands_of_the_readme_run_in_order_in_an_empty_directory(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    environment = {**os.environ, "TOOLGATE_STATE_DIR": str(tmp_path / "state"), "NO_COLOR": "1"}
    source = str(Path(__file__).parents[2] / "src")
    environment["PYTHONPATH"] = source
    (console,) = blocks(read("README.md"), "console")
    commands = [line.removeprefix("$ ") for line in console.splitlines() if line.startswith("$ ")]
    assert len(commands) == 7
    assert any(" demo " in command for command in commands)
    for command in commands:
        program, *args = shlex.split(command, comments=True)
        assert program == "toolgate"
        done = subprocess.run(
            [sys.executable, "-c", _RUN, *args],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert (project / "toolgate.yaml").exists()


def test_the_first_task_of_the_readme_is_asked_about_done_and_taken_back(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    block = next(block for block in blocks(read("README.md"), "sh") if "toolgate undo" in block)
    write, undo, verify = (shlex.split(line, comments=True)[1:] for line in block.splitlines())
    assert finish(start("init", cwd=project)).code == 0
    for args, letter, there in ((write, "a", True), (undo, "y", False)):
        screen = Terminal(*args, cwd=project)
        try:
            screen.expect(" > " if letter == "a" else "[y/N]")
            screen.type(letter)
            assert screen.end()[0] == 0
        finally:
            screen.close()
        assert (project / "hello.md").exists() is there
    assert finish(start(*verify, cwd=project)).code == 0
