"""A malicious repository runs nothing and leaks nothing through any of the four tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from repositories import Repo, data, history, refused

from .hostile import BLOCKED, REVISIONS, SECRET, Hostile, calls, plunder


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path / "project")


def unharmed(repo: Hostile, answers: list[str]) -> None:
    assert not repo.marker.exists(), "something of the repository's choosing was run"
    for answer in answers:
        assert SECRET not in answer
    found = [str(file) for file in repo.root.parent.rglob("*pwned*")]
    assert found == []


def test_the_traps_are_real(hostile: Hostile) -> None:
    """Plain git walks into them: a suite whose traps do not work proves nothing."""
    hostile.arm()
    (hostile.root / ".git" / "commondir").unlink()
    subprocess.run(
        ["git", "diff", "HEAD"],
        cwd=hostile.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert hostile.marker.exists()


async def test_nothing_runs_and_nothing_leaks(hostile: Hostile) -> None:
    hostile.arm()
    async with history(hostile.root) as gate:
        good, answers = await plunder(gate, calls())
    assert good > 40, "the repository can still be read"
    unharmed(hostile, answers)
    assert not any(
        '"outside"' in answer and "loot" in answer for answer in answers if '"code.show"' in answer
    )


async def test_blocked_names_are_not_even_named(hostile: Hostile) -> None:
    async with history(hostile.root) as gate:
        for tool, args in (
            ("code.log", {"include_diff": True}), ("code.show", {"commit": "HEAD~2"}), ("code.diff", {}),
            ("code.diff", {"base": "HEAD~4", "compare": "HEAD~3"}), ("code.show", {"commit": "HEAD~1"}),
        ):  # fmt: skip
            answer = json.dumps(await data(gate, tool, **args))
            for name in (*BLOCKED, "was-env.txt", "now.key"):
                assert name not in answer
            assert "that may not be shown" in answer


async def test_a_rename_over_the_fence_shows_neither_side(hostile: Hostile) -> None:
    async with history(hostile.root) as gate:
        shown = (await data(gate, "code.show", commit="HEAD~1"))["commit"]
        assert (shown["files_changed"], shown["diff"], shown["left_out"]) == (
            [],
            [],
            "2 files that may not be shown",
        )
        for path in ("was-env.txt", "a.txt"):
            found = await data(gate, "code.diff", base="HEAD~2", compare="HEAD~1", paths=[path])
            assert (found["files"], found["left_out"]) == ([], "1 file that may not be shown")


async def test_a_file_renamed_in_the_working_directory_shows_neither_side(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {".env": f"{SECRET}\n" * 9, "open.txt": "open\n" * 9})
    repo.git("mv", ".env", "plain.txt")
    repo.git("mv", "open.txt", "id_rsa")
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff")
        assert (found["files"], found["left_out"]) == ([], "2 files that may not be shown")


@pytest.mark.parametrize(
    "revision",
    [text for text in REVISIONS if text.startswith("-") or not text.strip() or not text.isprintable()],
)
async def test_what_is_no_revision_never_reaches_git(hostile: Hostile, revision: str) -> None:
    async with history(hostile.root) as gate:
        for tool, args in (
            ("code.show", {"commit": revision}),
            ("code.diff", {"base": revision}),
            ("code.diff", {"compare": revision}),
        ):
            assert await refused(gate, tool, **args) in ("invalid_args", "not_found")


@pytest.mark.parametrize(
    "revision",
    [
        "HEAD..main",
        "main...HEAD",
        "^HEAD",
        "HEAD^!",
        "HEAD^@",
        "HEAD:.env",
        ":.env",
        "HEAD^{tree}",
        "@{upstream}",
    ],
)
async def test_a_revision_is_one_commit_and_nothing_else(hostile: Hostile, revision: str) -> None:
    async with history(hostile.root) as gate:
        assert await refused(gate, "code.show", commit=revision) == "not_found"
        assert await refused(gate, "code.diff", base=revision) == "not_found"


def _alternates(repo: Hostile) -> None:
    (repo.root / ".git" / "objects" / "info" / "alternates").write_text(f"{repo.outside.root}/.git/objects\n")


def _linked_git(repo: Hostile) -> None:
    (repo.root / ".git").rename(repo.root.parent / "moved")
    (repo.root / ".git").symlink_to(repo.root.parent / "moved")


def _git_file(repo: Hostile) -> None:
    shutil.rmtree(repo.root / ".git")
    (repo.root / ".git").write_text(f"gitdir: {repo.outside.root}/.git\n")


def _linked_objects(repo: Hostile) -> None:
    shutil.rmtree(repo.root / ".git" / "objects")
    (repo.root / ".git" / "objects").symlink_to(repo.outside.root / ".git" / "objects")


def _linked_pack(repo: Hostile) -> None:
    repo.outside.git("repack", "-adq")
    shutil.rmtree(repo.root / ".git" / "objects" / "pack")
    (repo.root / ".git" / "objects" / "pack").symlink_to(repo.outside.root / ".git" / "objects" / "pack")


def _linked_pack_files(repo: Hostile) -> None:
    repo.outside.git("repack", "-adq")
    for file in (repo.outside.root / ".git" / "objects" / "pack").iterdir():
        (repo.root / ".git" / "objects" / "pack" / file.name).symlink_to(file)


def _linked_loose_objects(repo: Hostile) -> None:
    for file in (repo.outside.root / ".git" / "objects").glob("??/*"):
        target = repo.root / ".git" / "objects" / file.parent.name
        target.mkdir(exist_ok=True)
        if not (target / file.name).exists():
            (target / file.name).symlink_to(file)


def _linked_refs(repo: Hostile) -> None:
    shutil.rmtree(repo.root / ".git" / "refs")
    (repo.root / ".git" / "refs").symlink_to(repo.outside.root / ".git" / "refs")


def _linked_head(repo: Hostile) -> None:
    (repo.root / ".git" / "HEAD").unlink()
    (repo.root / ".git" / "HEAD").symlink_to(repo.outside.root / ".git" / "HEAD")


def _linked_packed_refs(repo: Hostile) -> None:
    repo.outside.git("pack-refs", "--all")
    (repo.root / ".git" / "packed-refs").symlink_to(repo.outside.root / ".git" / "packed-refs")


def _linked_index(repo: Hostile) -> None:
    (repo.root / ".git" / "index").unlink()
    (repo.root / ".git" / "index").symlink_to(repo.outside.root / ".git" / "index")


def _linked_shallow(repo: Hostile) -> None:
    (repo.root / ".git" / "shallow").symlink_to(repo.outside.root / "loot.txt")


def _pipe_for_head(repo: Hostile) -> None:
    (repo.root / ".git" / "HEAD").unlink()
    os.mkfifo(repo.root / ".git" / "HEAD")


def _linked_directory(repo: Hostile) -> None:
    shutil.rmtree(repo.root / "dir")
    (repo.root / "dir").symlink_to(repo.outside.root)


def _linked_file(repo: Hostile) -> None:
    (repo.root / "a.txt").unlink()
    (repo.root / "a.txt").symlink_to(repo.outside.root / "loot.txt")


@pytest.mark.sample(1, over="when")
@pytest.mark.parametrize(
    "trick",
    [
        _alternates, _linked_git, _git_file, _linked_objects, _linked_pack, _linked_pack_files, _linked_loose_objects,
        _linked_refs, _linked_head, _linked_packed_refs, _linked_index, _linked_shallow, _pipe_for_head, _linked_directory,
        _linked_file,
    ],
    ids=lambda trick: trick.__name__.strip("_"),
)  # fmt: skip
@pytest.mark.parametrize("when", ["before", "after"], ids=["before the gate opens", "between two calls"])
async def test_parts_that_lead_out_lead_nowhere(
    hostile: Hostile, trick: Callable[[Hostile], None], when: str
) -> None:
    stolen = hostile.outside.head()
    (hostile.root / ".git" / "refs" / "heads" / "outside").write_text(stolen + "\n")
    revisions = ("HEAD", "outside", "main", stolen, f"{stolen}~0")
    if when == "before":
        trick(hostile)
    async with history(hostile.root) as gate:
        if when == "after":
            assert (await gate.call("code.log")).ok
            trick(hostile)
        _, answers = await plunder(gate, calls(revisions=revisions))
    unharmed(hostile, answers)


async def test_odd_names_are_names(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    names = [
        "-rf",
        "--output=pwned",
        "a\nb",
        'say "hi"',
        "back\\slash",
        "tab\there",
        ":(top)x",
        "*",
        "$(touch pwned)",
        "sp ace ",
        "{a => b}",
    ]
    repo.commit("one", dict.fromkeys(names, "x\n"))
    raw = os.fsencode(repo.root) + b"/br\xffken"
    with open(raw, "w") as file:
        file.write("x\n")
    repo.commit("two", dict.fromkeys(names, "y\n"))
    async with history(repo.root) as gate:
        found = await data(gate, "code.show", commit="HEAD")
        assert sorted(found["commit"]["files_changed"]) == sorted([*names, "br\\xffken"])
        assert all(len(file["hunks"]) == 1 for file in found["commit"]["diff"])
        for name in ("-rf", "--output=pwned", "*", "$(touch pwned)", "sp ace "):
            assert len((await data(gate, "code.log", path=name))["commits"]) == 2
            assert (await data(gate, "code.blame", path=name))["lines"][0]["content"] == "y"
            one = await data(gate, "code.diff", base="HEAD~1", compare="HEAD", paths=[name])
            assert [file["path"] for file in one["files"]] == [name]
    assert not list(tmp_path.rglob("pwned"))


async def test_the_callers_environment_does_not_reach_git(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = hostile.marker
    for name, value in {
        "GIT_DIR": str(hostile.outside.root / ".git"), "GIT_WORK_TREE": str(hostile.outside.root), "GIT_TRACE": str(trace),
        "GIT_EXTERNAL_DIFF": f"touch {trace}", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {trace}", "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(hostile.outside.root / ".git/objects"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    async with history(hostile.root) as gate:
        _, answers = await plunder(gate, calls(revisions=("HEAD", "main")))
    unharmed(hostile, answers)


async def test_the_repository_is_left_as_it_was(hostile: Hostile) -> None:
    def state() -> dict[str, tuple[int, int]]:
        files = (file for file in (hostile.root / ".git").rglob("*") if not file.is_symlink())
        return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    before = state()
    async with history(hostile.root) as gate:
        await plunder(gate, calls(revisions=("HEAD", "main")))
    assert state() == before
    assert not list((hostile.root / ".toolgate" / "cache" / "git").glob("*/view-*")), (
        "the view goes with the gate"
    )
