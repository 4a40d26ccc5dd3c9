"""Whatever is wrong, the answer is a code, a message and a fix; nothing runs, nothing is lost, no traceback."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from .driving import COMMAND, Cli, Done, environment

DEEP = '{"text": ' + "[" * 100 + "]" * 100 + "}"
ABYSS = '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}"


def clear(done: Done, code: int, *parts: str) -> None:
    """It ended with this code, says these things and how to go on."""
    assert done.code == code, done
    told = [line for line in done.err.splitlines() if not line.startswith("{")]  # beside the log
    assert told[0].startswith("error "), done.err
    assert "\nfix: " in done.err
    assert "Traceback" not in done.err
    for part in parts:
        assert part in done.err, done.err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ('{"text": "a", "text": "b"}', "appears twice"),
        ('{"text": NaN}', "NaN is not JSON"),
        ('{"text": Infinity}', "Infinity is not JSON"),
        ('{"text": 1e999}', "error invalid_args"),
        ('{"text": "\\ud800"}', "surrogate"),
        ('{"text": 1}{"text": 2}', "this is not JSON"),
        ('{"text": 123456789012345678901234567890}', "error invalid_args"),
        (DEEP, "error invalid_args"),
        (ABYSS, "nested too deeply"),
        ('{"text": "a"', "this is not JSON"),
        ("text", "this is not JSON"),
        ("'", "this is not JSON"),
    ],
)  # fmt: skip
def test_arguments_without_one_meaning_are_refused(cli: Cli, args: str, says: str) -> None:
    clear(cli("call", "more.echo", "-", stdin=args.encode()), 2, says)


def test_a_single_argument_in_the_place_of_json_is_told_its_option(cli: Cli) -> None:
    clear(cli("call", "more.echo", "text=hello"), 2, "this is not JSON", "`--arg text=…`")
    clear(cli("call", "more.echo", "hello"), 2, "this is not JSON", "send one JSON object")


def test_a_persona_that_is_not_there_is_told_which_are(cli: Cli) -> None:
    clear(cli("call", "system.ping", "-p", "readr"), 3, "the personas are: ", "fix: call as one of them")


def test_bytes_that_are_no_text_are_refused(cli: Cli, project: Path) -> None:
    clear(cli("call", "more.echo", "-", stdin=b'{"text": "\xff\xfe"}'), 2, "this is not JSON")
    raw = subprocess.run(
        [*COMMAND, "call", "more.echo", b'{"text": "\xff"}'], cwd=project, env=environment(),
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    clear(Done(raw.returncode, raw.stdout, raw.stderr), 2, "surrogate")


def test_too_much_at_once_is_refused_before_it_is_read(cli: Cli) -> None:
    huge = b'{"text": "' + b"x" * (9 * 1024 * 1024) + b'"}'
    clear(cli("call", "more.echo", "-", stdin=huge), 2, "error too_large")


def test_a_nul_is_refused_in_a_path_and_in_a_text(cli: Cli) -> None:
    assert cli("call", "notes.read", '{"path": "a\\u0000b"}').code in (2, 3)
    clear(cli("call", "more.echo", '{"text": "a\\u0000b"}'), 2, "NUL")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("version: 1\npersonas:\n  - [\n", 4, "broken YAML"),
        ("version: 1\nversion: 1\n", 2, "is there twice"),
        ("version: 1\npersona: {}\n", 2, "unknown key `persona`"),
        ("version: 1\na: &x 1\n", 2, "anchors"),
        ("version: 1\nb: \x07\n", 2, "control character"),
        ("version: 99\n", 1, "version"),
        ("", 1, "mapping"),
        ("[]", 1, "mapping"),
    ],
)
def test_a_broken_configuration_names_its_line(
    cli: Cli, project: Path, text: str, line: int, says: str
) -> None:
    (project / "toolgate.yaml").write_text(text)
    clear(cli("call", "system.ping"), 2, f"toolgate.yaml:{line}:", says)
    told = cli("call", "system.ping", "--json")
    assert (told.code, told.json["ok"], set(told.json)) == (2, False, {"ok", "tool", "data", "error", "meta"})


def test_a_configuration_that_is_not_utf8_is_refused(cli: Cli, project: Path) -> None:
    (project / "toolgate.yaml").write_bytes(b"version: 1\n# \xff\n")
    clear(cli("call", "system.ping"), 2, "toolgate.yaml:2:", "not UTF-8")


def test_a_plugin_that_does_not_load_is_named(cli: Cli, project: Path) -> None:
    (project / "more.py").write_text("import nothing_of_that_name\n")
    clear(cli("call", "system.ping"), 2, "./more.py", "nothing_of_that_name")


@pytest.fixture
def database(cli: Cli, project: Path) -> Path:
    assert cli("call", "system.ping").code == 0
    return project / ".toolgate" / "ledger.db"


def test_a_corrupt_database_stops_everything_and_says_so(cli: Cli, database: Path) -> None:
    database.write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    clear(cli("call", "system.ping"), 1, "error unavailable")
    clear(cli("ledger", "verify"), 1, "error unavailable")


def test_a_file_that_is_no_database_is_called_that(cli: Cli, database: Path) -> None:
    database.write_bytes(b"hello" * 1000)
    clear(cli("call", "system.ping"), 1, "is not a database")
    assert database.read_bytes() == b"hello" * 1000


def test_a_database_of_a_newer_version_is_left_alone(cli: Cli, database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = database.read_bytes()
    clear(cli("call", "system.ping"), 1, "schema 99", "upgrade toolgate")
    clear(cli("ledger", "tail"), 1, "schema 99")
    assert database.read_bytes() == before


def test_a_missing_key_stops_the_gate_and_leaves_the_plain_chain_to_check(
    cli: Cli, database: Path, own_state_dir: Path
) -> None:
    (key,) = (own_state_dir / "keys").glob("*.json")
    key.unlink()
    clear(cli("call", "system.ping"), 1, "the key of this ledger is missing")
    for command in (("init",), ("trust", "--yes")):
        assert "the key of this ledger is missing" in cli(*command).err
    assert not key.exists()
    checked = cli("ledger", "verify")
    assert (checked.code, "the chain is whole, but its seals cannot be checked" in checked.err) == (1, True)
    assert cli("ledger", "export").code == 0


def test_a_wrong_key_is_found_at_once(cli: Cli, database: Path, own_state_dir: Path) -> None:
    (key,) = (own_state_dir / "keys").glob("*.json")
    data = json.loads(key.read_text())
    key.write_text(json.dumps(data | {"hmac": {"1": "ab" * 32}}))
    clear(cli("call", "system.ping"), 1, "is not sealed with the key")
    assert cli("ledger", "verify", "--json").data["bad_event"] == 1
    key.write_text("{}")
    clear(cli("call", "system.ping"), 1, "cannot be used")


def test_a_locked_database_is_waited_for_and_then_said(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.storage.sqlite.SqliteBackend.__init__.__defaults__", (50,))
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        clear(cli("call", "system.ping"), 1, "error unavailable", "locked")
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert cli("call", "system.ping").code == 0


POWERLESS = """
import ctypes, sys
from toolgate.faces.cli.main import main
none = (ctypes.c_uint32 * 6)()
if ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), none):
    sys.exit("the capabilities could not be dropped")
