"""`toolgate import`, `toolgate servers` and what `toolgate doctor` says of servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faces.cli.driving import Cli, Terminal
from toolgate.project import config

from .conftest import YAML
from .world import HERE, a_tool, alive, define


def test_import_leaves_toolgate_itself_out(cli: Cli, project: Path) -> None:
    servers = json.loads((project / ".mcp.json").read_text())["mcpServers"]
    servers["toolgate"] = {"command": "toolgate", "args": ["mcp", "--persona", "builder"]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    tried = cli("import", ".mcp.json", "--dry-run", "--json").data
    assert (list(tried["added"]), tried["left_out"]) == (["up"], ["toolgate"])
    assert "left out: toolgate, which is toolgate itself" in cli("import", ".mcp.json").out
    assert list(config.load(project).servers) == ["up"]


def test_import_shows_and_adds_without_secrets_and_starts_nothing(cli: Cli, project: Path) -> None:
    tried = cli("import", ".mcp.json", "--dry-run", "--json")
    assert tried.data["written"] is False
    assert (project / "toolgate.yaml").read_text() == YAML
    done = cli("import", ".mcp.json")
    assert done.code == 0, done.err
    assert "'Up' is called `up` here" in done.out
    assert "API_KEY looks like a secret" in done.out
    text = (project / "toolgate.yaml").read_text()
    assert text.startswith(YAML)
    assert "very-secret-value" not in text
    assert '"API_KEY": "${env:API_KEY}"' in text
    again = cli("import", ".mcp.json")
    assert "already there: Up" in again.out
    assert (project / "toolgate.yaml").read_text() == text
    assert cli("servers", "--json").data[0]["state"] == "unseen"
    assert alive(str(project.parent)) == []


def test_trusting_a_project_shows_what_its_servers_start_and_are_given(cli: Cli) -> None:
    cli("import", ".mcp.json")
    (server,) = cli("trust", "--json", "--yes").data["powers"]["servers"]
    assert "raw_server.py" in server
    assert server.endswith("(given API_KEY)")


def test_the_doctor_does_not_start_what_was_approved_as_something_else(cli: Cli, project: Path) -> None:
    cli("import", ".mcp.json")
    assert cli("servers", "approve", "up", "--yes").code == 0
    file = project / "toolgate.yaml"
    file.write_text(file.read_text() + '    cwd: ".."\n')
    found = [finding for finding in cli("doctor", "--json").data if finding["what"] == "server up"]
    assert [finding["state"] for finding in found] == ["warn", "warn"]
    assert "not started" in found[0]["found"]


def test_a_file_that_is_not_there_or_names_no_servers_is_said(cli: Cli, project: Path) -> None:
    assert cli("import", "nothing.json").code == 1
    (project / "empty.json").write_text("{}")
    assert cli("import", "empty.json").code == 2
    assert (project / "toolgate.yaml").read_text() == YAML


def test_a_human_at_a_terminal_sees_the_definitions_and_approves_them(
    cli: Cli, terminal: Callable[..., Terminal]
) -> None:
    cli("import", ".mcp.json")
    yes = terminal("servers", "approve", "up")
    shown = yes.expect("approve these 1 tools of up? [y/N] > ")
    assert "Give the ⟨U+001B⟩[31mnumber." in shown
    assert cli("call", "up.pid", "--json").json["error"]["code"] == "not_allowed"
    yes.type("y")
    assert yes.end()[0] == 0
    assert cli("call", "up.pid", "--json").code == 0
    assert "servers.approve" in cli("ledger", "tail").out


def test_what_is_held_is_listed_shown_and_found_by_the_doctor(cli: Cli, project: Path) -> None:
    cli("import", ".mcp.json")
    unseen = [finding for finding in cli("doctor", "--json").data if finding["what"] == "server up"]
    assert unseen[0]["state"] == "warn"
    program = cli("servers", "approve", "up")  # not a terminal: a program must say that it means it
    assert program.code == 3
    assert "--yes" in program.err
    assert cli("servers", "approve", "up", "--yes").code == 0
    define(project.parent, a_tool("pid", "Give all the numbers."), a_tool("more"))
    diff = cli("servers", "diff", "up")
    assert diff.code == 1
    assert "+  | Give all the numbers." in diff.out
    assert "more: nobody has approved this tool yet" in diff.out
    found = [finding for finding in cli("doctor", "--json").data if finding["what"] == "server up"]
    assert [finding["state"] for finding in found] == ["ok", "warn"]
    assert "up.more, up.pid" in found[1]["found"]
    assert "held" in cli("servers", "up").out
    only = cli("servers", "approve", "up", "--tool", "pid", "--yes")
    assert only.code == 0, only.err
    assert cli("servers", "--json").data[0]["tools"] == ["up.pid"]
    assert "answers in" in cli("servers", "restart", "up").out
    assert cli("servers", "nothing").code == 1


@pytest.mark.parametrize(
    ("entry", "message", "fix"),
    [
        ("{}", "names neither `command` and `url`", "one of the two"),
        ("{command: a, url: 'http://h'}", "names both", "one of the two"),
        ("{comand: a}", "unknown key `comand`", "did you mean `command`?"),
        ("{url: 'ftp://h'}", "is not an address", "https://"),
        ("{command: a, transport: sse}", "does not fit", "remove it"),
        ("{url: 'http://h', env: {A: b}}", "`env` has no meaning beside `url`", "remove it"),
        ("{command: a, args: ['${secret:KEY}']}", "could be seen by others", "variable of `env`"),
        ("{command: a, args: ['${HOME}']}", "refers to nothing", "${env:NAME}"),
        ("{command: a, env: {A: 1}}", "valid string", "quote it"),
        ("{command: a, timeout_s: -1}", "greater than 0", "correct"),
        ("{command: a, pin: never}", "'ask' or 'first'", "words listed"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_said_with_line_and_fix(entry: str, message: str, fix: str) -> None:
    with pytest.raises(config.ConfigError) as refused:
        config.loads(f"version: 1\nservers:\n  good: {{command: b}}\n  bad: {entry}\n", "toolgate.yaml")
    assert "toolgate.yaml:4:" in str(refused.value)
    assert message in str(refused.value)
    assert fix in refused.value.fix


@pytest.mark.parametrize("name", ["git", "Up", "a_b", "a.b", "-x"])
def test_a_server_cannot_have_the_name_of_a_family_or_one_that_could_be_two(name: str) -> None:
    with pytest.raises(config.ConfigError):
        config.loads(f"version: 1\nservers:\n  '{name}': {{command: b}}\n")


def test_a_changed_program_is_shown_and_approved_before_it_is_started(cli: Cli, project: Path) -> None:
    (project / "own").mkdir()
    program = project / "own" / "server.py"
    program.write_text((HERE / "raw_server.py").read_text())
    entry = f"servers:\n  up: {{command: {sys.executable}, args: [-S, own/server.py]}}\n"
    (project / "toolgate.yaml").write_text(YAML + entry)
    first = cli("servers", "approve", "up", "--yes")
    assert first.code == 0, first.err
    assert "from these files, which are approved as they are now: own/server.py" in first.out
    program.write_text(program.read_text() + "# another\n")
    held = cli("call", "up.pid", "{}")
    assert "own/server.py has changed since it was approved" in held.err + held.out
    assert cli("servers", "diff", "up").code == 1
    again = cli("servers", "approve", "up", "--yes")
    assert "own/server.py has changed" in again.out
    assert cli("call", "up.pid", "{}").code == 0
