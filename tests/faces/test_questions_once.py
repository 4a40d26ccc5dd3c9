"""A question says each thing once, in every channel: a program, a diff, what is left empty, what can be undone."""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.effects import Effects
from toolgate.core.ports import Question
from toolgate.faces.cli.ledger_pages import gist
from toolgate.faces.console.calls import object_of
from toolgate.faces.console.question import deed
from toolgate.faces.mcp import question as form
from toolgate.features.programs.arguments import ProgramRequest, preview
from toolgate.kits import pieces
from toolgate.kits.terminal import question as terminal
from toolgate.kits.words import program_in_words, undo_in_words
from toolgate.storage.port import Filter

from .channels import channels
from .http.serving import house

GOLDEN = Path(__file__).with_name("golden")
SCRIPT = '# counts lines\nset -e\nfor name in src/*.py; do\n  wc -l "$name"\ndone\n'
ARGS: dict[str, Any] = {
    "argv": None, "script": SCRIPT, "stdin": "", "timeout": 30.0, "timeout_ms": None, "network": None, "secrets": None,
    "project": "read", "files": None, "packages": None, "background": False,
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "helper",
    "personas": {"helper": {"phase": "collaborate"}},
    "policy": {"rules": [{"name": "asks", "persona": "*", "tools": ["exec.*", "fs.*"], "decision": "ask"}]},
}


READS = Effects(("project",), ("process",))


def asked(args: dict[str, Any] = ARGS, effects: Effects = READS, **more: Any) -> Question:
    shown = preview(ProgramRequest.of("shell", args), ())
    known = Question(
        "q_1", "d", "exec.shell", args, "ada", shown, effects, "programs that see the project ask", "phase:contribute", 0,
        4_000_000_000_000_000, False, repeats=("code", "script"),
    )  # fmt: skip
    return replace(known, **more)


def same_as(name: str, shown: str) -> None:
    file = GOLDEN / name
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        file.write_text(shown)
    assert shown == file.read_text()


def test_the_form_of_a_client_is_the_expected_one() -> None:
    same_as("program_form.txt", form.text(asked()) + "\n")


def test_the_page_of_a_terminal_is_the_expected_one() -> None:
    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO(), highlight=False)
    terminal.print_page(console, asked())
    shown = re.sub(r" +\n", "\n", re.sub(r"\(in \d+ days\)", "(in N days)", console.export_text()))
    same_as("program_page.txt", shown)


