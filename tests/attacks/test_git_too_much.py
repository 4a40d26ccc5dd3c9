"""Repositories that are made to keep the gate busy: it answers, and others do not wait for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from repositories import Repo, data, history, refused
from toolgate.facade import Gate
from toolgate.workspace.git.commits import read_commit

from .forged import commit

PATIENCE = 1.0
"""Seconds that nobody may be held up; on a busy machine, and far less than any of these took."""


async def _held_up(gate: Gate, tool: str, **args: Any) -> tuple[float, dict[str, Any]]:
    """The longest time that others had to wait meanwhile, and the answer."""
    worst = 0.0

    async def others() -> None:
        nonlocal worst
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            worst = max(worst, time.perf_counter() - before)

    waiting = asyncio.ensure_future(others())
    try:
        found = await data(gate, tool, **args)
    finally:
        waiting.cancel()
    return worst, found


async def test_a_commit_of_millions_of_lines_holds_up_nobody(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a": "a\n"})
    repo.commit("two", {"big": "\n" * 3_000_000})
    repo.commit("three", {"blamed": "\n" * 200_000})
    async with history(repo.root) as gate:
        for tool, args in (
            ("code.show", {"commit": "HEAD~1"}),
            ("code.diff", {"base": "HEAD~2", "compare": "HEAD~1"}),
            ("code.log", {"include_diff": True}),
            ("code.blame", {"path": "blamed"}),
        ):
            worst, found = await _held_up(gate, tool, **args)
            assert worst < PATIENCE, tool
            assert found["truncated"]
        assert found["summary"].startswith("200,000 lines of 200,000 from 1 commit by 1 author")
        assert found["authors"] == {"Ada": 200_000}
        shown = (await data(gate, "code.show", commit="HEAD~1"))["commit"]
        assert shown["stats"] == {"insertions": 3_000_000, "deletions": 0}


async def test_a_diff_that_is_cut_says_how_much_there_is(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    before = "".join(f"line {number}\n" for number in range(60_000))
    repo.commit("one", {"a": before})
    repo.commit(
        "two", {"a": "".join(f"line {number}{'!' * (number % 10 == 5)}\n" for number in range(60_000))}
    )
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD")
    assert found["files"] == [{"path": "a", "status": "modified", "changes": "+6000/-6000", "hunks": 6000}]
    kept = len(found["diffs"][0]["hunks"])
    assert 0 < kept < 1000
    assert found["diffs"][0]["cut"] == f"{6000 - kept:,} hunks more"


async def test_a_strange_author_or_encoding_is_read_at_once(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a": "a\n"})
    tree = repo.git("rev-parse", "HEAD^{tree}").strip()
    strange = [
        commit(repo, tree, author=b"<" * 50_000),
        commit(repo, tree, author=b"A <a@b> " + b"9" * 20_000),
        commit(repo, tree, head=b"encoding punycode\n", message=b"a" * 100_000 + b"-" + b"a" * 100_000),
        commit(repo, tree, head=b"encoding idna\n", message=b"a." * 100_000),
        commit(repo, tree, message=b"m" * 5_000_000),
    ]
    async with history(repo.root) as gate:
        for oid in strange:
            worst, found = await _held_up(gate, "code.show", commit=oid)
            assert worst < PATIENCE
            assert len(found["summary"]) < 1000


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("ISO-8859-1", "Grüße"),
        ("windows-1251", "Привет"),
        ("EUC-JP", "日本"),
        ("GB18030", "中文"),
        ("KOI8-R", "Да"),
    ],
)
def test_encodings_that_people_use_are_read(encoding: str, text: str) -> None:
    raw = f"tree 1\nauthor {text} <a@b> 1 +0000\nencoding {encoding}\n\n{text}\n".encode(encoding)
    found = read_commit("1", raw)
    assert (found.author.name, found.message) == (text, text)


@pytest.mark.parametrize(
    "revision", ["HEAD^{/x}", ":/x", "HEAD^{/((x{1,200}){1,200}){1,200}}", "HEAD~1^{/!-x}"]
)
async def test_a_revision_with_a_pattern_never_reaches_git(tmp_path: Path, revision: str) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("x", {"a": "a\n"})
    async with history(repo.root) as gate:
        assert await refused(gate, "code.show", commit=revision) == "invalid_args"
        assert await refused(gate, "code.diff", base=revision) == "invalid_args"


@pytest.mark.parametrize("deep", [False, True], ids=["side by side", "one in another"])
@pytest.mark.parametrize("files", [False, True], ids=["directories", "files"])
async def test_more_refs_than_can_be_looked_at_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deep: bool, files: bool
) -> None:
    monkeypatch.setattr("toolgate.workspace.git.store.MAX_NAMES", 60)
    repo = Repo(tmp_path / "project")
    head = repo.commit("x", {"a": "a\n"})
    async with history(repo.root) as gate:
        assert (await gate.call("code.log")).ok
        for number in range(70):
            place = (
                repo.root / ".git" / "refs" / "heads" / (f"{number % 7}/{number}" if deep else f"n{number}")
            )
            place.parent.mkdir(exist_ok=True)
            place.write_text(head) if files else place.mkdir()
        assert await refused(gate, "code.log") == "unavailable"
    async with history(repo.root) as gate:
        assert await refused(gate, "code.log") == "unavailable"
