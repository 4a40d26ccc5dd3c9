"""Tables and previews: a pipe gets every value whole, a terminal what its width can hold."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from toolgate.faces.cli.main import main
from toolgate.kits.terminal import speech
from toolgate.kits.terminal.speech import ENDLESS

from .driving import Cli

AWS = "AK" + "IA" + "Q7RZ3LM5XK2WB6TJ"
LONG = "a" * 60 + "/" + "b" * 60 + ".py"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(item: object, width: int = ENDLESS) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, height=25).print(item)
    return file.getvalue().splitlines()


@pytest.fixture
def long_file(project: Path) -> Path:
    path = project / LONG
    path.parent.mkdir()
    path.write_text(f"one = 1\nkey = '{AWS}'\n")
    return path


def test_a_row_in_a_pipe_is_one_line_without_blanks_at_its_end() -> None:
    made = speech.table(
        ["name|whole", "n|right", "what|cut", "more"], [["a", 5, "x" * 300, ""], ["bc", 12, "日本", "z"]]
    )
    assert drawn(made) == [
        f"name   n  {'what':<300}  more",
        f"a      5  {'x' * 300}",
        f"bc    12  日本{' ' * 296}  z",
    ]


def test_a_value_of_several_lines_stays_in_its_column() -> None:
    made = speech.pairs([("finding", Text("one\n\tfix: two")), ("b", "three")])
    assert drawn(made) == ["finding  one", "         \tfix: two", "b        three"]
    assert drawn(speech.table(["a", "b"], [], title="none")) == ["none", "a  b"]


def test_a_narrow_terminal_says_where_it_cut() -> None:
    made = speech.table(["name|whole", "other|whole"], [["n" * 30, "o" * 30]])
    assert [line.count("…") for line in drawn(made, 40)] == [0, 2]
    assert not any("…" in line for line in drawn(made, 80))


def test_hashes_places_and_tools_are_whole_in_a_pipe(cli: Cli, long_file: Path) -> None:
    hashed = cli("call", "fs.hash", "-a", f"path={LONG}").out.splitlines()
    assert [line.split()[0] for line in hashed] == ["path", "hash", "raw_hash", "canonical", "size"]
    assert f"{LONG}:2:8" in cli("scan", ".").out
    listed = cli("tools").out.splitlines()
    assert len(listed) == 1 + len(cli("tools", "--json").data)
    assert [line for line in listed if line != line.rstrip()] == []


def test_an_undo_in_a_pipe_is_shown_as_it_is(cli: Cli, project: Path) -> None:
    line = "\tlong " + "word " * 40 + "end"
    args = json.dumps({"path": "scratch:new.md", "content": f"{line}\n"})
    event = cli("call", "fs.write", args, "-p", "builder", "--json").json["meta"]["event_id"]
    assert f"  -{line}\n" in cli("undo", str(event), "--dry-run").out


def test_artifacts_are_readable_at_eighty_columns_and_whole_in_a_pipe(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"scratch:{'deep/' * 20}file.md"
    written = cli(
        "call", "fs.write", json.dumps({"path": name, "content": "hi\n"}), "-p", "builder", "--json"
    ).json
    event, after = written["meta"]["event_id"], written["data"]["new_hash"].removeprefix("sha256:")[:12]
    head, *_, row = cli("artifacts").out.splitlines()
    assert head.split() == ["file", "what", "before", "after", "size", "now", "events"]
    assert row.split() == [name, "create", after, "3", "intact", str(event)]
    screen = Screen()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["artifacts"]) == 0
    lines = [Text.from_ansi(line).plain for line in screen.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert name in "".join(lines)
    assert f"  create  - → {after}  3 bytes  intact  event {event}" in lines
