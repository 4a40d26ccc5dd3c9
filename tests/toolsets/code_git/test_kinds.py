"""Every kind of repository there is, and places where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from repositories import CONFIG, Repo, data, history, refused
from toolgate.workspace.git import program
from toolgate.workspace.git.history import DIFF_SECONDS, LOG_SECONDS

TOOLS = (
    ("code.diff", {}),
    ("code.log", {}),
    ("code.show", {"commit": "HEAD"}),
    ("code.blame", {"path": "a"}),
)


@pytest.fixture
def origin(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "origin")
    for number in range(5):
        repo.commit(f"commit {number}", {"a": f"{number}\n" * 3, "b": "b\n" * number})
    return repo


async def test_no_repository_is_not_found_and_parents_are_not_searched(origin: Repo) -> None:
    below = origin.root / "below"
    below.mkdir()
    async with history(below) as gate:
        for tool, args in TOOLS:
            assert await refused(gate, tool, **args) == "not_found"


async def test_without_git_everything_says_so(
    origin: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:.")
    async with history(origin.root) as gate:
        for tool, args in TOOLS:
            assert await refused(gate, tool, **args) == "unavailable"


async def test_a_git_that_is_too_old_is_named(
    origin: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.20.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    async with history(origin.root) as gate:
        result = await gate.call("code.log")
        assert result.error is not None
        assert result.error.message == "git 2.20 is too old"


async def test_a_shallow_clone_ends_where_it_ends(origin: Repo, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    origin.git("clone", "-q", "--depth=2", f"file://{origin.root}", str(shallow))
    async with history(shallow) as gate:
        assert len((await data(gate, "code.log"))["commits"]) == 2
        lines = (await data(gate, "code.blame", path="b"))["lines"]
        assert lines[0]["commit"]["boundary"] is True
        assert await refused(gate, "code.show", commit="HEAD~2") == "not_found"
        assert (await data(gate, "code.show", commit="HEAD~1"))["commit"]["files_changed"] == ["a", "b"]


async def test_a_detached_head_is_where_history_starts(origin: Repo) -> None:
    origin.git("checkout", "-q", "--detach", "HEAD~2")
    async with history(origin.root) as gate:
        assert len((await data(gate, "code.log"))["commits"]) == 3
        assert (await data(gate, "code.diff", base="main", compare="HEAD"))["summary"] == "2 files: +3/-5"


async def test_a_bare_repository_has_history_but_no_working_directory(origin: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    origin.git("clone", "-q", "--bare", "--no-local", str(origin.root), str(bare))
    async with history(bare) as gate:
        assert len((await data(gate, "code.log"))["commits"]) == 5
        assert len((await data(gate, "code.blame", path="b"))["lines"]) == 4
        assert (await data(gate, "code.diff", base="HEAD~1", compare="HEAD"))["total_changes"][
            "files_changed"
        ] == 2
        assert await refused(gate, "code.diff") == "invalid_args"


async def test_a_branch_without_commits_has_no_history(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    async with history(repo.root) as gate:
        assert (await data(gate, "code.log"))["summary"] == "no commits yet"
        assert await refused(gate, "code.show", commit="HEAD") == "not_found"
        repo.commit("first", {"a": "a\n"})
        assert len((await data(gate, "code.log"))["commits"]) == 1


async def test_ids_of_sha256_are_read_too(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project", "--object-format=sha256")
    repo.commit("first", {"a": "a\n"})
    repo.commit("second", {"a": "b\n"})
    repo.write({"a": "c\n"})
    async with history(repo.root) as gate:
        for tool, args in TOOLS:
            assert await data(gate, tool, **args)
        assert len((await data(gate, "code.show", commit="HEAD~1"))["commit"]["hash"]) == 64


async def test_a_linked_working_directory_and_a_submodule_lead_elsewhere(
    origin: Repo, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    origin.git("worktree", "add", "-q", str(linked))
    async with history(linked) as gate:
        for tool, args in TOOLS:
            assert await refused(gate, tool, **args) == "unavailable"
    parent = Repo(tmp_path / "parent")
    parent.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin.root), "sub")
    parent.commit("with a submodule", {"x": "x\n"})
    async with history(parent.root) as gate:
        [module] = [
            file
            for file in (await data(gate, "code.show", commit="HEAD"))["commit"]["diff"]
            if file["path"] == "sub"
        ]
        assert module["submodule"] is True
        assert module["hunks"][0]["lines"][0]["content"] == f"Subproject commit {origin.head()}"
        assert await refused(gate, "code.log", path="sub/a") == "unavailable"
        assert (await data(gate, "code.diff"))["files"] == []


async def test_a_repository_within_the_project_is_found_by_its_paths(origin: Repo) -> None:
    inner = Repo(origin.root / "vendor" / "inner")
    inner.commit("inner", {"x": "x\n", ".env": "no\n"})
    async with history(origin.root) as gate:
        [commit] = (await data(gate, "code.log", path="vendor/inner/x"))["commits"]
        assert commit["files_changed"] == ["x"]
        assert "left_out" not in commit
        [commit] = (await data(gate, "code.log", path="vendor/inner"))["commits"]
        assert commit["left_out"] == "1 file that may not be shown"
        assert (await data(gate, "code.blame", path="vendor/inner/x"))["total_lines"] == 1
        assert await refused(gate, "code.diff", paths=["a", "vendor/inner/x"]) == "invalid_args"


async def test_a_mount_hides_what_its_rules_hide_and_shows_what_they_open(origin: Repo) -> None:
    origin.commit("more", {"internal/x": "hidden\n", ".env.example": "open\n"})
    mounts = {"project": {"path": ".", "hidden": ["internal/**"], "unblock": [".env.example"]}}
    async with history(origin.root, CONFIG | {"mounts": mounts}) as gate:
        commit = (await data(gate, "code.show", commit="HEAD"))["commit"]
        assert commit["files_changed"] == [".env.example"]
        assert commit["left_out"] == "1 file that may not be shown"


def test_git_has_the_time_that_is_promised_and_no_more() -> None:
    assert (DIFF_SECONDS, LOG_SECONDS) == (5.0, 10.0)


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    origin: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow" / "git"
    slow.parent.mkdir()
    pids = tmp_path / "pids"
    slow.write_text(
        f"#!/bin/sh\ncase $1 in version) echo git version 2.40.0;; *) sleep 300 & echo $! $$ >> {pids}; wait;; esac\n"
    )
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent))
    config = CONFIG | {"timeouts": {"tool": {"code.log": 3}}}  # a busy machine takes a second to start git
    async with history(origin.root, config) as gate:
        assert await refused(gate, "code.log") == "timeout"
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1]


def test_only_an_absolute_place_is_searched_for_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".::{Path('/usr/bin')}")
    assert program.find_git() == "/usr/bin/git"


async def test_a_shallow_clone_that_is_fetched_whole_is_seen_at_once(origin: Repo, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    origin.git("clone", "-q", "--depth=1", f"file://{origin.root}", str(shallow))
    async with history(shallow) as gate:
        assert (await gate.call("code.show", {"commit": "HEAD~1"})).error
        origin.git("-C", str(shallow), "fetch", "-q", "--unshallow")
        found = await data(gate, "code.show", commit="HEAD~1")
        assert found["commit"]["hash"] == origin.git("rev-parse", "HEAD~1").strip()


async def test_a_setting_of_form_that_changes_is_seen_at_once(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a.txt": "a\n"})
    (repo.root / "a.txt").chmod(0o755)
    async with history(repo.root) as gate:
        for value, files in (("true", ["a.txt"]), ("false", []), ("true", ["a.txt"])):
            repo.git("config", "core.filemode", value)
            assert [file["path"] for file in (await data(gate, "code.diff"))["files"]] == files