async def test_a_program_and_a_diff_stand_once_in_every_channel(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    async with house(tmp_path / "p", CONFIG) as here, here.browser() as browser:
        for tool, args, line in (
            ("exec.shell", {"script": SCRIPT}, "for name in src/*.py; do"),
            ("exec.python", {"code": "first = 1\nsecond_line = 2\n"}, "second_line = 2"),
            ("fs.write", {"path": "a.txt", "content": "first\nsecond_line\n"}, "second_line"),
        ):
            await here.gate.call(tool, args, wait=False)
            (question,) = await here.gate.approvals()
            for name, seen in (await channels(here, browser, question)).items():
                if name != "http":  # for programs, which take both as they are
                    assert seen.text.count(line) == 1, (tool, name)
                    assert seen.approvable
            await here.gate.answer(question.id, "deny")


def test_a_text_that_only_looks_like_the_program_is_not_left_out() -> None:
    """Of what stands beside the arguments nothing is left out but one of them, to the last letter."""
    honest = asked()
    assert "line by line above" in pieces.preview_beside_arguments(honest)
    longer = preview(ProgramRequest.of("shell", ARGS | {"script": SCRIPT + "rm x\n"}), ())
    assert "rm x" in pieces.preview_beside_arguments(replace(honest, preview=longer))
    other = preview(ProgramRequest.of("shell", ARGS | {"script": SCRIPT.replace("wc", "rm")}), ())
    assert pieces.preview_beside_arguments(replace(honest, preview=other)) == other


@pytest.mark.parametrize("value", [0, False, 0.0, " ", [None], {"": ""}])
def test_what_is_not_empty_is_never_left_out(value: Any) -> None:
    shown = pieces.arguments(asked({"script": "x", "odd": value}))
    assert '  "odd": ' in shown
    assert "left empty" not in shown


def test_what_is_left_empty_is_named_on_one_line() -> None:
    shown = pieces.arguments(asked())
    assert '(left empty: argv, timeout_ms, network, secrets, files, packages = null; stdin = "")\n}' in shown
    hostile = pieces.arguments(asked({"script": "x", 'a), "b': "", "c\u0430": {}}))
    assert '(left empty: "a), \\"b" = ""; "c\u0430" = {})' in hostile


def test_what_is_left_empty_is_told_apart_in_every_channel() -> None:
    """No list and an empty one mean different things to a tool: one leaves the tags, the other takes them away."""
    for draw in (form.text, pieces.arguments):
        told = {draw(asked({"script": "x", "odd": value})) for value in (None, "", [], {})}
        assert len(told) == 4


TITLES = [
    ({"script": SCRIPT}, "run # counts lines … (5 lines)"),
    ({"code": "\n\nprint(1)\n"}, "run print(1)"),
    ({"code": "#!/usr/bin/env python\nimport os\n"}, "run import os … (2 lines)"),
    ({"code": "x = 1\n", "argv": ["ls"]}, ""), ({"sql": "select 1", "script": "drop()"}, ""),
    ({"argv": ["pytest", "-q", "a b"]}, "run pytest -q 'a b'"),
    ({"argv": ["x" * 200]}, f"run {'x' * 79}…"),
    ({"path": "a"}, ""), ({"argv": []}, ""), ({"code": ""}, ""), ({"code": 3}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("args", "title"), TITLES)
def test_the_title_of_a_program_is_its_first_line(args: dict[str, Any], title: str) -> None:
    assert program_in_words(args) == title
    assert deed("exec.shell", [], args) == (title or "call exec.shell")
    if title:
        assert object_of({"args": args}) == title.removeprefix("run ")
        assert title in terminal.sentence(asked({"timeout": 3, **args}))


async def test_history_and_activity_show_the_first_line_too(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory") as gate:
        await gate.call("exec.python", {"code": "total = 3\nprint(total)\n"}, wait=False)
        (row,) = await gate.events(Filter(kinds=("asked",)))
        assert gist(row).startswith("run total = 3 … (2 lines): ")


UNDO = [
    (Effects(), {}, "nothing to undo"),
    (Effects(("project",), ("process",)), {}, "nothing to undo"),
    (Effects(("internet",), ("process", "internet")), {}, "no"),
    (Effects((), ("outside",)), {}, "no"),
    (Effects((), ("project",)), {"undoable": True}, "yes"),
    (Effects((), ("project",)), {"unkept": "too large"}, "no: too large"),
    (Effects((), ("process",)), {"unkept": "too large"}, "no: too large"),
]  # fmt: skip


@pytest.mark.parametrize(("effects", "more", "said"), UNDO)
def test_what_changes_nothing_has_nothing_to_undo(effects: Effects, more: dict[str, Any], said: str) -> None:
    assert undo_in_words(asked(effects=effects, **more)) == said
    loud = said.replace("no", "NO", 1) if said.startswith("no") and not said.startswith("nothing") else said
    assert f"can be undone: {loud}" in form.text(asked(effects=effects, **more))


async def test_the_cap_on_open_questions_is_25_and_its_error_names_the_setting(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, "memory") as gate:
        for number in range(25):
            assert (
                await gate.call("fs.write", {"path": f"{number}.txt", "content": "x"}, wait=False)
            ).error.code == "pending"  # type: ignore[union-attr]
        full = await gate.call("fs.write", {"path": "last.txt", "content": "x"}, wait=False)
        assert full.error is not None
        assert full.error.code == "rate_limited"
        assert "consent.max_open is 25" in full.error.message
        assert "consent.max_open" in full.error.fix
