"""One call through the gate: what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from pydantic import RootModel

from toolgate.core.tool import Tool, tool
from toolgate.kits.terminal import arguments

from .driving import COMMAND, Cli, environment, finish, heard, start

APPEND = ("call", "notes.append", '{"path": "hours.md", "text": "open"}')


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (("call", "system.ping"), 0, None),
        (("call", "more.fail", '{"message": "boom"}'), 1, "failed"),
        (("call", "notes.read", '{"path": "none.md"}'), 1, "not_found"),
        (("call", "more.lose", "--persona", "builder"), 1, "unknown_outcome"),
        (("call", "no.such"), 2, "unknown_tool"),
        (("call", "system.ping", '{"messag": 1}'), 2, "invalid_args"),
        (("call", "system.ping", "{"), 2, "invalid_args"),
        (("call", "system.ping", "[]"), 2, "invalid_args"),
        (("call", "system.ping", "@missing.json"), 2, "invalid_args"),
        (("call", "system.ping", "--arg", "message"), 2, "invalid_args"),
        (("call", "system.ping", "--persona", "a b"), 2, "invalid_args"),
        (("call", "system.ping", "--yes"), 2, "invalid_args"),
        (("call", "notes.append", '{"path": "a.md", "text": "x"}', "--persona", "reader"), 3, "not_allowed"),
        (("call", "notes.append", '{"path": "deploy/a", "text": "x"}'), 3, "not_allowed"),
        (("call", "notes.read", '{"path": ".env"}'), 3, "blocked_path"),
        (("call", "notes.read", '{"path": "../up"}'), 3, "outside_mount"),
        ((*APPEND, "--no-wait"), 3, "pending"),
    ],
)
def test_every_outcome_has_its_exit_code(
    cli: Cli, args: tuple[str, ...], code: int, error: str | None
) -> None:
    done = cli(*args, "--json")
    assert done.code == code
    assert set(done.json) == {"ok", "tool", "data", "error", "meta"}
    assert done.json["ok"] is (code == 0)
    assert (done.json["error"] or {}).get("code") == error
    assert "Traceback" not in done.err


def test_a_used_up_limit_is_refused_and_says_when_to_come_back(cli: Cli) -> None:
    assert cli("call", "system.ping", "--persona", "hasty").code == 0
    done = cli("call", "system.ping", "--persona", "hasty")
    assert done.code == 3
    assert done.err.startswith("error rate_limited: ")
    assert "fix: come back in" in done.err


def test_an_error_is_told_on_stderr_with_its_fix_and_stdout_stays_empty(cli: Cli) -> None:
    done = cli("call", "system.pign")
    assert done.out == ""
    problem, fix = done.err.splitlines()
    assert problem == "error unknown_tool: there is no tool 'system.pign'"
    assert fix.startswith("fix: did you mean system.ping")


def test_json_has_the_whole_result_and_nothing_else(cli: Cli) -> None:
    done = cli("call", "more.echo", '{"text": "a\\u202eb\\u001b[2J"}', "--json")
    assert done.json["data"] == "a\u202eb\u001b[2J"
    assert done.out.isascii()
    assert "\x1b" not in done.out
    assert set(done.json["meta"]) == {"call_id", "event_id", "duration_ms", "tokens", "cached", "truncated"}


def test_what_a_tool_says_cannot_move_the_cursor_or_reorder_the_line(cli: Cli) -> None:
    done = cli("call", "more.echo", '{"text": "[red]a\\u202eb\\u001b[2J"}')
    assert done.out == "[red]a⟨U+202E⟩b⟨U+001B⟩[2J\n"


def test_arguments_come_from_stdin_from_a_file_and_by_name(cli: Cli, project: Path) -> None:
    (project / "args.json").write_text('{"message": "from a file"}')
    assert (
        cli("call", "system.ping", "-", "--json", stdin=b'{"message": "from stdin"}').data["message"]
        == "from stdin"
    )
    assert cli("call", "system.ping", "@args.json", "--json").data["message"] == "from a file"
    assert cli("call", "system.ping", "--arg", "message=by name", "--json").data["message"] == "by name"
    assert cli("call", "system.logs", "--arg", "lines=1", "--json").json["ok"]


def test_one_argument_can_be_the_text_of_a_file(cli: Cli, project: Path) -> None:
    (project / "program.py").write_text("print('a=1')\n")
    given = cli("call", "more.echo", "--arg", "text=@program.py", "--json")
    assert given.data == "print('a=1')\n"
    assert cli("call", "more.echo", "--arg", "text=@@me", "--json").data == "@me"
    (project / "raw").write_bytes(b"\xff")
    for name, why in (("missing", "cannot be read"), ("raw", "is not UTF-8")):
        done = cli("call", "more.echo", "--arg", f"text=@{name}")
        assert (done.code, why in done.err, "fix: " in done.err) == (2, True, True)


@pytest.mark.parametrize("text", ["404", "true", "null", '"quoted"', "[1]", "9465349120", "1e5"])
def test_a_text_that_looks_like_json_stays_a_text_where_the_tool_takes_one(cli: Cli, text: str) -> None:
    assert cli("call", "more.echo", "-a", f"text={text}", "--json").data == text
    assert (
        cli("call", "code.search", "-a", f"pattern={text}", "-a", "context_lines=0", "-p", "reader").code == 0
    )
    written = cli(
        "call", "fs.write", "-a", "path=scratch:a", "-a", f"content={text}", "-a", "ifMatch=1", "--json"
    )
    assert written.json["error"]["code"] == "conflict"  # the spelling of the documents is understood too


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", "1"), ('["a"]', ["a"]), ("[a", "[a"), ("x", "x"), ('"x"', '"x"'), ("null", "null"), ('{"a": 1}', '{"a": 1}')],
)  # fmt: skip
def test_an_argument_that_takes_several_kinds_is_given_the_text_or_the_list(text: str, value: object) -> None:
    @tool("more.many", reads=["system"])
    async def many(one_of: str | list[str] | None = None, number: int = 0, kind: Literal["1"] = "1") -> str:
        """Takes several kinds."""
        return ""

    spelled = arguments.read("", [f"oneOf={text}", "number=1", "kind=1", "any=1"]).fit(many)
    assert spelled == {"oneOf": value, "number": 1, "kind": "1", "any": 1}


def test_a_schema_that_leads_in_circles_or_is_broken_is_no_obstacle() -> None:
    circle = {"anyOf": [{"$ref": "#/$defs/a"}] * 9, "type": None, "enum": 5}
    schema = {"properties": {"x": {"$ref": "#/$defs/a"}, "y": 3}, "$defs": {"a": circle}}
    odd = Tool(
        name="a.b",
        description="",
        run=print,
        model=lambda: RootModel[dict[str, object]],
        input_schema_override=schema,
    )
    assert arguments.read("", ["x=1", "y=2"]).fit(odd) == {"x": 1, "y": 2}


def test_an_argument_given_twice_is_an_error(cli: Cli) -> None:
    done = cli("call", "system.ping", '{"message": "a"}', "--arg", "message=b")
    assert (done.code, "given twice" in done.err) == (2, True)


def test_a_repeated_key_gives_the_stored_result(cli: Cli) -> None:
    first = cli("call", "more.echo", "--arg", "text=a", "--key", "k1", "--json").json
    second = cli("call", "more.echo", "--arg", "text=a", "--key", "k1", "--json").json
    assert (first["meta"]["cached"], second["meta"]["cached"]) == (False, True)
    assert second["meta"]["call_id"] == first["meta"]["call_id"]
    other = cli("call", "more.echo", "--arg", "text=b", "--key", "k1", "--json")
    assert (other.code, other.json["error"]["code"]) == (1, "conflict")


def test_a_waiting_call_is_answered_from_another_process(project: Path, cli: Cli) -> None:
    waiting = start(*APPEND, "--json", "--reason", "spring", cwd=project)
    try:
        first, second = heard(waiting), heard(waiting)
        assert first.startswith("waiting until ")
        assert " (at most " in first
        assert 'for approval of notes.append: it is reviewed; it would change "hours.md"' in first
        ident = second.split()[2]
        assert second.strip() == f"toolgate approvals {ident} approve   (or refuse)"
        answered = finish(start("approvals", ident, "approve", "--json", cwd=project))
        assert answered.data == {"id": ident, "outcome": "approved"}
    except BaseException:
        waiting.kill()
        raise
    done = finish(waiting)
    assert (done.code, done.json["ok"]) == (0, True)
    assert (project / "hours.md").read_text() == "9 to 17\nopen\n"


def test_a_refusal_from_another_process_reaches_the_caller_with_its_reason(project: Path, cli: Cli) -> None:
    ident = cli(*APPEND, "--no-wait", "--json").data["question"]
    waiting = start(*APPEND, "--json", cwd=project)
    try:
        assert ident in heard(waiting) + heard(waiting)  # the repeat joined the open question
        assert cli("approvals", ident, "deny", "--reason", "not in May").code == 0
    except BaseException:
        waiting.kill()
        raise
    done = finish(waiting)
    assert done.code == 3
    assert done.json["error"]["code"] == "denied"
    assert done.json["error"]["message"].startswith("Access denied by creator.")
    assert "not in May" in done.json["error"]["message"]
    assert (project / "hours.md").read_text() == "9 to 17\n"


def test_a_question_that_must_be_answered_elsewhere_says_so(project: Path, cli: Cli) -> None:
    waiting = start("call", "more.post", "--arg", "text=x", cwd=project)
    try:
        assert "(must be answered in: console)" in heard(waiting)
        ident = heard(waiting).split()[2]
        wrong = cli("approvals", ident, "approve")
        assert (wrong.code, "wants this approved by console" in wrong.err) == (3, True)
        assert cli("approvals", ident, "deny").code == 0
    finally:
        done = finish(waiting)
    assert done.code == 3


def test_ctrl_c_ends_a_waiting_call_quietly_and_leaves_the_question_open(project: Path, cli: Cli) -> None:
    waiting = start(*APPEND, cwd=project)
    heard(waiting)
    waiting.send_signal(2)
    done = finish(waiting)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert len(cli("approvals", "--json").data) == 1


def test_a_reader_that_goes_away_ends_it_quietly(project: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*COMMAND, "schema"], cwd=project, env=environment(),
        stdout=write, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(write)
    _, err = process.communicate(timeout=30)
    assert err == ""
    assert process.returncode == 1


def test_the_nearest_project_upwards_is_found(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    done = finish(start("call", "notes.read", "--arg", "path=hours.md", "--json", cwd=below))
    assert json.loads(done.out)["data"] == "9 to 17\n"


def test_a_root_that_is_not_there_is_a_setup_error(cli: Cli) -> None:
    done = cli("call", "system.ping", "--root", "nowhere")
    assert (done.code, done.err.splitlines()[0]) == (2, "error setup: there is no directory 'nowhere'")


def test_a_question_nobody_answers_expires_and_the_call_is_refused(cli: Cli, project: Path) -> None:
    (project / "toolgate.yaml").write_text(
        (project / "toolgate.yaml").read_text() + "consent: {expires_s: 0.5}\n"
    )
    done = cli(*APPEND, "--json")
    assert (done.code, done.json["error"]["code"]) == (3, "expired")
    assert cli("ledger", "tail", "--kind", "expired", "--json").data[0]["body"]["what"] == "question"


@pytest.mark.parametrize("command", ["call system.ping", "tools", "approvals", "ledger verify", "stats"])
def test_a_directory_without_a_project_says_how_to_begin(cli: Cli, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    done = cli(*command.split(), "--root", str(tmp_path / "empty"))
    assert (done.code, "there is no toolgate.yaml in" in done.err, "`toolgate init`" in done.err) == (
        2,
        True,
        True,
    )
    assert list((tmp_path / "empty").iterdir()) == []
