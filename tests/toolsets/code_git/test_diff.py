"""`code.diff` against what plain git prints."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from repositories import CONFIG, Repo, data, history, refused


def unified(result: dict[str, Any]) -> list[str]:
    """The lines of a result as a patch has them."""
    marks = {"context": " ", "addition": "+", "deletion": "-"}
    lines: list[str] = []
    for file in result["diffs"]:
        for hunk in file["hunks"]:
            for line in hunk["lines"]:
                lines.append(marks[line["type"]] + line["content"])
                if line.get("no_newline"):
                    lines.append("\\ No newline at end of file")
    return lines


def plain(repo: Repo, *args: str) -> list[str]:
    """The same lines from git itself."""
    lines: list[str] = []
    inside = False
    for line in repo.git("diff", "--no-color", "-M", *args).split("\n"):
        if line.startswith("diff --git "):
            inside = False
        elif line.startswith("@@ "):
            inside = True
        elif inside and line:
            lines.append(line)
    return lines


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "project")
    repo.commit(
        "one", {"a.txt": "".join(f"line {n}\n" for n in range(40)), "b.txt": "b\n", "dir/c.txt": "c\n"}
    )
    return repo


async def test_two_commits_differ_as_git_says(repo: Repo) -> None:
    repo.commit(
        "two", {"a.txt": "".join(f"line {n if n % 9 else -n}\n" for n in range(41)), "b.txt": None, "d": "d"}
    )
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD")
        assert unified(found) == plain(repo, "HEAD~1", "HEAD")
        assert found["files"] == [
            {"path": "a.txt", "status": "modified", "changes": "+5/-4", "hunks": 4},
            {"path": "b.txt", "status": "deleted", "changes": "+0/-1", "hunks": 1},
            {"path": "d", "status": "added", "changes": "+1/-0", "hunks": 1},
        ]
        assert found["total_changes"] == {"files_changed": 3, "insertions": 6, "deletions": 5}
        assert (found["summary"], found["truncated"]) == ("3 files: +6/-5", False)
        assert found["compare_hash"] == repo.head()


async def test_the_working_directory_differs_as_git_says(repo: Repo) -> None:
    repo.write({"a.txt": "changed\n", "b.txt": None, "dir/c.txt": "c\r\nmore\n", "untracked": "x"})
    repo.write({"new.bin": b"\0\1\2", "new.txt": "staged\n"})
    repo.git("add", "new.bin", "new.txt")
    (repo.root / "new.txt").write_text("staged, then changed\n")
    (repo.root / "link").symlink_to("a.txt")
    repo.git("add", "link")
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff")
        assert unified(found) == plain(repo, "HEAD")
        assert [file["path"] for file in found["files"]] == [
            "a.txt", "b.txt", "dir/c.txt", "link", "new.bin", "new.txt",
        ]  # fmt: skip
        binary = next(file for file in found["diffs"] if file["path"] == "new.bin")
        assert (binary["binary"], binary["hunks"]) == (True, [])


async def test_a_file_that_git_converts_is_compared_as_git_stores_it(repo: Repo) -> None:
    repo.commit("attributes", {".gitattributes": "*.dos text eol=crlf\n", "x.dos": "one\ntwo\n"})
    (repo.root / "x.dos").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", paths=["x.dos"])
        assert unified(found) == plain(repo, "HEAD", "--", "x.dos") == [" one", " two", "+three"]


async def test_a_checkout_with_crlf_set_in_the_repository_is_clean(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    (repo.root / "b.txt").unlink()
    repo.git("checkout", "--", "b.txt")
    assert (repo.root / "b.txt").read_bytes() == b"b\r\n"
    async with history(repo.root) as gate:
        assert (await data(gate, "code.diff"))["files"] == []


async def test_a_rename_names_both_sides(repo: Repo) -> None:
    repo.git("mv", "a.txt", "renamed.txt")
    repo.seal("rename")
    async with history(repo.root) as gate:
        [file] = (await data(gate, "code.diff", base="HEAD~1", compare="HEAD"))["diffs"]
        assert (file["path"], file["old_path"], file["status"], file["hunks"]) == (
            "renamed.txt", "a.txt", "renamed", [],
        )  # fmt: skip


async def test_a_file_turned_into_a_link_shows_both(repo: Repo) -> None:
    (repo.root / "b.txt").unlink()
    (repo.root / "b.txt").symlink_to("a.txt")
    repo.commit("link")
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD")
        assert unified(found) == plain(repo, "HEAD~1", "HEAD")
        assert found["diffs"][0]["mode"] == "100644 → 120000"


async def test_whitespace_and_context_follow_the_arguments(repo: Repo) -> None:
    repo.commit("two", {"a.txt": "".join(f"line  {n}\n" for n in range(39)) + "other\n", "b.txt": "b \n"})
    async with history(repo.root) as gate:
        for context in (0, 1, 10):
            found = await data(
                gate, "code.diff", base="HEAD~1", compare="HEAD", contextLines=context, ignoreWhitespace=True
            )
            assert unified(found) == plain(repo, "-w", f"-U{context}", "HEAD~1", "HEAD")
        assert [file["hunks"] for file in found["files"]] == [1, 0]


async def test_paths_limit_the_comparison(repo: Repo) -> None:
    repo.commit("two", {"a.txt": "a\n", "dir/c.txt": "d\n"})
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD", paths=["dir", "b.txt"])
        assert [file["path"] for file in found["files"]] == ["dir/c.txt"]
        assert await refused(gate, "code.diff", paths=["../x"]) == "outside_mount"


async def test_a_split_view_puts_old_and_new_side_by_side(repo: Repo) -> None:
    repo.commit("two", {"dir/c.txt": "C\nadded\n"})
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD", view="split")
        rows = found["diffs"][0]["hunks"][0]["rows"]
        sides = [
            (row["left"] and row["left"]["content"], row["right"] and row["right"]["content"]) for row in rows
        ]
        assert sides == [("c", "C"), (None, "added")]


async def test_a_large_diff_is_cut_at_its_size_and_says_how_to_get_the_rest(repo: Repo) -> None:
    repo.commit("two", {f"f{n}.txt": f"{'x' * 90}\n" * 100 for n in range(9)})
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD", maxDiffSize=20_000)
        assert (len(found["files"]), len(found["diffs"]), found["truncated"]) == (9, 2, True)
        assert "paths" in found["next"]
        result = await gate.call("code.diff", {"base": "HEAD~1", "compare": "HEAD"})
        assert (result.data["truncated"], result.meta.truncated) == (True, True)
        assert "more items]" not in str(result.data), "it keeps within the gate's budget by itself"
        assert await refused(gate, "code.diff", max_diff_size=51_201) == "invalid_args"


async def test_a_branch_without_commits_is_compared_with_nothing(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.write({"a": "a\n"})
    repo.git("add", "a")
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff")
        assert [(file["path"], file["status"]) for file in found["files"]] == [("a", "added")]
        assert await refused(gate, "code.diff", base="main") == "not_found"


async def test_a_working_directory_as_it_was_a_moment_ago_is_never_served(repo: Repo) -> None:
    async with history(repo.root) as gate:
        for number in range(15):
            repo.write({"b.txt": f"{number}\n"})
            assert unified(await data(gate, "code.diff")) == ["-b", f"+{number}"]
            head = repo.commit(f"commit {number}", {"b.txt": "b\n"})
            assert (await data(gate, "code.diff"))["base_hash"] == head


async def test_random_histories_differ_as_git_says(tmp_path: Path) -> None:
    chance = random.Random(7)
    repo = Repo(tmp_path / "project")
    names = ["a", "dir/b", "dir/deep/c", "sp ace", 'quo"te', "new\nline", "-dash", "täb\t", "x=y", "ü.txt"]
    for number in range(25):
        for name in chance.sample(names, 3):
            lines = [f"{chance.randrange(6)}\n" for _ in range(chance.randrange(1, 30))]
            repo.write({name: "".join(lines) + ("" if chance.random() < 0.3 else "end\n")})
        repo.commit(f"commit {number}")
    async with history(repo.root) as gate:
        for _ in range(25):
            old, new = (f"HEAD~{chance.randrange(25)}" for _ in range(2))
            found = await data(gate, "code.diff", base=old, compare=new)
            assert unified(found) == plain(repo, old, new)
            assert {file["path"] for file in found["files"]} <= set(names)


async def test_a_hunk_too_large_for_any_answer_is_shown_as_far_as_it_goes(repo: Repo) -> None:
    repo.commit(
        "big", {"big.txt": "".join(f"line {number} of many\n" for number in range(5000)), "a.txt": "a\n"}
    )
    async with history(repo.root) as gate:
        for tool, args in (
            ("code.show", {"commit": "HEAD"}),
            ("code.diff", {"base": "HEAD~1", "compare": "HEAD"}),
        ):
            result = await gate.call(tool, args)
            found = result.data
            assert (found["truncated"], result.meta.truncated) == (True, True)
            assert "more items]" not in str(found), "it keeps within the gate's budget by itself"
            assert found["next"]
            (diff,) = [
                each
                for each in (found["commit"]["diff"] if tool == "code.show" else found["diffs"])
                if each["path"] == "big.txt"
            ]
            lines = diff["hunks"][0]["lines"]
            assert 500 < len(lines) < 5000
            assert lines[-1]["content"] == f"line {len(lines) - 1} of many"
            assert diff["hunks"][0]["cut"].startswith(f"{5000 - len(lines):,} lines more")
            assert diff["cut"] == "1 hunk more"


async def test_numbers_stay_with_their_files_where_white_space_is_ignored(repo: Repo) -> None:
    repo.commit(
        "space", {"a.txt": (repo.root / "a.txt").read_text().replace(" ", "  "), "dir/c.txt": "x\ny\n"}
    )
    async with history(repo.root) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD", ignore_whitespace=True)
    assert [(file["path"], file["changes"]) for file in found["files"]] == [
        ("a.txt", "+0/-0"),
        ("dir/c.txt", "+2/-1"),
    ]


@pytest.mark.parametrize(("tokens", "shown"), [(1_000_000, 1000), (3000, 20)])
async def test_all_files_that_are_not_shown_are_counted(tmp_path: Path, tokens: int, shown: int) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("before", {"other": ""})
    repo.commit("many", {f"d/{number:04}": "x\n" for number in range(1005)})
    async with history(repo.root, CONFIG | {"budget": {"tokens": tokens}}) as gate:
        found = await data(gate, "code.diff", base="HEAD~1", compare="HEAD")
        assert len(found["diffs"]) <= shown
        told = int(found["next"].partition(" ")[0].replace(",", ""))
        assert told == found["total_changes"]["files_changed"] - len(found["diffs"]) > 0
        assert "d/" in found["next"]
