"""`toolgate undo` shows what it would do, asks, does it as one, and says how to have it back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from toolgate.features.files import commands as undo

from .driving import Cli, Terminal

RULES = """\
    - {persona: builder, tools: ["fs.*"], decision: allow, reason: it is a test}
"""


@pytest.fixture
def written(project: Path, cli: Cli) -> list[int]:
    """Two calls on one file, in one conversation, that nobody is asked about."""
    policy = project / "toolgate.yaml"
    policy.write_text(policy.read_text().replace("  rules:\n", "  rules:\n" + RULES))
    assert cli("trust").code == 0
    events = []
    for content in ("one\n", "two\n"):
        done = cli(
            "call", "fs.write", "-a", "path=hours.md", "-a", f"content={content}", "--conversation", "talk", "--json"
        )  # fmt: skip
        assert done.code == 0, done.out
        events.append(done.json["meta"]["event_id"])
    return events


def test_without_a_terminal_it_shows_and_waits_for_yes(project: Path, cli: Cli, written: list[int]) -> None:
    shown = cli("undo", *map(str, written))
    assert shown.code == 3
    assert "would undo 2 calls, newest first" in shown.out
    assert "  -two\n  +9 to 17" in shown.out
    assert "add --yes" in shown.err
    assert cli("undo", *map(str, written), "--json").json["error"]["code"] == "pending"
    dry = cli("undo", "--conversation", "talk", "--dry-run", "--json")
    assert (dry.code, dry.data["events"]) == (0, written[::-1])
    assert (project / "hours.md").read_text() == "two\n"


def test_it_says_what_was_undone_and_how_to_redo_it(project: Path, cli: Cli, written: list[int]) -> None:
    done = cli("undo", "--since", "1h", "--yes")
    assert done.code == 0, done.err
    assert "Undone: 1 file restored (call c_" in done.out
    assert (project / "hours.md").read_text() == "9 to 17\n"
    redo = done.out.rpartition("toolgate undo ")[2].strip()
    again = cli("undo", redo, "--yes")
    assert again.code == 0, again.err
    assert (project / "hours.md").read_text() == "two\n"


def test_a_file_that_moved_on_is_refused_with_its_name(project: Path, cli: Cli, written: list[int]) -> None:
    (project / "hours.md").write_text("mine\n")
    for more in (("--yes",), ("--dry-run",), ()):
        refused = cli("undo", *map(str, written), *more)
        assert (refused.code, "hours.md is no longer as event" in refused.err) == (1, True)
    assert (project / "hours.md").read_text() == "mine\n"


def test_nothing_to_undo_says_where_nothing_was_found(cli: Cli, written: list[int]) -> None:
    done = cli("undo", "--conversation", "tlak", "--since", "2h")
    assert (done.code, done.err.splitlines()[0]) == (
        1, "error conflict: there is nothing to undo in the conversation 'tlak' since 2h",
    )  # fmt: skip


def test_a_person_who_changes_something_is_told_how_to_undo_it(
    project: Path, terminal: Callable[..., Terminal], written: list[int]
) -> None:
    code, shown = terminal("call", "fs.append", "-a", "path=hours.md", "-a", "text=three").end()
    event = re.search(r"event (\d+) ", shown)
    assert code == 0, shown
    assert event
    assert f"undo with: toolgate undo {event[1]}" in shown
    (project / "there").mkdir()
    code, shown = terminal("call", "fs.ensure_dir", "-a", "path=there").end()
    assert (code, "undo with" in shown) == (0, False)


def test_a_person_is_asked(project: Path, terminal: Callable[..., Terminal], written: list[int]) -> None:
    screen = terminal("undo", str(written[1]))
    assert "would undo this call" in screen.expect("undo this? [y/N] > ")
    screen.type("y")
    code, rest = screen.end()
    assert (code, (project / "hours.md").read_text()) == (0, "one\n"), rest


@pytest.mark.parametrize("answer", ["", "yes please\n"])
def test_only_yes_is_yes(
    project: Path, cli: Cli, written: list[int], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Typed:
        def forget(self) -> None:
            return None

        async def line(self) -> str:
            return answer

    monkeypatch.setattr(undo, "Keyboard", Typed)
    monkeypatch.setattr(undo, "_somebody_there", lambda: True)
    done = cli("undo", str(written[1]))
    assert (done.code, "nothing was touched" in done.err) == (3, True)
    assert (project / "hours.md").read_text() == "two\n"


def test_ids_may_be_shortened_to_what_tells_them_apart(cli: Cli, written: list[int]) -> None:
    events = cli("ledger", "tail", "--kind", "committed", "--json").data
    first, second = (row["call"] for row in events[-2:])
    assert cli("ledger", "show", second[-12:], "--json").data[0]["call"] == second
    both = cli("undo", second[:8])
    assert both.code == 2
    assert first in both.err
    assert second in both.err
    assert cli("undo", second[-12:], "--dry-run").code == 0
    assert cli("undo", f"x{second[-3:]}").code == 1
    opened = cli("call", "notes.append", "-a", "path=hours.md", "-a", "text=x", "--no-wait", "--json")
    question = opened.data["question"]
    assert question in cli("approvals", question[-6:]).out
    granted = cli("approvals", question[-6:], "approve", "--grant", "60")
    assert granted.code == 0, granted.err
    (grant,) = cli("grants", "--json").data
    assert cli("grants", "revoke", grant["id"][:7]).code == 0
    assert cli("grants", "--json").data == []


def test_the_changed_files_are_listed(project: Path, cli: Cli, written: list[int]) -> None:
    (one,) = cli("artifacts", "--conversation", "talk", "--json").data["artifacts"]
    assert (one["op"], one["now"], [step["event_id"] for step in one["changes"]]) == (
        "modify",
        "intact",
        written,
    )
    cli("undo", str(written[1]), "--yes")
    shown = cli("artifacts").out
    assert "hours.md" in shown
    assert f"{written[1]} (undone by" in shown
    assert "no call has changed a file" in cli("artifacts", "--conversation", "other").out
