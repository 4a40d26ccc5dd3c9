"""Open questions from another terminal: the list, one in full, answers, grants and pauses."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

import toolgate
from toolgate import Change, FileChange, MountPath

from .driving import COMMAND, Cli, environment, finish, heard, start

APPEND = ("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=open")


@pytest.fixture
def question(cli: Cli) -> str:
    ident: str = cli(*APPEND, "--no-wait", "--reason", "spring", "--json").data["question"]
    return ident


def test_the_list_says_who_wants_what_and_until_when(cli: Cli, question: str) -> None:
    (row,) = cli("approvals", "--json").data
    assert (row["id"], row["tool"], row["persona"], row["rationale"]) == (
        question,
        "notes.append",
        "builder",
        "spring",
    )
    assert row["expires_at"].endswith("Z")
    shown = cli("approvals").out
    for part in (question, "builder", "notes.append", "in 15 min", "wants to call"):
        assert part in shown, part


@pytest.mark.parametrize(
    ("answered", "since"), [(True, "approved"), (False, "asked about")], ids=["answered", "open"]
)
def test_a_call_that_would_do_something_else_by_now_says_why_it_is_asked_again(
    cli: Cli, project: Path, question: str, answered: bool, since: str
) -> None:
    if answered:
        cli("approvals", question, "approve")
    (project / "hours.md").write_text("10 to 16\n")
    why = f"asked again: what it would do has changed since it was {since}"
    pending = cli(*APPEND, "--no-wait", "--json").json
    assert pending["error"]["message"].endswith(f"({why})")
    ident = pending["data"]["question"]
    assert ident != question
    assert why.replace(":", "") in " ".join(cli("approvals", ident).out.split())
    assert why in cli("approvals").out
    assert cli(*APPEND, "--no-wait", "--json").data["question"] == ident
    waiting = start(*APPEND, cwd=project)
    try:
        assert heard(waiting).endswith(f"; {why}\n")
    finally:
        waiting.kill()
        finish(waiting)


def test_a_first_question_and_one_about_other_words_say_nothing_of_an_earlier_one(
    cli: Cli, question: str
) -> None:
    cli("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=closed", "--no-wait")
    assert [one["again"] for one in cli("approvals", "--json").data] == ["", ""]


def test_the_list_names_the_files_that_a_program_changed(cli: Cli, project: Path) -> None:
    program = "open('/project/hours.md', 'a').write('closed'); open('/project/menu, x.md', 'w').write('soup')"
    run = (
        "call",
        "exec.python",
        "--arg",
        f"code={program}",
        "--arg",
        "project=overlay",
        "--no-wait",
        "--json",
    )
    cli("approvals", cli(*run).data["question"], "approve")
    assert cli(*run).data["proposal"]["state"] == "pending"
    shown = " ".join(cli("approvals").out.split())
    assert "builder wants to call fs.apply with execution=" in shown
    assert 'to change "hours.md"; create "menu, x.md"' in shown


def test_the_list_names_a_few_files_and_counts_the_others(cli: Cli) -> None:
    parts = (f"--- /dev/null\n+++ b/page{at}.md\n@@ -0,0 +1 @@\n+hi\n" for at in range(8))
    cli("call", "fs.patch", json.dumps({"diff": "".join(parts)}), "--no-wait")
    shown = " ".join(cli("approvals").out.split())
    assert 'to create "page0.md", "page1.md", "page2.md", "page3.md", "page4.md" and 3 more' in shown


def test_a_question_longer_than_a_screen_ends_with_the_files_it_is_about(cli: Cli) -> None:
    for count, said in ((10, False), (100, True)):
        args = json.dumps({"path": f"page{count}.md", "content": "hi\n" * count})
        ident = cli("call", "fs.write", args, "--no-wait", "--json").data["question"]
        shown = cli("approvals", ident).out
        assert (f'in short       create "page{count}.md"\neffects ' in shown) is said


def test_one_question_is_shown_in_full_with_its_diff(cli: Cli, question: str) -> None:
    shown = cli("approvals", question).out
    assert "+open" in shown
    assert f"toolgate approvals {question} approve|refuse" in shown
    missing = cli("approvals", "q_none")
    assert (missing.code, "there is no open question q_none" in missing.err) == (1, True)


def test_an_approval_waits_for_the_repeated_call_and_is_used_once(
    cli: Cli, question: str, project: Path
) -> None:
    assert cli("approvals", question, "approve").code == 0
    assert "waits for the call" in cli("approvals", question).out
    assert (project / "hours.md").read_text() == "9 to 17\n"
    assert cli(*APPEND).code == 0
    assert cli(*APPEND, "--no-wait").code == 3
    assert (project / "hours.md").read_text() == "9 to 17\nopen\n"


def test_the_first_answer_counts(cli: Cli, question: str) -> None:
    cli("approvals", question, "approve")
    second = cli("approvals", question, "deny")
    assert (second.code, "already approved" in second.err) == (1, True)


@pytest.mark.parametrize("word", ["refuse", "deny"])
def test_a_question_is_refused_in_either_word(cli: Cli, question: str, word: str) -> None:
    assert cli("approvals", question, word, "--reason", "not now").out == f"{question} is refused\n"
    assert cli("approvals").out == "no open questions\n"


@pytest.mark.parametrize(
    "args",
    [
        ("maybe",),
        ("approve", "--path", "x"),
        ("approve", "--grant", "-1"),
        ("approve", "--grant", "9", "--arg", "x"),
    ],
)
def test_an_answer_that_makes_no_sense_changes_nothing(
    cli: Cli, question: str, args: tuple[str, ...]
) -> None:
    assert cli("approvals", question, *args).code == 2
    assert len(cli("approvals", "--json").data) == 1


def test_a_grant_keeps_the_arguments_that_are_to_stay_the_same(cli: Cli, question: str) -> None:
    assert cli("approvals", question, "approve", "--same", "text").code == 2, "without --grant"
    unknown = cli("approvals", question, "approve", "--grant", "600", "--same", "colour")
    assert (unknown.code, "it has: path, text" in unknown.err) == (2, True)
    given = cli("approvals", question, "approve", "--grant", "600", "--same", "all")
    assert "where path is" in given.out
    assert "any other arguments" not in given.out
    (grant,) = cli("grants", "--json").data
    assert set(grant["args"]) == {"path", "text"}
    assert grant["words"] in " ".join(cli("grants").out.split())


def test_a_grant_without_limits_says_so_when_it_is_given(cli: Cli, question: str) -> None:
    given = cli("approvals", question, "approve", "--grant", "600", "--uses", "2")
    assert "with any arguments (any path, any text), at most 2 times" in " ".join(given.out.split())


def test_a_grant_covers_what_it_says_until_it_is_revoked(cli: Cli, question: str) -> None:
    cli("approvals", question, "approve", "--grant", "600", "--path", "*.md", "--arg", "text=open")
    assert cli(*APPEND).code == 0
    assert cli(*APPEND).code == 0
    assert cli("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=other", "--no-wait").code == 3
    (grant,) = cli("grants", "--json").data
    shown = cli("grants").out
    assert 'on paths that match *.md, where text is "open"' in " ".join(shown.split())
    assert cli("grants", "revoke", grant["id"]).code == 0
    assert cli("grants").out == "there are no live grants\n"
    assert cli(*APPEND, "--no-wait").code == 3
    assert cli("grants", "revoke", grant["id"]).code == 1
    assert cli("grants", "remove", grant["id"]).code == 2


def test_watch_shows_questions_as_they_open(project: Path, cli: Cli) -> None:
    watching = start("approvals", "--watch", "--json", cwd=project)
    try:
        assert json.loads(heard(watching, "stdout"))["data"] == []
        ident = cli(*APPEND, "--no-wait", "--json").data["question"]
        assert json.loads(heard(watching, "stdout"))["data"][0]["id"] == ident
    finally:
        watching.send_signal(2)
        assert finish(watching).code == 130


def test_a_pause_stops_one_persona_or_everybody_until_it_is_lifted(cli: Cli) -> None:
    assert cli("pause", "reader", "--reason", "it loops").code == 0
    stopped = cli("call", "system.ping", "--persona", "reader")
    assert (stopped.code, "it loops" in stopped.err) == (3, True)
    assert cli("call", "system.ping").code == 0
    assert cli("resume", "reader").code == 0
    assert cli("call", "system.ping", "--persona", "reader").code == 0
    assert cli("pause").code == 0
    assert cli("call", "system.ping").code == 3
    assert cli("resume").code == 0
    assert cli("resume").code == 1
    assert cli("pause", "nobody").code == 3


def test_a_binary_file_that_is_too_long_to_be_shown_can_be_looked_at_by_itself(
    cli: Cli, project: Path
) -> None:
    content = bytes(range(256)) * 300

    def plan(path: MountPath) -> Change:
        return Change((FileChange(path, None, content),))

    @toolgate.tool("notes.draw", writes=["project"], plan=plan)
    async def draw(change: Change) -> str:
        """Draw a logo."""
        return "done"

    async def ask() -> str:
        async with toolgate.open(project, tools=[draw]) as gate:
            asked = await gate.call("notes.draw", {"path": "logo.bin"}, persona="builder", wait=False)
            return str(asked.data["question"])

    ident = asyncio.run(ask())
    page = cli("approvals", ident, "--all").out
    assert "00000000  00 01 02 03" in page
    assert "11,264 more bytes are not shown: `toolgate approvals QUESTION --file logo.bin`" in page
    written = subprocess.run(
        [*COMMAND, "approvals", ident, "--file", "logo.bin"],
        cwd=project,
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert written.stdout == content
    refused = cli("approvals", ident, "--file", "other.bin")
    assert refused.code == 1
    assert "logo.bin" in refused.err


def test_every_open_question_is_refused_at_once(cli: Cli, question: str) -> None:
    cli("call", "notes.append", "--arg", "path=a.md", "--arg", "text=x", "--no-wait")
    assert len(cli("approvals", "--json").data) == 2
    unclear = cli("approvals", "refuse")
    assert (unclear.code, "refuse --all" in unclear.err) == (2, True)
    done = cli("approvals", "refuse", "--all", "--reason", "enough for today", "--json")
    assert (done.code, len(done.data["refused"])) == (0, 2)
    assert cli("approvals", "--json").data == []
    assert cli("approvals", "refuse", "--all").out == "no open questions\n"
    again = cli(*APPEND, "--no-wait")
    assert "enough for today" in again.err


def test_a_grant_for_the_files_of_a_change_names_them(cli: Cli, project: Path) -> None:
    ident = cli(
        "call", "fs.write", "--arg", "path=new,*.md", "--arg", "content=x", "--no-wait", "--json"
    ).data["question"]
    given = cli("approvals", ident, "approve", "--grant", "600", "--paths")
    assert "on paths that match new,[*].md" in " ".join(given.out.split())
    wrong = cli("approvals", ident, "approve", "--grant", "600", "--program")
    assert wrong.code != 0
