"""A broken toolgate.yaml stops every call, and takes away neither the brakes nor the record."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from toolgate.project import config, trust, yamlfile

from .driving import Cli, Done

BROKEN = {
    "no YAML": ("policy: [\n", "broken YAML"),
    "an unknown key": ("polizy: {}\n", "unknown key `polizy`"),
    "a rule that is none": ("limits: {per_minute: soon}\n", "limits.per_minute"),
}
ELSEWHERE = "postgresql://nobody@127.0.0.1:1/elsewhere"


def broken(project: Path, more: str) -> str:
    """Break the file at its end; what the warning must begin with comes back."""
    file = project / "toolgate.yaml"
    text = file.read_text()
    file.write_text(text + more)
    return f"warning: the policy is broken, and every call is refused: {file}:"


def asked(cli: Cli) -> str:
    cli("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=open", "--no-wait")
    (question,) = cli("approvals", "--json").data
    return str(question["id"])


def kinds(cli: Cli) -> list[str]:
    return [row["kind"] for row in cli("ledger", "tail", "--json").data]


@pytest.mark.parametrize("how", BROKEN)
def test_everything_can_be_paused_and_resumed_while_calls_are_refused(
    cli: Cli, project: Path, how: str
) -> None:
    assert cli("call", "system.ping").code == 0
    more, problem = BROKEN[how]
    warning = broken(project, more)
    refused = cli("call", "system.ping")
    assert (refused.code, problem in refused.err) == (2, True), refused
    paused = cli("pause", "--reason", "it runs wild")
    assert (paused.code, paused.out.startswith("everybody is paused")) == (0, True), paused
    assert warning in paused.err
    assert problem in paused.err
    assert str(project / ".toolgate" / "ledger.db") in paused.err
    assert cli("resume").code == 0
    assert kinds(cli)[-2:] == ["paused", "resumed"]


def test_the_pause_is_in_force_when_the_file_is_whole_again(cli: Cli, project: Path) -> None:
    whole = (project / "toolgate.yaml").read_text()
    cli("call", "system.ping")
    broken(project, "policy: [\n")
    done = cli("pause", "builder")
    assert (done.code, "whether there is a persona builder cannot be checked" in done.err) == (0, True), done
    assert cli("pause", "no name").code == 2
    (project / "toolgate.yaml").write_text(whole)
    stopped = cli("call", "system.ping", "--json")
    assert (stopped.code, stopped.json["error"]["code"]) == (3, "not_allowed")
    assert cli("pause", "nobody-there").code == 3, "a whole file says who there is"


@pytest.mark.parametrize("how", BROKEN)
def test_the_record_can_be_read_and_proven(cli: Cli, project: Path, tmp_path: Path, how: str) -> None:
    assert cli("call", "system.ping").code == 0
    warning = broken(project, BROKEN[how][0])
    before = (project / ".toolgate" / "ledger.db").read_bytes()
    for command in (
        ("ledger", "verify"), ("ledger", "export"), ("ledger", "show", "1"), ("ledger", "tail"), ("stats",),
        ("ledger", "checkpoint", "--out", str(tmp_path / "kept.json")), ("failures",), ("grants",), ("approvals",),
    ):  # fmt: skip
        done = cli(*command)
        assert (done.code, warning in done.err) == (0, True), (command, done)
        assert warning not in done.out
    assert cli("ledger", "verify", "--json").data["checkpoints"] == 1
    assert (project / ".toolgate" / "ledger.db").read_bytes() == before


def test_an_open_question_is_refused_and_not_approved(cli: Cli, project: Path) -> None:
    ident = asked(cli)
    whole = (project / "toolgate.yaml").read_text()
    broken(project, "policy: [\n")
    assert ident in cli("approvals", ident).out
    approved = cli("approvals", ident, "approve")
    assert (approved.code, "broken YAML" in approved.err) == (2, True), approved
    assert cli("approvals", ident, "refuse").code == 0
    (project / "toolgate.yaml").write_text(whole)
    assert kinds(cli)[-1] == "refused"


def test_a_grant_is_revoked(cli: Cli, project: Path) -> None:
    ident = asked(cli)
    assert cli("approvals", ident, "approve", "--grant", "3600", "--path", "hours.md").code == 0
    (grant,) = cli("grants", "--json").data
    broken(project, "policy: [\n")
    assert cli("grants", "revoke", grant["id"]).code == 0
    assert cli("grants", "--json").data == []


def test_a_plugin_or_a_mount_that_is_wrong_takes_no_brake_away_either(cli: Cli, project: Path) -> None:
    cli("call", "system.ping")
    (project / "more.py").write_text("raise RuntimeError('not today')\n")
    assert cli("call", "system.ping").code != 0
    assert cli("pause", "builder").code == 0
    assert cli("approvals").code == 0


def test_the_doctor_goes_on_to_the_key_and_the_database(cli: Cli, project: Path) -> None:
    cli("call", "system.ping")
    broken(project, "policy: [\n")
    done = cli("doctor", "--json")
    found = {finding["what"]: finding["state"] for finding in done.data}
    assert (done.code, found["toolgate.yaml"], found["key"], found["head"]) == (1, "bad", "ok", "ok")
    assert "gate" not in found


@pytest.mark.parametrize(
    "text",
    [
        f"version: 1\nledger: {{database: '{ELSEWHERE}'}}\npolizy: {{}}\n",
        f"version: 1\nledger:\n  database: {ELSEWHERE}\npolicy: [\n",
        f"policy: {{\n'ledger':\n\n  # here\n  database: {ELSEWHERE}\n",
    ],
)
def test_the_database_of_a_broken_file_is_the_one_that_is_meant(cli: Cli, project: Path, text: str) -> None:
    """Nothing listens there. That it is tried, and the ledger of the project left alone, is the point."""
    cli("call", "system.ping")
    (project / "toolgate.yaml").write_text(text)
    done = cli("pause")
    assert (done.code, "database elsewhere at 127.0.0.1" in done.err) == (1, True), done
    assert not paused_here(project)


@pytest.mark.parametrize(
    "text",
    [
        f"version: 1\nledgr: {{database: '{ELSEWHERE}'}}\n",
        f"version: 1\nconsent:\n  ledger:\n    database: {ELSEWHERE}\n",
        f"{{version: 1, ledger: {{database: '{ELSEWHERE}'}}, policy: [\n",
        f"version: 1\nledger: {{database: '{ELSEWHERE}'\n",
        f"version: 1\nledger: {{databse: '{ELSEWHERE}'}}\n",
        f"ledger: {{database: '{ELSEWHERE}'}}\nledger: {{}}\n",
        f'version: "1\nledger:\n  database: {ELSEWHERE}\nx: "\n',
        "version: 1\nledger: {database: mysql://a}\n",
        "version: 1\nledgr: {key_file: ~/elsewhere.json}\n",
        f"version: 1\nledger:\n  key_file: ~/elsewhere.json\ndatabase: {ELSEWHERE}\n",
        "version: 1\nledger: {}\nkey_file: ~/elsewhere.json\n",
        f"version: 1\nledgr:\n  database: >-\n    {ELSEWHERE}\n",
    ],
)
def test_what_cannot_be_known_is_said_and_no_other_ledger_is_touched(
    cli: Cli, project: Path, text: str
) -> None:
    cli("call", "system.ping")
    (project / "toolgate.yaml").write_text(text)
    for command in (("pause",), ("ledger", "verify"), ("grants",)):
        done = cli(*command)
        assert (done.code, "which ledger it means cannot be told from it" in done.err) == (2, True), done
        assert "toolgate.yaml" in done.err
        assert "fix: " in done.err
    assert not paused_here(project)


def test_a_file_in_which_no_word_can_be_read_is_not_taken_for_one_that_says_nothing(
    cli: Cli, project: Path
) -> None:
    cli("call", "system.ping")
    (project / "toolgate.yaml").write_text(f"ledger: {{database: '{ELSEWHERE}'}}\n", encoding="utf-16")
    done = cli("pause")
    assert (done.code, "which ledger it means cannot be told from it" in done.err) == (2, True), done
    assert not paused_here(project)


@pytest.mark.parametrize("password", ["hush/hush", "hush#hush", "hush?hush", "hush:hush/hush"])
def test_no_piece_of_a_password_that_breaks_its_address_is_shown(
    cli: Cli, project: Path, password: str
) -> None:
    cli("call", "system.ping")
    database = f"postgresql://me:{password}@127.0.0.1:1/elsewhere"
    (project / "toolgate.yaml").write_text(f"ledger: {{database: '{database}'}}\npolicy: [\n")
    for command in (("pause",), ("pause", "--json"), ("ledger", "verify"), ("doctor",)):
        done = cli(*command)
        assert (done.code > 0, "hush" in done.out + done.err) == (True, False), done


@pytest.mark.parametrize("text", [b"", b"\xff\xfe policy", b"# database: postgresql://somewhere\npolicy: ["])
def test_a_file_that_says_nothing_of_a_ledger_means_the_one_in_the_project_if_there_is_one(
    cli: Cli, project: Path, text: bytes
) -> None:
    (project / "toolgate.yaml").write_bytes(text)
    nothing = cli("pause")
    assert (nothing.code, "there is no ledger in" in nothing.err) == (2, True), nothing
    assert not (project / ".toolgate" / "ledger.db").exists()
    (project / "toolgate.yaml").write_text("version: 1\n")
    assert cli("call", "system.ping", "-p", "human").code == 0
    (project / "toolgate.yaml").write_bytes(text)
    assert cli("pause").code == 0
    assert paused_here(project)


@pytest.mark.parametrize("what", ["no regular file", "too large"])
def test_a_file_that_cannot_be_read_at_all_could_name_any_ledger_so_none_is_paused(
    cli: Cli, project: Path, what: str
) -> None:
    cli("call", "system.ping")
    file = project / "toolgate.yaml"
    if what == "too large":
        file.write_bytes(b"#" * (yamlfile.MAX_BYTES + 1))
    else:
        file.unlink()
        file.mkdir()
    refused = cli("pause", "--root", str(project))
    assert (refused.code, "cannot be told from it" in refused.err) == (2, True), refused
    assert not paused_here(project)


@pytest.mark.parametrize("gone", ["removed", "a link to nowhere"])
def test_without_the_file_no_ledger_is_made_to_pause_in_and_one_that_is_there_is_named(
    cli: Cli, project: Path, gone: str
) -> None:
    """The gate that runs may have another: what is paused must not be a ledger that nobody uses."""
    file, ledger = project / "toolgate.yaml", project / ".toolgate" / "ledger.db"
    whole = file.read_text()
    file.unlink()
    if gone != "removed":
        file.symlink_to("nowhere.yaml")
    nothing = cli("pause", "--root", str(project))
    assert (nothing.code, "there is no ledger in" in nothing.err) == (2, True), nothing
    assert not ledger.exists()
    file.unlink(missing_ok=True)
    file.write_text(whole)
    cli("call", "system.ping")
    file.unlink()
    named = cli("pause", "--root", str(project))
    assert (named.code, str(ledger) in named.err) == (0, True), named


def test_a_broken_file_of_an_untrusted_project_opens_nothing(cli: Cli, project: Path) -> None:
    cli("call", "system.ping")
    broken(project, "policy: [\n")
    trust.distrust(project, config.state_dir())
    assert cli("pause").code == 2
    assert not paused_here(project)


def test_on_postgresql_the_ledger_that_the_broken_file_names_is_paused(
    cli: Cli, project: Path, fresh_dsn: str
) -> None:
    whole = (project / "toolgate.yaml").read_text() + f"ledger: {{database: '{fresh_dsn}'}}\n"
    (project / "toolgate.yaml").write_text(whole)
    assert cli("call", "system.ping").code == 0
    broken(project, "limits: [\n")
    assert _paused(cli("pause")) == (0, True)
    assert cli("ledger", "verify").code == 0
    (project / "toolgate.yaml").write_text(whole)
    assert cli("call", "system.ping", "--json").json["error"]["code"] == "not_allowed"
    broken(project, "polizy: {}\n")
    assert cli("resume").code == 0
    (project / "toolgate.yaml").write_text(whole)
    assert cli("call", "system.ping").code == 0
    assert not (project / ".toolgate" / "ledger.db").exists()


def _paused(done: Done) -> tuple[int, bool]:
    return done.code, "this is about the ledger in the database" in done.err


def paused_here(project: Path) -> bool:
    connection = sqlite3.connect(project / ".toolgate" / "ledger.db")
    try:
        return bool(connection.execute("SELECT * FROM pauses").fetchall())
    finally:
        connection.close()
