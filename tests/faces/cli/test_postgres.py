"""The same commands on PostgreSQL: the face does not know which database it stands on."""

from __future__ import annotations

from pathlib import Path

from .driving import Cli, finish, heard, start

APPEND = ("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=open")


def test_a_waiting_call_is_answered_and_all_of_it_verifies_on_postgresql(
    cli: Cli, project: Path, fresh_dsn: str
) -> None:
    text = (project / "toolgate.yaml").read_text()
    (project / "toolgate.yaml").write_text(text + f"ledger: {{database: '{fresh_dsn}'}}\n")
    assert cli("call", "system.ping").code == 0
    assert cli("doctor").code == 0
    waiting = start(*APPEND, "--json", cwd=project)
    try:
        assert "for approval of notes.append" in heard(waiting)
        ident = heard(waiting).split()[2]
        assert cli("approvals", ident, "approve").code == 0
    except BaseException:
        waiting.kill()
        raise
    done = finish(waiting)
    assert (done.code, done.json["ok"]) == (0, True), done
    assert cli("ledger", "rotate-key").code == 0
    assert cli("ledger", "verify").code == 0
    kinds = [row["kind"] for row in cli("ledger", "tail", "-n", "5", "--json").data]
    assert kinds == ["asked", "approved", "started", "committed", "rotated"]
    assert len(cli("ledger", "export").out.splitlines()) == cli("ledger", "verify", "--json").data["events"]
    assert not (project / ".toolgate" / "ledger.db").exists()


def test_a_ledger_that_was_only_looked_at_can_still_begin_and_then_needs_its_key(
    cli: Cli, project: Path, fresh_dsn: str, own_state_dir: Path
) -> None:
    text = (project / "toolgate.yaml").read_text()
    (project / "toolgate.yaml").write_text(text + f"ledger: {{database: '{fresh_dsn}'}}\n")
    assert cli("ledger", "tail").code == 0
    assert not (own_state_dir / "keys").exists()
    assert cli("call", "system.ping").code == 0
    (key,) = (own_state_dir / "keys").glob("*.json")
    key.unlink()
    for command in (("call", "system.ping"), ("pause",)):
        refused = cli(*command)
        assert (refused.code, "the key of this ledger is missing" in refused.err) == (1, True), refused
    assert "the key of this ledger is missing" in cli("trust", "--yes").err
    assert not key.exists()
