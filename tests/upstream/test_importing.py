"""From the files of MCP clients to toolgate.yaml: everything in it, no secret in it, not a byte of the rest changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgate.core.errors import CallError, SetupError
from toolgate.features.servers.importing import converted, is_toolgate, servers_in, with_servers
from toolgate.project import config

BASE = "version: 1  # ours\n\npersonas:\n  # who\n  ada: {phase: observe}\n"
STDIO = {"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}}
ENTRY = {"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps({"mcpServers": {"x": STDIO}}), {"x": ENTRY}),
        (json.dumps({"mcpServers": {"x": {"type": "http", "url": "https://h/mcp"}}}), {"x": {"url": "https://h/mcp"}}),
        (json.dumps({"mcpServers": {"x": {"serverUrl": "https://h/sse"}}}),
         {"x": {"url": "https://h/sse", "transport": "sse"}}),
        ('{// mine\n"servers": {"x": {"type": "sse", "url": "https://h//e", /* c */ "headers": {"A": "b"},},},}',
         {"x": {"url": "https://h//e", "transport": "sse", "headers": {"A": "b"}}}),
        (json.dumps({"mcp": {"servers": {"x": STDIO}}, "editor.fontSize": 12}), {"x": ENTRY}),
        (json.dumps({"context_servers": {"x": {"source": "custom", "command": {"path": "npx", "args": ["-y", "x"]}}}}),
         {"x": {"command": "npx", "args": ["-y", "x"]}}),
        (json.dumps({"mcp": {"x": {"type": "local", "command": ["npx", "-y"], "environment": {"A": "1"}}}}),
         {"x": {"command": "npx", "args": ["-y"], "env": {"A": "1"}}}),
        (json.dumps({"mcpServers": {"x": STDIO | {"disabled": True}}}), {"x": {"enabled": False} | ENTRY}),
    ],
    ids=["claude", "http", "windsurf", "vscode", "settings", "zed", "opencode", "disabled"],
)  # fmt: skip
def test_the_files_of_common_clients_are_read(tmp_path: Path, text: str, found: dict[str, Any]) -> None:
    file = tmp_path / "client.json"
    file.write_text(text)
    assert servers_in(file) == found


def test_the_toml_of_codex_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[mcp_servers.x]\ncommand = "npx"\nargs = ["-y", "x"]\n[mcp_servers.x.env]\nA = "1"\n')
    assert servers_in(file) == {"x": ENTRY}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"mcpServers": {}}', '{"mcpServers": {"x": {}}}', '{"mcpServers": {"x": {"command": 5}}}',
     '{"mcpServers": {"x": {"command": "a", "args": "b"}}}', '{"mcpServers": {"x": {"command": "a", "env": {"A": []}}}}',
     "[" * 5000],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    file = tmp_path / "client.json"
    file.write_text(text)
    with pytest.raises(CallError) as refused:
        servers_in(file)
    assert refused.value.fix


def test_secrets_are_left_behind_wherever_they_stand() -> None:
    secret = "abcd1234" * 5
    found = {
        "one": {
            "command": "npx",
            "args": ["--api-key", secret, f"--token={secret}", "sk-proj-12345", "--port", "80", "./a/b"],
            "env": {"GITHUB_TOKEN": "x", "MODE": "fast", "DB": f"postgres://u:{secret}@h/d", "N": secret},
        },
        "two": {
            "url": f"https://h/mcp?apikey={secret}&x=1",
            "headers": {"Authorization": f"Bearer {secret}"},
        },
    }
    one, two = converted(found, frozenset())
    written = json.dumps([one.entry, two.entry])
    assert secret not in written
    assert "sk-proj" not in written
    assert one.entry["env"] == {
        "GITHUB_TOKEN": "${env:GITHUB_TOKEN}", "MODE": "fast", "DB": "${env:DB}", "N": "${env:N}",
    }  # fmt: skip
    assert one.entry["args"] == [
        "--api-key", "${env:ONE_API_KEY}", "--token=${env:ONE_TOKEN}", "${env:ONE_KEY}", "--port", "80", "./a/b",
    ]  # fmt: skip
    assert two.entry["headers"] == {"Authorization": "Bearer ${env:TWO_AUTHORIZATION}"}
    assert two.entry["url"] == "https://h/mcp?apikey=${env:TWO_APIKEY}&x=1"
    assert len(one.notices) == 6


def test_references_of_the_clients_become_ours() -> None:
    found = {
        "x": {
            "command": "${HOME}/bin/x",
            "args": ["${env:A}", "${input:key}", "${workspaceFolder}/d", "${a b}"],
        }
    }
    (one,) = converted(found, frozenset())
    assert one.entry["command"] == "${env:HOME}/bin/x"
    assert one.entry["args"] == ["${env:A}", "${env:X_KEY}", "./d", "$${a b}"]


@pytest.mark.parametrize(
    ("words", "itself"),
    [
        (["toolgate", "mcp"], True),
        (["/opt/venv/bin/toolgate", "mcp", "--persona", "builder"], True),
        (["uvx", "toolgate", "mcp"], True),
        (["python", "-m", "toolgate", "mcp"], True),
        (["python", "-P", "-m", "toolgate", "mcp"], True),
        (["mcp-server-git", "--repository", "toolgate"], False),
        (["node", "toolgate/mcp.js"], False),
    ],
)
def test_toolgate_knows_itself_by_whatever_starts_it(words: list[str], itself: bool) -> None:
    assert is_toolgate({"command": words[0], "args": words[1:]}) is itself


def test_names_are_made_safe_and_never_those_of_toolgates_own_families() -> None:
    found: dict[str, Any] = {
        name: {"command": "x"} for name in ("Git Hub!", "memory", "GIT", "git-hub", "日本", "a__b")
    }
    names = [one.name for one in converted(found, frozenset({"a-b"}))]
    assert names == ["git-hub", "memory-server", "git-server", "git-hub-2", "s", "a-b-2"]
    text = with_servers(BASE, {name: {"command": "x"} for name in names}, "f")
    assert list(config.loads(text).servers) == names


@pytest.mark.parametrize(
    ("original", "notice"),
    [
        ("fine", ""),
        (
            "Git Hub",
            "'Git Hub' is called `git-hub` here, because names have only lower-case letters, digits and -",
        ),
        (
            "1st",
            "'1st' is called `s-1st` here, because names begin with a letter and have at most 40 characters",
        ),
        ("fs", "'fs' is called `fs-server` here, because `fs` is a family of toolgate's own tools"),
        ("known", "'known' is called `known-2` here, because there is a `known` already"),
    ],
)
def test_a_changed_name_says_why(original: str, notice: str) -> None:
    (one,) = converted({original: {"command": "x"}}, frozenset({"known"}))
    assert one.notices == ([notice] if notice else [])


BEFORE = [
    BASE,
    BASE.rstrip("\n"),
    BASE.replace("\n", "\r\n"),
    BASE + "servers:\n  old:\n    command: a  # why\n    args:\n      - b\n\n# the end\n",
    BASE + "servers:\n    old: {command: a}\nconsent:\n  expires_s: 60\n",
    BASE + "servers: {}   # none yet\nconsent: {expires_s: 60}\n",
    BASE + "servers:\nconsent: {expires_s: 60}\n",
    "servers:\n  old:\n    command: a\n    args:\n      - |\n        b\n        c\n\n" + BASE,
]


@pytest.mark.parametrize("before", BEFORE)
def test_the_rest_of_the_file_stays_as_it_was_byte_for_byte(before: str) -> None:
    after = with_servers(before, {"new": ENTRY}, "toolgate.yaml")
    lines = before.replace("servers: {}   # none yet", "servers:   # none yet").splitlines()
    rest = iter(after.splitlines())
    assert all(line in rest for line in lines), after
    loaded = config.loads(after)
    assert loaded.servers["new"].args == ("-y", "x")
    assert ("\r\n" in after) == ("\r\n" in before)
    assert not ("\r\n" in before and "\n" in after.replace("\r\n", ""))


def test_a_section_that_cannot_be_added_to_is_left_alone_and_the_lines_are_given() -> None:
    with pytest.raises(SetupError) as refused:
        with_servers(BASE + "servers: {old: {command: a}}\n", {"new": ENTRY}, "toolgate.yaml")
    assert 'command: "npx"' in refused.value.fix


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20), max_size=4),
    st.sampled_from(BEFORE),
)
def test_whatever_the_arguments_are_they_are_read_back_as_they_were(args: list[str], before: str) -> None:
    plain = [arg.replace("${", "") for arg in args]
    after = with_servers(before, {"new": {"command": "x", "args": plain}}, "toolgate.yaml")
    assert list(config.loads(after).servers["new"].args) == plain
