"""An index or a tree that was written by hand tells nothing about files outside, nor of the repositories below."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from repositories import Repo, data, history, refused
from toolgate.facade import Gate
from toolgate.workspace.git.index import trees_fit

from .forged import EMPTY, Entry, commit, index, tree

NAMES = (
    "src/../../outside/pin", "../outside/pin", "./src/a", "src/./a", "src//a", "/etc/passwd", "src/", "", ".", "..", "src/..",
    ".git/config", "src/.GIT/config", ".Git", "a\0/../../outside/pin", "src/\0",
)  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "pin").write_text("4711\n")
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"src/a": "a\n", "b": "b\n"})
    return repo


@pytest.mark.sample(1, over="version")
@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
async def test_an_index_with_a_name_that_leads_anywhere_is_not_compared_with(
    repo: Repo, name: str, version: int
) -> None:
    index(repo, [("src/b", EMPTY), (name, EMPTY)], version=version)
    async with history(repo.root) as gate:
        assert await refused(gate, "code.diff") == "unavailable"
        assert await refused(gate, "code.diff", paths=["src"]) == "unavailable"
        assert (await gate.call("code.log")).ok, "the history itself can be read"


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_an_index_that_is_as_it_should_be_is_read_in_every_version(repo: Repo, version: int) -> None:
    names: list[Entry] = [("src/a", EMPTY), ("src/" + "long" * 40, EMPTY), ("src/" + "n" * 4200, EMPTY)]
    index(repo, names[: 2 if version == 4 else 3], version=version)
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff")
    assert [(file["path"], file["status"]) for file in found["files"]] == [("b", "deleted")]


@pytest.mark.parametrize("version", ["2", "3", "4"])
async def test_an_index_that_git_wrote_is_read_in_every_version(repo: Repo, version: str) -> None:
    repo.commit("more", {f"dir/{number}/file": "x\n" for number in range(30)} | {"n" * 200: "x\n"})
    repo.write({"dir/7/file": "y\n", "new": "new\n"})
    repo.git("add", "-N", "new")  # an intention has more flags, so that the index is of version 3 at least
    repo.git("update-index", "--index-version", version)
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff")
    assert [file["path"] for file in found["files"]] == ["dir/7/file", "new"]


@pytest.mark.parametrize("extension", [b"link", b"sdir", b"zzzz"])
async def test_an_index_that_means_more_than_it_lists_is_refused(repo: Repo, extension: bytes) -> None:
    index(repo, [("src/a", EMPTY)], extension=extension + (4).to_bytes(4, "big") + b"\0" * 4)
    async with history(repo.root) as gate:
        assert await refused(gate, "code.diff") == "unavailable"


async def test_half_an_index_is_refused(repo: Repo) -> None:
    file = repo.root / ".git" / "index"
    whole = file.read_bytes()
    async with history(repo.root) as gate:
        for size in (0, 5, 12, 40, 90, len(whole) - 30, len(whole) - 3):
            file.write_bytes(whole[:size])
            assert await refused(gate, "code.diff") == "unavailable"


async def test_a_tree_with_names_that_lead_out_says_the_same_whatever_is_there(repo: Repo) -> None:
    pin = repo.root.parent / "outside" / "pin"
    blob = repo.git("hash-object", "-w", str(pin)).strip()
    inner = tree(repo, ("40000", "..", tree(repo, ("40000", "outside", tree(repo, ("100644", "pin", blob))))))
    top = tree(repo, ("40000", "src", tree(repo, ("40000", "..", inner))))
    (repo.root / ".git" / "refs" / "heads" / "main").write_text(commit(repo, top) + "\n")
    answers: list[dict[str, Any]] = []
    async with history(repo.root) as gate:
        for content in ("4711\n", "1234\n", None):
            repo.write({"../outside/pin": content})
            answers.append((await gate.call("code.diff", {"paths": ["src"]})).data)
    assert answers[0] == answers[1] == answers[2]
    assert "4711" not in json.dumps(answers)


def _trapped(repo: Repo, name: str) -> None:
    """A directory whose `.git` leads to a repository that holds up whoever opens it."""
    outside = Repo(repo.root.parent / "elsewhere")
    outside.commit("one", {"a": "a\n"})
    (outside.root / ".git" / "HEAD").unlink()
    os.mkfifo(outside.root / ".git" / "HEAD")
    (repo.root / name).mkdir()
    (repo.root / name / ".git").write_text(f"gitdir: {outside.root}/.git\n")


async def _at_once(gate: Gate) -> dict[str, Any]:
    found = await data(gate, "code.diff")
    return {file["path"]: file["status"] for file in found["files"]}


@pytest.mark.parametrize("oid", ["1" * 40, None], ids=["a commit that moved", "the commit as it was"])
async def test_the_repository_of_a_submodule_is_not_opened(repo: Repo, oid: str | None) -> None:
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},sub")
    repo.seal("a submodule")
    _trapped(repo, "sub")
    if oid:
        repo.git("update-index", "--cacheinfo", f"160000,{oid},sub")
    repo.write({"b": "changed\n"})
    async with history(repo.root) as gate:
        assert await _at_once(gate) == {"b": "modified"}


async def test_a_repository_in_place_of_a_file_is_not_opened(repo: Repo) -> None:
    (repo.root / "b").unlink()
    _trapped(repo, "b")
    async with history(repo.root) as gate:
        assert await _at_once(gate) == {"b": "deleted"}


async def test_a_link_to_a_repository_is_a_link(repo: Repo) -> None:
    (repo.root / "link").symlink_to("nested")
    repo.commit("a link")
    Repo(repo.root / "nested").commit("nested", {"a": "a\n"})
    async with history(repo.root) as gate:
        assert await _at_once(gate) == {}


def _remembered(*nodes: tuple[str, int, int]) -> bytes:
    """A `TREE` of names, numbers of entries and numbers of directories below."""
    return b"".join(
        f"{name}\0{entries} {below}\n".encode() + b"\1" * (20 if entries >= 0 else 0)
        for name, entries, below in nodes
    )


def test_what_an_index_remembers_of_trees_is_believed_only_where_every_number_is_right() -> None:
    names = [b"a", b"d/e/x", b"d/e/y", b"d/z", b"f/x"]
    good = _remembered(("", 5, 2), ("d", 3, 1), ("e", 2, 0), ("f", 1, 0))
    assert trees_fit(good, names, 20)
    assert trees_fit(_remembered(("", -1, 1), ("d", -1, 1), ("e", 2, 0)), names, 20)
    for bad in (
        _remembered(("", 6, 0)), _remembered(("", 5, 1), ("d", 4, 0)), _remembered(("", 5, 1)), _remembered(("", 5, 0), ("d", 3, 0)),
        _remembered(("", 5, 9_999_999)), _remembered(("", 5, 1), ("", 5, 0)), _remembered(("", 5, 1), ("d/e", 2, 0)), _remembered(("d", 3, 0)),
        _remembered(("", -1, 1), ("none", 0, 0)), good[:-1], good + b"\1", b"", b"\0-2 0\n", b"\0" + b"9" * 50 + b" 0\n",
        b"".join(_remembered(("x" if depth else "", -1, 1)) for depth in range(300)) + _remembered(("x", -1, 0)),
    ):  # fmt: skip
        assert not trees_fit(bad, names, 20)


async def test_a_forged_memory_of_trees_is_left_out(repo: Repo) -> None:
    forged = _remembered(("", 2_000_000, 1), ("src", 1_999_999, 0))
    blob = repo.git("rev-parse", "HEAD:b").strip()
    index(repo, [("b", blob), ("src/a", EMPTY)], extension=b"TREE" + len(forged).to_bytes(4, "big") + forged)
    async with history(repo.root) as gate:
        assert await _at_once(gate) == {}