sys.exit(main(sys.argv[1:]))
"""
"""The command without capabilities, so that file permissions bind root as they bind everybody."""


def test_a_read_only_database_is_said_and_nothing_runs(cli: Cli, database: Path) -> None:
    events = cli("ledger", "verify", "--json").data["events"]
    root = database.parents[1]
    paths = [root, *root.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        process = subprocess.run(
            [sys.executable, "-c", POWERLESS, "call", "more.echo", "--arg", "text=x"], cwd=root, env=environment(),
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    finally:
        for path in paths:
            path.chmod(modes[path])
    clear(Done(process.returncode, process.stdout, process.stderr), 1)
    assert process.stdout == ""
    assert cli("ledger", "verify", "--json").data["events"] == events


def test_a_database_whose_file_alone_is_read_only_is_called_that(cli: Cli, database: Path) -> None:
    database.chmod(0o400)
    process = subprocess.run(
        [sys.executable, "-c", POWERLESS, "call", "more.echo", "--arg", "text=x"], cwd=database.parents[1],
        env=environment(), capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    clear(Done(process.returncode, process.stdout, process.stderr), 1, "error unavailable", "read-only")


def test_a_clock_that_jumps_back_stops_the_gate(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolgate.core.clock import SystemClock

    monkeypatch.setattr(SystemClock, "now", lambda self: 1_000_000)
    clear(cli("call", "system.ping"), 1, "behind the last recorded event", "set the clock right")


def test_a_bug_of_ours_is_no_traceback_either(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("toolgate.project.opening.prepare_ledger", broken)
    clear(cli("stats"), 1, "toolgate itself failed: RuntimeError: unforeseen", "--debug")
    assert "Traceback" in cli("--debug", "stats").err
