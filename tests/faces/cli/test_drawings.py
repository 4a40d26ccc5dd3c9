"""`toolgate call code.… ` prints as a native tool would: at a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import toolgate
from repositories import CONFIG, Repo
from toolgate.core.result import Result
from toolgate.kits.terminal import speech
from toolgate.kits.terminal.progress import Ticker
from toolgate.kits.terminal.results import draw, show

from .driving import Cli

GOLDEN = Path(__file__).parent / "golden"
ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \u202eevil \x9b1m \x08\x08"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("code.search", {"pattern": "total", "context_lines": 1}),
    ("code.read", {"path": "shop.py", "start_line": 2, "max_lines": 3}),
    ("code.list", {"pattern": "*.py"}),
    ("code.outline", {"path": "shop.py"}),
    ("code.log", {"limit": 1}),
    ("code.diff", {"base": "HEAD~1"}),
    ("code.show", {"commit": "HEAD"}),
    ("code.blame", {"path": "shop.py", "end_line": 3}),
    ("fs.search", {"pattern": "total", "path": "shop.py"}),
    ("fs.list", {}),
    ("fs.read", {"path": "shop.py", "ranges": [[1, 1], [4, 5]]}),
    ("fs.find", {"base": ".", "pattern": "*.py"}),
]
SHOP = "class Shop:\n\tdef total(self):\n\t\treturn 1\n\ndef main():\n    print(Shop().total())\n"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "mode", speech.Mode())


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    repo = Repo(tmp_path / "shop")
    repo.commit(
        "Open the shop\n\nWith a till.", {"shop.py": SHOP.replace("1", "0"), "lib/till.py": "total = 0\n"}
    )
    repo.commit("Count", {"shop.py": SHOP, "new.py": "total\n", "lib/till.py": None})
    for file in repo.root.rglob("*.py"):
        os.utime(file, (1_750_000_000, 1_750_000_000))
    return repo


async def results(repo: Repo, calls: list[tuple[str, dict[str, Any]]]) -> list[Result]:
    async with toolgate.open(repo.root, CONFIG, "memory") as gate:
        found = [await gate.call(tool, args) for tool, args in calls]
    assert [each.error for each in found] == [None] * len(calls)
    return found


def shown(monkeypatch: pytest.MonkeyPatch, result: Result, *, person: bool = False) -> tuple[str, str]:
    """What `toolgate call` prints of a result, before a terminal or into a pipe."""
    out, err = (Screen(), Screen()) if person else (io.StringIO(), io.StringIO())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        assert show(result) == 0
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("person", [False, True], ids=["pipe", "terminal"])
async def test_each_tool_prints_what_is_kept(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, person: bool
) -> None:
    parts = []
    for (tool, args), result in zip(CALLS, await results(repo, CALLS), strict=True):
        out, _ = shown(monkeypatch, result, person=person)
        parts.append(f"$ toolgate call {tool} '{json.dumps(args)}'\n{out}")
    kept = GOLDEN / f"drawings_{'terminal' if person else 'pipe'}.txt"
    text = "\n".join(parts).replace("\x1b", "⎋")
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN") == "1":
        kept.write_text(text)
    assert text == kept.read_text()


async def test_no_colour_without_a_terminal_or_where_it_is_not_wanted(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for result in await results(repo, CALLS):
        assert "\x1b" not in "".join(shown(monkeypatch, result))
        with monkeypatch.context() as patch:
            patch.setenv("NO_COLOR", "1")
            text, _ = shown(monkeypatch, result, person=True)
        assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-9])m", text), result.tool


def test_the_command_prints_lines_or_one_json_result(cli: Cli, project: Path) -> None:
    (project / "a.py").write_text("x = 1\n")
    assert cli("call", "code.search", '{"pattern": "x"}', "-p", "reader").out.startswith("a.py:1:x = 1\n")
    done = cli("call", "code.search", '{"pattern": "x = 1"}', "-p", "reader", "--json")
    assert (done.data["matches_by_file"], done.err) == ({"a.py": [1]}, "")


@pytest.mark.parametrize("person", [False, True], ids=["pipe", "terminal"])
async def test_no_file_name_commit_or_content_can_speak_to_the_terminal(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, person: bool
) -> None:
    content = f"def evil(): pass # {ESCAPES}\n"
    milder = "def evil(): pass # \x1b[31mred\x1b[0m \x1b[2J \u202eevil\n"  # what still counts as text
    name = "evil\x1b[31m\u202e.py"
    eve = ("-c", f"user.name=Eve {ESCAPES[:8]}", "-c", "user.email=e@example.org")
    repo.write({name: content, "evil.py": milder})
    repo.git("add", ".")
    repo.git(*eve, "commit", "-qm", f"evil {ESCAPES}\n\nbody {ESCAPES}")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("code.search", {"pattern": "evil"}), ("fs.search", {"pattern": "evil"}), ("code.read", {"path": "evil.py"}),
        ("code.list", {}), ("fs.list", {"details": True}), ("fs.read", {"path": "evil.py"}),
        ("code.log", {"include_diff": True}), ("code.show", {"commit": "HEAD"}), ("code.diff", {"base": "HEAD~1"}),
        ("code.diff", {"base": "HEAD~1", "view": "split"}), ("code.blame", {"path": "evil.py"}),
        ("fs.find", {"base": ".", "pattern": "*"}),
    ]  # fmt: skip
    for result in await results(repo, calls):
        out, err = shown(monkeypatch, result, person=person)
        assert "evil" in out, result.tool
        assert "⟨U+" in out, result.tool
        clean = re.sub(r"\x1b\[[0-9;]*m", "", out + err) if person else out + err
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", clean), result.tool
        assert "\x1b[31mred" not in out


async def test_what_was_cut_is_said_beside_the_result(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write({"long.txt": "line\n" * 50})
    read, found = await results(
        repo,
        [("code.read", {"path": "long.txt", "max_lines": 3}),
         ("code.search", {"pattern": "line", "max_matches": 1, "context_lines": 0})],
    )  # fmt: skip
    assert shown(monkeypatch, read) == ("line\nline\nline\n", "… more: go on with start_line=4\n")
    out, err = shown(monkeypatch, found)
    assert out == "long.txt:1:line\n"
    assert "max_matches" in err


async def test_a_search_shows_each_line_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{'hit' if number in (2, 4, 12) else 'no'} {number}\n" for number in range(1, 15)]
    repo.write({"a.txt": "".join(lines)})
    whole, bare = await results(
        repo,
        [("code.search", {"pattern": "hit"}),
         ("code.search", {"pattern": "hit", "include_line_numbers": False, "context_lines": 0})],
    )  # fmt: skip
    assert shown(monkeypatch, whole)[0].splitlines() == [
        "a.txt-1-no 1", "a.txt:2:hit 2", "a.txt-3-no 3", "a.txt:4:hit 4", "a.txt-5-no 5", "a.txt-6-no 6", "--",
        "a.txt-10-no 10", "a.txt-11-no 11", "a.txt:12:hit 12", "a.txt-13-no 13", "a.txt-14-no 14",
    ]  # fmt: skip
    assert shown(monkeypatch, bare)[0] == "a.txt:hit 2\na.txt:hit 4\na.txt:hit 12\n"


async def test_a_diff_in_a_pipe_can_be_applied(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo.root / "run").write_text("go\n")
    (repo.root / "run").chmod(0o755)
    repo.git("mv", "new.py", "newer.py")
    (repo.root / "shop.py").chmod(0o755)
    repo.commit("more")
    (diff,) = await results(repo, [("code.diff", {"base": "HEAD~2", "compare": "HEAD"})])
    repo.git("checkout", "-q", "HEAD~2")
    repo.git("apply", "--index", stdin=shown(monkeypatch, diff)[0].encode())
    assert repo.git("diff", "--cached", "main") == ""


UNUSUAL = "#\ufeff a\u00a0b \u3000 \u2764\ufe0f \U0001f468\u200d\U0001f469 می\u200cخواهم \u2028 x\fy\rz"


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
async def test_a_diff_in_a_pipe_can_be_applied_whatever_the_text(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    name = "a\u00a0b\u200cc.po"
    for text in ("one", "two"):
        (repo.root / name).write_bytes(f"\ufefffirst\r\n{UNUSUAL}\n{text} {UNUSUAL}{end}".encode())
        repo.commit(text)
    for tool, args in (
        ("code.diff", {"base": "HEAD~1", "compare": "HEAD"}),
        ("code.show", {"commit": "HEAD"}),
    ):
        (diff,) = await results(repo, [(tool, args)])
        repo.git("apply", "-R", "--check", stdin=shown(monkeypatch, diff)[0].encode())


async def test_a_diff_at_a_terminal_shows_line_ends_and_leaves_ordinary_text_alone(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    (repo.root / "a.txt").write_bytes("a\r\nb\u00a0c \u3000 \u2764\ufe0f\n".encode())
    repo.commit("more")
    (diff,) = await results(repo, [("code.diff", {"base": "HEAD~1", "compare": "HEAD"})])
    out, _ = shown(monkeypatch, diff, person=True)
    assert "+a⟨U+000D⟩" in out
    assert "+b\u00a0c \u3000 \u2764\ufe0f" in out


async def test_binary_files_are_named_as_git_names_them(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (b"a\0", b"b\0"):
        (repo.root / "pixel.png").write_bytes(content)
        repo.commit("draw")
    pairs = (
        {"base": "HEAD~1"},
        {"base": "HEAD~2", "compare": "HEAD~1"},
        {"base": "HEAD~1", "compare": "HEAD~2"},
    )
    drawn = [
        shown(monkeypatch, each)[0] for each in await results(repo, [("code.diff", pair) for pair in pairs])
    ]
    assert [text.splitlines()[-1] for text in drawn] == [
        "Binary files a/pixel.png and b/pixel.png differ",
        "Binary files /dev/null and b/pixel.png differ",
        "Binary files a/pixel.png and /dev/null differ",
    ]


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "a\nb", "a\r\nb\u00a0\f", "", "\n\n", UNUSUAL])
async def test_a_read_in_a_pipe_is_the_text_itself(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (repo.root / "a.txt").write_bytes(text.encode())
    whole, parts = await results(
        repo,
        [("fs.read", {"path": "a.txt"}), ("fs.read", {"path": "a.txt", "ranges": [[1, 1], [2, 9]]})],
    )
    assert shown(monkeypatch, whole)[0] == text
    first, end, rest = text.partition("\n")
    assert shown(monkeypatch, parts)[0] == f"{first}{end or chr(10) * bool(text)}--\n{rest}"


async def test_details_that_were_asked_for_are_given_in_a_pipe_too(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (listed,) = await results(repo, [("fs.list", {"details": True})])
    lines = [line.split("\t") for line in shown(monkeypatch, listed)[0].splitlines()]
    assert [(kind, name) for kind, _, _, name in lines] == [
        ("directory", "lib/"),
        ("file", "new.py"),
        ("file", "shop.py"),
    ]
    assert lines[1][1:3] == ["6", "2025-06-15T15:06:40+00:00"]


@pytest.mark.parametrize("columns", [40, 60, 101, 180])
async def test_rows_of_a_split_diff_fill_the_terminal_and_are_never_folded(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    repo.commit("Long", {"shop.py": SHOP + "\t日本語" * 40 + "\n"})
    monkeypatch.setenv("COLUMNS", str(columns))
    (split,) = await results(repo, [("code.diff", {"base": "HEAD~2", "view": "split"})])
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(monkeypatch, split, person=True)[0])
    rows = {cell_len(line) for line in text.splitlines() if "│" in line}
    assert rows == {columns - (columns + 1) % 2}


def test_what_lost_its_shape_is_shown_as_data() -> None:
    assert not draw("code.search", {"matches": ["… [3 more items]"]})
    assert not draw("system.ping", {})


def test_long_calls_say_how_far_they_are_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(stream: io.StringIO) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        with Ticker() as ticker:
            ticker._next = 0.0
            ticker(0.5, "evil \x1b[2J")
            ticker._next = 0.0
        ticker(0.9, "too late")
        return stream.getvalue()

    assert told(io.StringIO()) == ""
    assert told(Screen()) == "\r\x1b[2K50% evil ⟨U+001B⟩[2J\r\x1b[2K"
    monkeypatch.setattr(speech.mode, "json", True)
    assert told(Screen()) == ""


def test_quick_calls_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Ticker() as ticker:
        ticker(0.0, "hardly begun")
    assert screen.getvalue() == ""


def test_a_change_without_findings_has_no_row_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    show(Result(True, "garden.add", {"created": ["garden:users/me/notes.md"], "user": "me", "findings": []}))
    shown = capsys.readouterr().out
    assert "notes.md" in shown
    assert "findings" not in shown
