"""`toolgate scan`, and the question that shows what was found, exactly as the terminal shows it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from .driving import Cli, Terminal, finish, start
from .test_patch_question import MENU, without_moments

GOLDEN = Path(__file__).with_name("golden") / "scan_question.txt"
PAGE = Path(__file__).parents[3] / "docs" / "scan.md"
AWS = "AK" + "IA" + "Q7RZ3LM5XK2WB6TJ"
"""Put together here, so that no file of the repository holds one."""


def test_files_and_directories_are_scanned_and_findings_end_with_one(cli: Cli, project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text(f"x = 1\nkey = '{AWS}'\n")
    (project / "src" / ".env").write_text(f"KEY={AWS}\n")
    done = cli("scan", "src", "hours.md")
    assert done.code == 1
    assert "src/a.py:2:8" in done.out
    assert "1 finding in 2 files" in done.out
    assert AWS not in done.out
    told = cli("scan", "src", "--json")
    assert told.code == 1
    assert [one["rule"] for one in told.data["findings"]] == ["aws-access-key"]
    assert AWS not in told.out


def test_findings_are_in_the_order_of_paths_lines_and_columns(cli: Cli, project: Path) -> None:
    for name in ("b.py", "a.py", "c/d.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(f"\u202e\n\nkey = '{AWS}' \u202e\n")
    found = cli("scan", "c", "b.py", "a.py", "--json").data["findings"]
    places = [(one["path"], one["line"], one["column"]) for one in found]
    assert places == sorted(places)
    assert len(places) == 9
    shown = [line.split() for line in cli("scan", "c", "b.py", "a.py").out.splitlines()[1:10]]
    assert [words[2] for words in shown] == [f"{path}:{line}:{column}" for path, line, column in places]


def test_a_clean_file_ends_with_zero_and_what_cannot_be_read_is_said(cli: Cli, project: Path) -> None:
    assert cli("scan", "hours.md").code == 0
    missing = cli("scan", "nothing.md")
    assert missing.code == 1
    assert "nothing.md" in missing.err
    assert cli("scan", "../outside").code == 3
    (project / ".env").write_text(AWS)
    assert cli("scan", ".env").code == 3


def test_a_path_is_taken_from_where_the_person_is(cli: Cli, project: Path) -> None:
    deep = project / "src" / "deep"
    deep.mkdir(parents=True)
    (project / "src" / "a.py").write_text("x = 1\n")
    assert cli("scan", str(project.resolve() / "src" / "a.py")).out == "nothing found in 1 file\n"
    assert finish(start("scan", "../a.py", "../../hours.md", cwd=deep)).out == "nothing found in 2 files\n"
    assert finish(start("scan", "src/a.py", "--root", str(project), cwd=deep)).code == 0
    assert finish(start("scan", "src/a.py", cwd=deep)).code == 1
    assert finish(start("scan", "../../../outside", cwd=deep)).code == 3
    assert cli("scan", "/etc/hostname").code == 3


def test_a_place_too_far_into_a_line_is_named_without_a_column(cli: Cli, project: Path) -> None:
    (project / "far.js").write_text("x" * 20_000 + f"\nlong = '{'y' * 20_000}'; key = '{AWS}'\n")
    (row,) = [line.split() for line in cli("scan", "far.js").out.splitlines()[1:-1]]
    assert row[2] == "far.js:2"


def test_the_question_shows_what_was_found_as_the_page_prints_it(
    terminal: Callable[..., Terminal], cli: Cli, project: Path
) -> None:
    args = {"path": "hours.md", "content": f"9 to 18\nkey = {AWS}\n"}
    screen = terminal("call", "fs.write", json.dumps(args))
    whole = without_moments(screen.expect(MENU))
    shown = whole.replace(AWS, "AKIA…")  # no page of ours holds a key
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        old = GOLDEN.read_text() if GOLDEN.exists() else "GOLDEN\n"
        PAGE.write_text(PAGE.read_text().replace(old, shown))
        GOLDEN.write_text(shown)
    assert f"+key = {AWS}" in whole, "it may be anything, so it is shown"
    assert shown == GOLDEN.read_text()
    assert shown in PAGE.read_text()
    (question,) = cli("approvals", "--json").data
    assert question["findings"][0]["rule"] == "aws-access-key"
    page = cli("approvals", question["id"]).out
    assert "secret: aws-access-key at hours.md:2:7" in page
    assert AWS in page
    screen.type("a")
    code, rest = screen.end()
    assert code == 0, rest
    assert AWS in (project / "hours.md").read_text()
    assert AWS not in cli("ledger", "export").out
