"""`code.search` and `fs.search` through the gate: the shape of the answer, the choice of files, the attacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.errors import InvalidArgs
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search.query import EXCLUDED, SearchQuery
from toolgate.workspace.search.search import search

from .planted import stand_in

CONFIG: dict[str, Any] = {
    "version": 1, "default_persona": "reader", "personas": {"reader": {"phase": "observe"}},
    "mounts": {"project": {"path": "."}},
}  # fmt: skip
ENGINES = ["local", "rg"]


async def call(project: Path, tool: str, **args: Any) -> toolgate.Result:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        return await gate.call(tool, args)


async def test_a_match_says_file_line_column_text_and_context(project: Path) -> None:
    (project / "a.py").write_text("one\ntwo\nä Needle x\nfour\nfive\nsix\n")
    result = await call(project, "code.search", pattern="needle")
    assert result.data == {
        "summary": "Found 1 match in 1 file",
        "pattern": "needle",
        "top_files": [{"file": "a.py", "count": 1}],
        "matches_by_file": {"a.py": [3]},
        "matches": [
            {
                "file": "a.py", "line": 3, "column": 3, "matched_text": "Needle", "line_text": "ä Needle x",
                "context_before": ["one", "two"], "context_after": ["four", "five"],
            }
        ],
        "total_matches": 1, "files_matched": 1, "files_searched": 1, "truncated": False,
    }  # fmt: skip
    assert (await call(project, "code/search", pattern="needle", caseSensitive=True)).data["matches"] == []
    bare = await call(project, "code.search", pattern="needle", include_line_numbers=False, context_lines=0)
    assert set(bare.data["matches"][0]) == {
        "file", "matched_text", "line_text", "context_before", "context_after",
    }  # fmt: skip
    (found,) = (await call(project, "fs.search", pattern="needle", path="a.py")).data["matches"]
    assert (found["line"], found["context_before"]) == (3, [])


async def test_the_journal_gets_one_sentence(project: Path) -> None:
    (project / "a.py").write_text("x\nx\n")
    async with toolgate.open(project, CONFIG, "memory") as gate:
        await gate.call("code.search", {"pattern": "x"})
        await gate.call("code.search", {"pattern": "x", "max_matches": 1})
        bodies = [row.body for row in await gate.events() if row.kind == "committed"]
    assert '"Found 2 matches in 1 file"' in bodies[1]
    assert '"Found 2 matches in 1 file, the first 1 shown"' in bodies[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_only_chosen_files_are_searched(project: Path, mounts: Mounts, engine: Any) -> None:
    names = ["a.py", "src/b.py", "src/gen/c.py", "src/d.txt", "node_modules/e.py", "dist/f.py", ".github/g.py",
             ".hidden.py", ".vscode/h.py", "src/#i.py", "src/!j.py", "src/k .py", "src/[l].py"]  # fmt: skip
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("hit\n")

    def files(pattern: str = "", excluded: Any = EXCLUDED) -> set[str]:
        found = search(mounts, SearchQuery("hit"), (), pattern, excluded, engine=engine)
        assert found.files_searched == len(found.matches) or pattern  # rg may look at a few dotfiles more
        return {match.file for match in found.matches}

    shown = set(names) - {"node_modules/e.py", "dist/f.py", ".hidden.py", ".vscode/h.py"}
    assert files() == shown
    assert files("*.txt") == {"src/d.txt"}
    assert files("src/*.py") == {"src/b.py", "src/#i.py", "src/!j.py", "src/k .py", "src/[l].py"}
    assert files("src/**/*.py") == files("src/*.py") | {"src/gen/c.py"}
    assert files("{a,b}.py") == {"a.py", "src/b.py"}
    assert files("#i.py") == {"src/#i.py"}
    assert files("!j.py") == {"src/!j.py"}
    assert files("[#!]?.py") == {"src/#i.py", "src/!j.py"}
    assert files("", ["src"]) == {"a.py", "node_modules/e.py", "dist/f.py", ".github/g.py"}
    assert files("*.py", ["src/gen/**", "node_modules", "#*"]) == {
        "a.py", "src/b.py", "dist/f.py", ".github/g.py", "src/!j.py", "src/k .py", "src/[l].py",
    }  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_blocked_names_links_and_files_with_several_names_never_show(
    project: Path, tmp_path: Path, mounts: Mounts, engine: Any
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "s.txt").write_text("hit outside\n")
    for name in [".env", ".ENV.local", "secrets/a.txt", "id_rsa", "x.pem", "x.KEY", ".git/config", ".toolgate/db",
                 "deep/.aws/credentials", "ｓecrets/b.txt", "credentials.json", "my-private-key.txt"]:  # fmt: skip
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("hit\n")
    (project / "out").symlink_to(outside)
    (project / "out.txt").symlink_to(outside / "s.txt")
    (project / "env.txt").symlink_to(".env")
    os.link(outside / "s.txt", project / "hard.txt")
    os.mkfifo(project / "pipe")
    (project / "good.txt").write_text("hit\n")
    (project / "good-link").symlink_to("good.txt")
    found = search(mounts, SearchQuery("hit"), engine=engine, excluded=())
    assert [match.file for match in found.matches] == ["good.txt"]
    assert found.total_matches == 1


BAD = [
    ({"pattern": ""}, "invalid_args"), ({"pattern": "a\nb"}, "invalid_args"), ({"pattern": "a\0"}, "invalid_args"),
    ({"pattern": "("}, "invalid_args"), ({"pattern": "a(?=b)"}, "invalid_args"), ({"pattern": r"\n"}, "invalid_args"),
    ({"pattern": "\ud800"}, "invalid_args"), ({"pattern": "x", "paths": ["../x"]}, "outside_mount"),
    ({"pattern": "x", "paths": ["/etc"]}, "outside_mount"), ({"pattern": "x", "paths": ["~"]}, "outside_mount"),
    ({"pattern": "x", "paths": ["file:/etc"]}, "outside_mount"), ({"pattern": "x", "paths": ["no"]}, "not_found"),
    ({"pattern": "x", "paths": [".env"]}, "blocked_path"), ({"pattern": "x", "paths": ["to-env"]}, "blocked_path"),
    ({"pattern": "x", "paths": ["out"]}, "outside_mount"), ({"pattern": "x", "file_pattern": "/abs"}, "invalid_args"),
    ({"pattern": "x", "file_pattern": "a\\b"}, "invalid_args"), ({"pattern": "x", "max_matches": 0}, "invalid_args"),
    ({"pattern": "x", "exclude_patterns": ["a["]}, "invalid_args"), ({"pattern": "x", "paths": ["a:b:c"]}, "outside_mount"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "code"), BAD)
async def test_bad_input_is_refused_with_a_code(
    project: Path, tmp_path: Path, args: dict[str, Any], code: str
) -> None:
    (project / "a.txt").write_text("x\n")
    (project / ".env").write_text("x\n")
    (project / "to-env").symlink_to(".env")
    (project / "out").symlink_to(tmp_path)
    result = await call(project, "code.search", **args)
    assert result.error is not None
    assert result.error.code == code
    assert result.error.fix


@pytest.mark.parametrize("pattern", ["-f", "--pre=touch", "--", "-e", "--files", "$(touch x)", "`x`", "; x"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_pattern_is_never_an_option_or_a_command(
    project: Path, mounts: Mounts, pattern: str, engine: Any
) -> None:
    (project / "a.txt").write_text(f"{pattern}\nother\n")
    escaped = "".join(f"\\{char}" if char in "$()" else char for char in pattern)
    found = search(mounts, SearchQuery(escaped), engine="auto" if engine == "local" else engine)
    assert [match.line_text for match in found.matches] == [pattern]
    assert os.listdir(project) == ["a.txt"]


@pytest.mark.parametrize("engine", ["auto", "rg"])
def test_names_that_look_like_options_or_break_lines_are_only_names(
    project: Path, mounts: Mounts, engine: Any
) -> None:
    names = ["--pre=x", "-e", "a\nb.txt", "x:1:y", "back\\slash", "*", "sp ace "]
    for name in names:
        (project / name).write_text("hit\n")
    found = search(mounts, SearchQuery("hit"), engine=engine)
    shown = {"project:x:1:y" if name == "x:1:y" else name for name in names}  # bare, `x` would be a mount
    assert {match.file for match in found.matches} == shown
    from toolgate.core.paths import MountPath

    for name in ("--pre=x", "-e", "*", "sp ace "):
        (match,) = search(mounts, SearchQuery("hit"), [MountPath(f"project:{name}")], engine=engine).matches
        assert match.file == name


@pytest.mark.parametrize("engine", ["auto", "rg"])
def test_broken_utf8_is_shown_with_replacement_and_binary_files_are_passed_over(
    project: Path, mounts: Mounts, engine: Any
) -> None:
    (project / "latin.txt").write_bytes(b"caf\xe9 hit\n")
    (project / "binary").write_bytes(b"hit\n" * 20_000 + b"\0\n")
    (project / "utf16.txt").write_bytes("\ufeffhit me\n".encode("utf-16-le"))
    found = search(mounts, SearchQuery("hit"), engine=engine)
    assert [(match.file, match.line_text) for match in found.matches] == [
        ("latin.txt", "caf\ufffd hit"),
        ("utf16.txt", "hit me"),
    ]


def test_ignore_files_of_the_project_hide_nothing(project: Path, mounts: Mounts) -> None:
    for name in (".gitignore", ".ignore", ".rgignore"):
        (project / name).write_text("*\n")
    (project / "a.txt").write_text("hit\n")
    for engine in ENGINES:
        assert search(mounts, SearchQuery("hit"), engine=engine).total_matches == 1  # type: ignore[arg-type]


def test_a_pattern_that_nobody_can_compile_says_why(project: Path, mounts: Mounts) -> None:
    with pytest.raises(InvalidArgs, match="unclosed group"):
        search(mounts, SearchQuery("(a"))


async def test_a_long_search_says_how_far_it_is(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An rg that goes on until it has been heard of."""
    heard, slow = tmp_path / "heard", tmp_path / "rg"
    os.mkfifo(heard)
    slow.write_text(f"#!/bin/sh\nprintf 'a.txt\\0001\\n'\nread word < {heard}\n")
    slow.chmod(0o755)
    stand_in(monkeypatch, slow)
    monkeypatch.setattr("toolgate.workspace.search.search._known_large", lambda starts: True)
    (project / "a.txt").write_text("x\n")
    told: list[str] = []

    def progress(fraction: float, message: str) -> None:
        told.append(message)
        if len(told) == 1:
            heard.write_text("enough\n")

    async with toolgate.open(project, CONFIG, "memory") as gate:
        result = await gate.call("code.search", {"pattern": "x"}, progress=progress)
    assert result.ok, result.error
    assert told[0].endswith("files that match so far: 1")
    assert told[0].startswith("searching for 0.")
