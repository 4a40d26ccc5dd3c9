"""The record: reading it, proving it, carrying the proof elsewhere."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from toolgate.project import config

from .driving import Cli, finish, heard, start

APPEND = ("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=open")


@pytest.fixture
def story(cli: Cli) -> Cli:
    """A read, a refusal, an approved write."""
    cli("call", "notes.read", "--arg", "path=hours.md")
    cli(*APPEND, "--persona", "reader")
    ident = cli(*APPEND, "--no-wait", "--json").data["question"]
    cli("approvals", ident, "approve", "--reason", "fine")
    assert cli(*APPEND).code == 0
    return cli


def change(project: Path, sql: str) -> None:
    database = sqlite3.connect(project / ".toolgate" / "ledger.db")
    with database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute(sql)
    database.close()


def test_tail_shows_the_newest_events_oldest_first(story: Cli) -> None:
    rows = story("ledger", "tail", "-n", "4", "--json").data
    assert [row["kind"] for row in rows] == ["asked", "approved", "started", "committed"]
    assert rows[1]["body"]["reason"] == "fine"
    shown = story("ledger", "tail", "-n", "4").out
    assert "approved" in shown
    assert "notes.append" in shown


def test_tail_filters(story: Cli) -> None:
    kinds = [row["kind"] for row in story("ledger", "tail", "--persona", "reader", "--json").data]
    assert kinds == ["denied"]
    assert (
        story("ledger", "tail", "--tool", "notes.read", "--kind", "committed", "--json").data[0]["persona"]
        == "builder"
    )
    assert story("ledger", "tail", "--since", "2999-01-01", "--json").data == []
    everything = story("ledger", "tail", "--json").data
    assert story("ledger", "tail", "--since", "1h", "--json").data == everything
    assert story("ledger", "tail", "--since", "0s", "--json").data == []
    wrong = story("ledger", "tail", "--kind", "comitted")
    assert (wrong.code, "there are no events of kind 'comitted'" in wrong.err) == (2, True)


def test_follow_prints_events_as_they_are_recorded(project: Path, story: Cli) -> None:
    following = start("ledger", "tail", "-n", "1", "--follow", "--json", cwd=project)
    try:
        first = json.loads(heard(following, "stdout"))
        story("call", "system.ping")
        second = json.loads(heard(following, "stdout"))
        assert (second["seq"], second["tool"]) == (first["seq"] + 1, "system.ping")
    finally:
        following.send_signal(2)
        done = finish(following)
    assert (done.code, done.err) == (130, "")


def test_show_tells_the_life_of_a_call_from_any_of_its_ids(story: Cli) -> None:
    asked, approved, _, committed = story("ledger", "tail", "-n", "4", "--json").data
    by_event = story("ledger", "show", str(committed["seq"]), "--json").data
    assert [row["kind"] for row in by_event] == ["asked", "approved", "started", "committed"]
    assert story("ledger", "show", committed["call"], "--json").data == by_event
    shown = story("ledger", "show", asked["ref"]).out
    assert f"asked {asked['seq']} → approved {approved['seq']}" in shown
    assert "key version 1" in shown
    missing = story("ledger", "show", "9999")
    assert (missing.code, "there is no event 9999" in missing.err) == (1, True)


def test_an_untouched_ledger_verifies(story: Cli) -> None:
    done = story("ledger", "verify")
    assert (done.code, done.out[:2]) == (0, "✓ ")
    assert story("ledger", "verify", "--json").data["keyed"] is True


def test_a_changed_event_is_named_even_where_no_gate_would_open(project: Path, story: Cli) -> None:
    (approved,) = story("ledger", "tail", "--kind", "approved", "--json").data
    change(project, "UPDATE journal SET body = replace(body, 'fine', 'FINE') WHERE kind = 'approved'")
    done = story("ledger", "verify")
    assert done.code == 1
    assert done.err.startswith(f"✗ event {approved['seq']} is bad: its content does not match its hash")
    assert story("ledger", "verify", "--json").data["bad_event"] == approved["seq"]
    assert story("ledger", "tail").code == 0


def test_a_damaged_event_can_still_be_looked_at(project: Path, story: Cli) -> None:
    change(project, "UPDATE journal SET body = '{\x1b[2J' WHERE kind = 'approved'")
    shown = story("ledger", "tail")
    assert (shown.code, "⟨U+001B⟩[2J" in shown.out or "\\u001b[2J" in shown.out) == (0, True)
    (approved,) = story("ledger", "tail", "--kind", "approved", "--json").data
    assert approved["body"] == {"damaged": "{\x1b[2J"}
    assert story("ledger", "show", str(approved["seq"])).code == 0


def test_a_forged_head_stops_the_gate_and_is_found(project: Path, story: Cli) -> None:
    change(project, "UPDATE head SET mac = lower(hex(randomblob(32)))")
    call = story("call", "system.ping", "--json")
    assert (call.code, call.json["error"]["code"]) == (1, "unavailable")
    assert story("ledger", "verify").code == 1


def test_an_older_copy_is_found_by_the_remembered_checkpoint(project: Path, story: Cli) -> None:
    story("call", "system.ping")  # no process holds it open now: the file is whole
    shutil.copy(project / ".toolgate" / "ledger.db", project / "old.db")
    story("call", "system.ping")
    assert story("ledger", "checkpoint").code == 0
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (project / ".toolgate" / name).unlink(missing_ok=True)
    shutil.copy(project / "old.db", project / ".toolgate" / "ledger.db")
    done = story("ledger", "verify")
    assert (done.code, "an older copy was restored" in done.err) == (1, True)


def test_an_export_and_a_checkpoint_prove_it_elsewhere_without_key_or_project(
    project: Path, story: Cli, tmp_path: Path, own_state_dir: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    story("ledger", "checkpoint", "--out", str(elsewhere / "point.json"))
    public = json.loads((elsewhere / "point.json").read_text())["public_key"]
    lines = story("ledger", "export").out
    (elsewhere / "ledger.jsonl").write_text(lines)
    shutil.rmtree(project)
    shutil.rmtree(own_state_dir)
    proof = ("--checkpoint", str(elsewhere / "point.json"), "--public-key", public)
    project.mkdir()
    assert story("ledger", "verify", "--export", str(elsewhere / "ledger.jsonl"), *proof).code == 0
    (elsewhere / "ledger.jsonl").write_text("".join(lines.splitlines(keepends=True)[:-1]))
    cut = story("ledger", "verify", "--export", str(elsewhere / "ledger.jsonl"), *proof)
    assert (cut.code, "the end was cut off" in cut.err) == (1, True)
    (elsewhere / "ledger.jsonl").write_text(lines.replace("hours.md", "HOURS.md", 1))
    changed = story("ledger", "verify", "--export", str(elsewhere / "ledger.jsonl"), *proof)
    assert (changed.code, "is bad: its content" in changed.err) == (1, True)


def test_an_export_puts_nothing_on_a_terminal_that_it_would_obey(story: Cli, tmp_path: Path) -> None:
    said = "r\u009b31m\u202eX\u2066\u200b\u2028 é 😀"
    story("call", "system.ping", "--reason", said)
    lines = story("ledger", "export").out
    assert lines.isascii()
    assert any(said in json.loads(line)["body"] for line in lines.splitlines())
    (tmp_path / "ledger.jsonl").write_text(lines)
    story("ledger", "checkpoint", "--out", str(tmp_path / "point.json"))
    proof = ("--checkpoint", str(tmp_path / "point.json"))
    assert story("ledger", "verify", "--export", str(tmp_path / "ledger.jsonl"), *proof).code == 0


def test_a_checkpoint_by_somebody_else_proves_nothing(story: Cli, tmp_path: Path) -> None:
    story("ledger", "checkpoint", "--out", "point.json")
    done = story("ledger", "verify", "--checkpoint", "point.json", "--public-key", "00" * 32)
    assert (done.code, "is signed by" in done.err) == (1, True)


def test_a_missing_checkpoint_file_is_a_usage_error(story: Cli) -> None:
    assert story("ledger", "verify", "--checkpoint", "none.json").code == 2


def test_a_rotated_key_seals_what_follows_and_all_still_verifies(story: Cli) -> None:
    assert story("ledger", "rotate-key", "--json").data["key_version"] == 2
    story("call", "system.ping")
    assert story("ledger", "tail", "-n", "1", "--json").data[0]["key"] == 2
    assert story("ledger", "verify").code == 0


def test_a_rotation_leaves_what_stands_beside_the_key_file(story: Cli) -> None:
    """`ledger.key_file` may be in a directory of somebody else's."""
    (key,) = (
        path for path in config.state_dir().rglob("*") if path.is_file() and b'"ed25519"' in path.read_bytes()
    )
    others = [key.with_name(f".{key.name}.backup"), key.with_name(f".{key.name}.d")]
    others[0].write_text("mine")
    others[1].mkdir()
    assert story("ledger", "rotate-key", "--json").data["key_version"] == 2
    assert others[0].read_text() == "mine"
    assert others[1].is_dir()


