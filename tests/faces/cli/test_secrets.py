"""The vault from the command line: values come in unseen and never go out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .driving import Cli, Terminal
from .test_help import complete_bash

VALUE = 'sk-abc"d&e/f+% g12'


def test_a_secret_is_set_listed_tested_and_removed_and_never_shown(cli: Cli) -> None:
    said = []
    done = cli(
        "secrets",
        "set",
        "API_KEY",
        "--host",
        "api.example.com",
        "--host",
        "*.b.org",
        stdin=VALUE.encode() + b"\n",
    )
    assert done.code == 0, done.err
    assert "kept in an encrypted file" in done.out
    said.append(done)
    assert cli("secrets", "set", "API_KEY", "--reveal", "--json", stdin=VALUE.encode()).data == {
        "replaced": True, "name": "API_KEY", "hosts": [], "reveal": True, "kept_in": "file",
    }  # fmt: skip
    said.append(cli("secrets", "list"))
    assert "API_KEY" in said[-1].out
    assert cli("secrets", "list", "--json").data == [{"name": "API_KEY", "hosts": [], "reveal": True}]
    said.append(cli("secrets", "test", "API_KEY"))
    assert "can be read back" in said[-1].out
    assert "16 to 31 characters" in said[-1].out
    assert "ways to write it are masked" in said[-1].out
    said.append(cli("ledger", "tail", "--json"))
    assert [row["kind"] for row in said[-1].data] == ["vaulted", "vaulted"]
    assert cli("ledger", "verify").code == 0
    assert cli("secrets", "remove", "API_KEY").code == 0
    assert "there are no secrets" in cli("secrets", "list").out
    for one in said:
        assert VALUE not in one.out + one.err


def test_a_call_made_afterwards_does_not_repeat_it(cli: Cli) -> None:
    cli("secrets", "set", "API_KEY", stdin=b"some-value-1")
    assert (
        cli("call", "more.echo", '{"text": "it is some-value-1"}', "--json").data == "it is [secret:API_KEY]"
    )
    failed = cli("--debug", "call", "more.fail", '{"message": "some-value-1"}')
    assert "some-value-1" not in failed.out + failed.err
    assert "[secret:API_KEY]" in failed.err


@pytest.mark.parametrize(
    ("args", "stdin", "why"),
    [
        (("set", "api_key"), b"some-value-1", "not a secret's name"),
        (("set", "A"), b"short", "has 5 characters"),
        (("set", "A"), b"", "no value on stdin"),
        (("set", "A"), b"\xff" * 20, "not text"),
        (("set", "A"), b"x1" * 40_000, "the limit is"),
        (("set", "A", "--host", "http://a"), b"some-value-1", "is not a host"),
        (("remove", "A"), b"", "there is no secret A"),
        (("test", "A"), b"", "there is no secret A"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_fix(
    cli: Cli, args: tuple[str, ...], stdin: bytes, why: str
) -> None:
    done = cli("secrets", *args, stdin=stdin)
    assert done.code != 0
    assert why in done.err
    assert "fix: " in done.err


def test_a_value_on_the_command_line_is_not_taken(cli: Cli) -> None:
    done = cli("secrets", "set", "A", "some-value-1")
    assert done.code == 2
    assert "fix: " in done.err
    assert "some-value-1" not in done.out + done.err


def test_at_a_terminal_the_value_is_typed_unseen(terminal: Callable[..., Terminal], cli: Cli) -> None:
    typed = terminal("secrets", "set", "A")
    typed.expect("value of A (not shown): ")
    typed.type("typed-value-1")
    code, shown = typed.end()
    assert code == 0
    assert "is kept" in shown
    assert "typed-value-1" not in shown
    assert cli("call", "more.echo", '{"text": "typed-value-1"}', "--json").data == "[secret:A]"


def test_names_are_completed(cli: Cli, project: Path) -> None:
    for name in ("API_KEY", "API_TOKEN", "OTHER"):
        cli("secrets", "set", name, stdin=b"some-value-" + os.urandom(4).hex().encode())
    assert complete_bash("toolgate secrets test API", project) == ["API_KEY", "API_TOKEN"]


def test_an_untrusted_project_has_no_vault_and_no_programs(cli: Cli, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "toolgate.yaml").write_text("version: 1\n")
    done = cli("secrets", "list", "--root", str(other))
    assert done.code == 3
    assert "not trusted" in done.err
    missing = cli("call", "exec.python", '{"code": "1"}', "--root", str(other))
    assert "not trusted" in missing.err
    assert "toolgate trust" in missing.err
