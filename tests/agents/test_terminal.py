"""`toolgate run`, `chat` and `room` as processes and at a real terminal: append-only, inline approvals, Ctrl-C, pipes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.tmux import Tmux
from examples.running import EXAMPLES
from faces.cli.driving import Cli, Terminal
from toolgate.features.agents.store import AgentRun
from toolgate.features.agents.view import RunView
from toolgate.project import config, trust

pytestmark = pytest.mark.usefixtures("few_tools")
MOVES = re.compile(r"\x1b\[[0-9;]*[ABCDEFGHJKf]|\r(?!\n)")
"""What moves the cursor or erases."""
YAML = """\
version: 1
default_persona: builder
personas:
  builder: {phase: contribute, allow: [ai.ask]}
  scout: {parent: builder, phase: observe}
models: {demo: {kind: scripted, script: script.yaml}}
"""
SCRIPT = """\
builder:
  - {text: "I read it.", calls: [{tool: code.read, args: {path: a.txt}}]}
  - {text: "A helper looks, too.", calls: [{tool: ai.ask, args: {question: "what is there?", persona: scout}}]}
  - {text: "I write it.", calls: [{tool: fs.write, args: {path: b.txt, content: "new line\\n"}}]}
  - "Written."
  - "That was all."
scout:
  - {calls: [{tool: code.list, args: {}}]}
  - "Only a.txt."
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "toolgate.yaml").write_text(YAML)
    (root / "script.yaml").write_text(SCRIPT)
    (root / "a.txt").write_text("hello \x1b[2J\x1b]0;title\x07 there\n")
    trust.trust(root, config.state_dir())
    return root


def test_a_run_asks_in_place_with_the_diff_and_only_ever_appends(
    project: Path, terminal: Callable[..., Terminal]
) -> None:
    screen = terminal("run", "write it down")
    seen = screen.expect("toolgate asks")
    assert "scripted: it says what a file has" in seen
    assert "code.read path=a.txt" in seen
    assert "helper scout with demo" in seen
    assert "scout: code.list" in seen
    seen += screen.expect("> ")
    assert "+new line" in seen
    screen.type("a")
    code, rest = screen.end()
    assert (code, (project / "b.txt").read_text()) == (0, "new line\n")
    assert "Written." in rest
    assert "4 calls · 6 replies" in rest
    raw = (seen + rest).replace("\r\n", "\n")
    assert not MOVES.search(raw)


def test_in_tmux_it_asks_below_what_was_shown_scrolls_natively_and_ends_on_ctrl_c(
    project: Path, cli: Cli, tmp_path: Path
) -> None:
    with Tmux(tmp_path / "tmux", rows=16) as tmux:
        tmux.start(project, "run", "write it down")
        seen = tmux.until("[l]ater > ")
        assert tmux.told("alternate_on") == "0"
        assert int(tmux.told("history_size")) > 0  # what has left the screen is in the terminal's own memory
        assert seen.index("code.read path=a.txt") < seen.index("helper scout") < seen.index("+new line")
        assert "scripted: it says what a file has" in seen
        tmux.type("a", "Enter")
        assert tmux.ended() == 0
        assert (project / "b.txt").read_text() == "new line\n"
        assert tmux.seen().startswith(seen[: seen.index("toolgate asks")])  # nothing above was drawn anew
        assert "4 calls · 6 replies" in tmux.seen()

        (project / "b.txt").unlink()
        tmux.start(project, "run", "write it down")
        tmux.until("[l]ater > ")
        tmux.type("C-c")
        assert tmux.ended() == 130
        assert "Traceback" not in tmux.seen()
        assert "interrupted; go on with: toolgate runs resume r_" in tmux.seen()
        assert tmux.told("alternate_on") == "0"
    assert [one["state"] for one in cli("runs", "--open", "--json").data] == ["waiting"]
    assert not (project / "b.txt").exists()


def test_without_a_human_it_waits_and_is_resumed_later(project: Path, cli: Cli) -> None:
    done = cli("run", "write it down", "--plain")
    assert done.code == 3
    assert "\x1b" not in done.out + done.err
    assert "✓" not in done.err
    ident = re.search(r"toolgate runs resume (r_\w+)", done.err)
    assert ident is not None
    listed = cli("runs", "--open", "--json").data
    assert [one["run"] for one in listed] == [ident.group(1)]
    asked = cli("approvals", listed[0]["waiting"], "approve")
    assert asked.code == 0, asked.err
    done = cli("runs", "resume", ident.group(1))
    assert (done.code, done.out) == (0, "Written.\n")
    again = cli("runs", "resume", ident.group(1))
    assert again.code == 1
    assert "has ended" in again.err


def test_a_chat_remembers_what_was_said(project: Path, cli: Cli) -> None:
    (project / "script.yaml").write_text('- "Hello."\n- {text: "You said hi.", expect: "and now"}\n')
    done = cli("chat", "--plain", stdin=b"hi\nand now?\n\n")
    assert (done.code, done.out) == (0, "Hello.\nYou said hi.\n")
    assert len({one["conversation"] for one in cli("runs", "--json").data}) == 1


def test_ctrl_c_ends_a_chat_while_the_model_is_silent_and_at_its_prompt(
    project: Path, tmp_path: Path
) -> None:
    (project / "script.yaml").write_text('- "Hello."\n- {text: "late", delay_s: 300}\n')
    with Tmux(tmp_path / "tmux") as tmux:
        tmux.start(project, "chat")
        tmux.until("> ")
        tmux.type("C-c")
        assert tmux.ended() == 130
        tmux.start(project, "chat")
        tmux.until("> ")
        for words, answer in (("hi", "Hello."), ("more", "more\nbuilder with demo")):
            tmux.type(words, "Enter")
            tmux.until(answer)
        tmux.type("C-c")
        assert tmux.ended() == 130
        seen = tmux.seen()
        assert "Traceback" not in seen
        assert "interrupted; go on with: toolgate runs resume r_" in seen
        assert "talk on with: toolgate chat --conversation v_" in seen


def test_the_example_of_a_room_runs_as_its_page_says(project: Path, cli: Cli) -> None:
    shutil.rmtree(project)
    shutil.copytree(EXAMPLES / "room", project)
    trust.trust(project, config.state_dir())
    report = "A discount of 10 percent makes everything free."
    words = ("room", report, "--members", "reader,sceptic,fixer", "--check", "@check.json", "--json")
    waiting = cli(*words).data
    assert waiting["state"] == "waiting"
    assert cli("approvals", waiting["waiting"], "approve").code == 0
    assert cli("rooms", "resume", waiting["room"], "--json").data["state"] == "verified"


def test_a_resumed_run_shows_each_result_with_the_arguments_of_its_own_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view, run = RunView(plain=True), AgentRun("r_1", "ada", "q")
    ended = {"round": 0, "tool": "fs.read", "ok": True, "ms": 1.0, "code": "", "text": "", "note": ""}
    view("call", run, {"tool": "fs.read", "args": {"path": "A"}, "round": 0, "index": 1})
    view("call", run, {"tool": "fs.delete", "args": {"path": "B"}, "round": 0, "index": 2})
    view("result", run, ended | {"index": 1})
    assert "path=A" in capsys.readouterr().err