def test_an_unknown_call_is_resolved_once(cli: Cli) -> None:
    cli("call", "more.lose")
    event = cli("ledger", "tail", "--kind", "unknown", "--json").data[0]["seq"]
    assert cli("ledger", "resolve", str(event), "perhaps").code == 2
    done = cli("ledger", "resolve", str(event), "happened", "--reason", "the mail arrived")
    assert (done.code, done.out.startswith("recorded as event")) == (0, True)
    again = cli("ledger", "resolve", str(event), "not")
    assert (again.code, "error conflict" in again.err) == (1, True)


def test_what_was_written_is_undone_and_the_undo_is_recorded(project: Path, story: Cli) -> None:
    event = story("ledger", "tail", "-n", "1", "--json").data[0]["seq"]
    assert (project / "hours.md").read_text() == "9 to 17\nopen\n"
    done = story("undo", str(event), "--yes", "--json")
    assert done.json["ok"], done.out
    assert (project / "hours.md").read_text() == "9 to 17\n"
    assert story("undo", "99999").code != 0


def test_stats_count_calls_refusals_and_errors_per_persona(story: Cli) -> None:
    story("call", "more.fail", "--arg", "message=x")
    usage = {one["persona"]: one for one in story("stats", "--json").data["personas"]}
    assert (usage["builder"]["calls"], usage["reader"]["refused"]) == (3, 1)
    shown = story("stats", "--period", "all", "--persona", "builder")
    assert "1 × more.fail: failed" in shown.out
    assert story("stats", "--period", "1year").code == 2


def test_two_rotations_at_once_give_two_versions_and_all_still_verifies(project: Path, story: Cli) -> None:
    rotating = [start("ledger", "rotate-key", "--json", cwd=project) for _ in range(2)]
    versions = {finish(process).data["key_version"] for process in rotating}
    assert versions == {2, 3}
    assert story("call", "system.ping").code == 0
    assert story("ledger", "verify").code == 0
