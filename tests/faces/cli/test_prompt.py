"""A human at the terminal: what the question shows, each answer, and somebody else being faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .driving import Cli, Terminal, finish, start

Open = Callable[..., Terminal]
APPEND = ("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=open")
MENU = "[a]pprove once  [r]efuse  [g]rant  [l]ater > "


def last(cli: Cli, kind: str) -> dict[str, object]:
    rows = cli("ledger", "tail", "--kind", kind, "--json").data
    found: dict[str, object] = rows[-1]["body"]
    return found


def test_the_question_shows_all_that_matters_and_one_letter_approves(
    terminal: Open, project: Path, cli: Cli
) -> None:
    screen = terminal(*APPEND, "--reason", "spring is here", "--conversation", "c1")
    shown = screen.expect(MENU)
    for part in (
        "builder wants to call notes.append with",
        '"path": "project:hours.md"',
        '"text": "open"',
        "--- a/hours.md",
        "+open",
        "changes files of the project",
        "it is reviewed (rule:reviewed)",
        "“spring is here”",
        "can be undone",
        "expires",
    ):
        assert part in shown, part
    assert (project / "hours.md").read_text() == "9 to 17\n"
    screen.type("a")
    code, rest = screen.end()
    assert (code, "added a line to hours.md" in rest) == (0, True)
    assert (project / "hours.md").read_text() == "9 to 17\nopen\n"
    assert last(cli, "approved")["channel"] == "terminal"


def test_a_refusal_asks_why_and_the_caller_is_told(terminal: Open, project: Path, cli: Cli) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    for no_answer in ("what?", "abort", "regret", "A", ""):
        screen.type(no_answer)
        if no_answer:
            screen.expect("that is none of these")
        screen.expect(MENU)
    screen.type("r")
    screen.expect("why (the model is told) > ")
    screen.type("too early")
    code, rest = screen.end()
    assert code == 3
    assert "error denied: Access denied by creator." in rest
    assert "too early" in rest
    assert (project / "hours.md").read_text() == "9 to 17\n"


def test_a_grant_says_what_it_covers_and_covers_the_next_call(
    terminal: Open, project: Path, cli: Cli
) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    screen.type("g")
    screen.expect("for how many minutes? [60] > ")
    screen.type("30")
    screen.expect("for what? [p]ath glob  [s]ame arguments  [a]ny arguments > ")
    screen.type("p")
    screen.expect("path glob, such as docs/**, or nothing for these > ")
    screen.type("*.md")
    assert (
        "builder may call notes.append without being asked, on paths that match *.md, with any other arguments (any text), until"
        in screen.expect("[y/N] > ")
    )
    screen.type("y")
    assert screen.end()[0] == 0
    again = cli(*APPEND, "--json")
    assert (again.code, again.json["ok"]) == (0, True)
    other = cli("call", "notes.append", "--arg", "path=other.txt", "--arg", "text=x", "--no-wait")
    assert other.code == 3
    (grant,) = cli("grants", "--json").data
    assert (grant["paths"], grant["uses"], grant["channel"]) == (["*.md"], 1, "terminal")


def test_a_grant_for_the_same_arguments_names_them_and_lets_some_differ(terminal: Open, cli: Cli) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    screen.type("g")
    screen.expect("minutes? [60] > ")
    screen.type("")
    screen.expect("for what? ")
    screen.type("s")
    screen.expect("which of these may differ? names, or nothing for none > ")
    screen.type("text")
    told = screen.expect("[y/N] > ")
    assert 'where path is "project:hours.md", with any other arguments (any text), until' in told
    screen.type("y")
    assert screen.end()[0] == 0
    (grant,) = cli("grants", "--json").data
    assert grant["args"] == {"path": {"equals": "project:hours.md"}}


def test_a_grant_that_is_not_confirmed_is_not_given(terminal: Open, cli: Cli) -> None:
    screen = terminal(*APPEND, "--conversation", "c1")
    screen.expect(MENU)
    screen.type("g")
    screen.expect("minutes? [60] > ")
    screen.type("")
    screen.expect("[c]onversation")
    screen.type("c")
    told = screen.expect("[y/N] > ")
    assert "with any arguments (any path, any text), in the conversation c1" in told
    screen.type("n")
    screen.expect(MENU)
    screen.type("l")
    assert screen.end()[0] == 3
    assert cli("grants", "--json").data == []


def test_later_leaves_the_question_open_and_gives_back_pending(terminal: Open, cli: Cli) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    screen.type("l")
    code, rest = screen.end()
    assert (code, "error pending" in rest) == (3, True)
    (question,) = cli("approvals", "--json").data
    assert cli("approvals", question["id"], "approve").code == 0
    assert cli(*APPEND).code == 0


def test_an_answer_from_elsewhere_ends_the_prompt_and_says_who_gave_it(
    terminal: Open, project: Path, cli: Cli
) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    (question,) = cli("approvals", "--json").data
    assert (
        finish(start("approvals", question["id"], "approve", "--reason", "I saw it", cwd=project)).code == 0
    )
    code, rest = screen.end()
    assert code == 0
    assert "approved by" in rest
    assert "in cli: I saw it" in rest
    assert (project / "hours.md").read_text() == "9 to 17\nopen\n"


def test_yes_shows_the_question_and_records_a_terminal_approval(
    terminal: Open, project: Path, cli: Cli
) -> None:
    screen = terminal(*APPEND, "--yes")
    assert "toolgate asks" in screen.expect("added a line to hours.md")
    assert screen.end()[0] == 0
    assert (last(cli, "approved")["channel"], last(cli, "approved")["reason"]) == ("terminal", "--yes")


def test_what_the_agent_wrote_cannot_disguise_the_question(terminal: Open) -> None:
    screen = terminal(
        "call",
        "notes.append",
        "--arg",
        "path=hours.md",
        "--arg",
        "text=\u202egnp\x1b[2J[bold]x[/bold]",
        "--reason",
        "a\rb",
    )
    shown = screen.expect(MENU)
    assert "+⟨U+202E⟩gnp⟨U+001B⟩[2J[bold]x[/bold]" in shown
    assert "“a⟨U+000D⟩b”" in shown
    assert "\u202e" not in shown
    assert "\x1b[2J" not in shown


def test_ctrl_c_at_the_prompt_ends_quietly_and_leaves_the_question_open(terminal: Open, cli: Cli) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    screen.process.send_signal(2)
    code, rest = screen.end()
    assert (code, "Traceback" in rest) == (130, False)
    (question,) = cli("approvals", "--json").data
    assert rest.splitlines()[-1] == f"it is still open: toolgate approvals {question['id']}"


def test_the_rest_of_a_long_line_cannot_pass_for_a_line_of_its_own(terminal: Open) -> None:
    screen = terminal("call", "notes.append", "--arg", "path=hours.md", "--arg", f"text={'x' * 94}+harmless")
    shown = screen.expect(MENU).splitlines()
    assert "   ↪ +harmless" in [line.rstrip() for line in shown]
    assert not any(line.startswith(("  +harmless", "+harmless")) for line in shown)


def test_a_whole_word_answers_too(terminal: Open) -> None:
    screen = terminal(*APPEND)
    screen.expect(MENU)
    screen.type("approve")
    assert screen.end()[0] == 0


def test_what_was_typed_before_the_question_does_not_answer_it(terminal: Open, project: Path) -> None:
    screen = terminal(*APPEND)
    screen.type("a")  # long before the process has started to ask
    screen.expect(MENU)
    screen.type("l")
    assert screen.end()[0] == 3
    assert (project / "hours.md").read_text() == "9 to 17\n"


def test_the_arguments_are_shown_in_full_and_quoted_beside_the_preview(terminal: Open) -> None:
    text = "x" * 150 + '", text="harmless'
    shown = terminal("call", "notes.append", "--arg", "path=hours.md", "--arg", f"text={text}").expect(MENU)
    arguments = shown.partition("which would do")[0]
    whole = "".join(line.strip().removeprefix("↪ ") for line in arguments.splitlines())
    assert '"text": "' + "x" * 150 + r'\", text=\"harmless"' in whole
    assert "--- a/hours.md" in shown


def test_a_list_of_questions_quotes_values_so_that_none_poses_as_another(cli: Cli) -> None:
    cli("call", "notes.append", "--arg", "path=a, text=b", "--arg", "text=evil", "--no-wait")
    assert 'with path="project:a, text=b", text="evil"' in " ".join(cli("approvals").out.split())
