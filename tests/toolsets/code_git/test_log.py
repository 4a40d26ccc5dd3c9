"""`code.log` and `code.show` against what plain git prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from repositories import Repo, data, history, refused


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo(tmp_path / "project")
    for number in range(8):
        repo.commit(
            f"commit {number}\n\nwith *more* to say", {f"f{number % 3}": f"{number}\n", "all": f"{number}\n"}
        )
    return repo


def hashes(repo: Repo, *args: str) -> list[str]:
    return repo.git("log", "--format=%H", *args).split()


async def test_commits_come_newest_first_with_files_and_numbers(repo: Repo) -> None:
    async with history(repo.root) as gate:
        found = await data(gate, "code.log")
        assert [commit["hash"] for commit in found["commits"]] == hashes(repo)
        assert (found["total_commits"], found["truncated"]) == (8, False)
        last = found["commits"][0]
        assert last == {
            "hash": repo.head(), "short_hash": repo.head()[:10], "author": "Ada", "email": "ada@example.org",
            "date": "2025-06-15T17:14:40+02:00", "message": "commit 7\n\nwith *more* to say",
            "files_changed": ["all", "f1"], "stats": {"insertions": 2, "deletions": 2},
        }  # fmt: skip
        assert found["summary"] == "8 commits by 1 author"


async def test_no_commits_says_of_what_there_are_none(repo: Repo) -> None:
    async with history(repo.root) as gate:
        told = [
            (await data(gate, "code.log", **args))["summary"]
            for args in ({"path": "f11"}, {"path": "f1", "author": "eve", "grep": "x"}, {"skip": 9})
        ]
        assert told == [
            "no commits of 'f11'",
            "no commits of 'f1' that match author and grep",
            "no commits after the newest 9",
        ]


async def test_of_a_path_its_own_files_are_named_and_their_lines_counted(repo: Repo) -> None:
    async with history(repo.root) as gate:
        found = await data(gate, "code.log", path="f1")
        assert [commit["hash"] for commit in found["commits"]] == hashes(repo, "--", "f1")
        for commit in found["commits"]:
            assert commit["files_changed"] == ["f1"]
            added, removed, _ = repo.git("show", "--format=", "--numstat", commit["hash"], "--", "f1").split()
            assert commit["stats"] == {"insertions": int(added), "deletions": int(removed)}
        with_diff = await data(gate, "code.log", path="f1", includeDiff=True)
        for commit, same in zip(with_diff["commits"], found["commits"], strict=True):
            assert [file["path"] for file in commit.pop("diff")] == ["f1"]
            assert commit == same


async def test_of_a_directory_and_across_a_rename_the_diff_is_of_what_the_path_names(repo: Repo) -> None:
    repo.commit("in", {"d/a": "one\ntwo\nthree\n", "d2/b": "other\n", "f1": "x\n"})
    repo.git("mv", "d/a", "moved")
    repo.commit("out", {"f1": "y\n"})
    async with history(repo.root) as gate:
        found = await data(gate, "code.log", path="d", includeDiff=True)
        assert [commit["files_changed"] for commit in found["commits"]] == [["moved"], ["d/a"]]
        assert [[file["path"] for file in commit["diff"]] for commit in found["commits"]] == [
            ["moved"],
            ["d/a"],
        ]


async def test_filters_are_those_of_git(repo: Repo) -> None:
    repo.commit("by somebody (else)", {"f1": "x\n"}, "--author=Eve <eve@example.org>")
    async with history(repo.root) as gate:

        async def of(**args: object) -> list[str]:
            return [commit["hash"] for commit in (await data(gate, "code.log", **args))["commits"]]

        assert await of(path="f1") == hashes(repo, "--", "f1")
        assert await of(author="EVE") == hashes(repo, "--author=Eve")
        assert await of(grep="somebody (") == hashes(repo, "-F", "--grep=somebody (")
        assert await of(grep="(") == await of(grep="somebody")
        assert await of(grep="*more*", limit=3) == hashes(repo, "--grep=more", "-n3")
        middle = "2025-06-15T15:10:00+00:00"
        assert await of(since=middle) == hashes(repo, f"--since={middle}") != []
        assert await of(until=middle) == hashes(repo, f"--until={middle}") != []
        assert await of(since="2 weeks ago", until="yesterday") == hashes(
            repo, "--since=2 weeks ago", "--until=yesterday"
        )
        assert await of(path="no-such-file") == []


async def test_what_is_not_a_time_is_refused_instead_of_read_as_now(repo: Repo) -> None:
    async with history(repo.root) as gate:
        for nonsense in ("soon", "--all", "1 week ago; rm", "-", "…", "next blue moon"):
            assert await refused(gate, "code.log", since=nonsense) == "invalid_args"
            assert await refused(gate, "code.log", until=nonsense) == "invalid_args"


async def test_the_limit_is_kept_and_more_is_said(repo: Repo) -> None:
    async with history(repo.root) as gate:
        found = await data(gate, "code.log", limit=3)
        assert (len(found["commits"]), found["truncated"]) == (3, True)
        assert found["next"] == "there are older commits: go on with skip=3"
        assert (await data(gate, "code.log", limit=8))["truncated"] is False
        for limit in (0, 101):
            assert await refused(gate, "code.log", limit=limit) == "invalid_args"


async def test_following_next_shows_every_commit_once_whenever_it_was_written(repo: Repo) -> None:
    repo.commit("written long ago", {"f1": "old\n"}, "--date=2001-01-01T00:00:00+0000")
    repo.commit("written just now", {"f1": "new\n"})
    async with history(repo.root) as gate:
        for path in (".", "f1"):
            seen: list[str] = []
            more = True
            while more:
                found = await data(gate, "code.log", path=path, limit=2, skip=len(seen))
                seen += [commit["hash"] for commit in found["commits"]]
                more = found["truncated"]
            assert seen == hashes(repo, "--", path)
        beyond = await data(gate, "code.log", skip=100)
        assert (beyond["commits"], beyond["truncated"]) == ([], False)


async def test_diffs_come_on_request_and_within_their_room(repo: Repo) -> None:
    repo.commit("large", {"large": f"{'x' * 99}\n" * 5000})
    async with history(repo.root) as gate:
        result = await gate.call("code.log", {"includeDiff": True})
        first, second = result.data["commits"][:2]
        assert "code.read" in first["diff"][0]["hunks"][0]["cut"]
        assert "code.diff" in first["cut"]
        assert (result.data["truncated"], result.meta.truncated) == (True, True)
        assert "more items]" not in str(result.data), "it keeps within the gate's budget by itself"
        assert second["files_changed"] == ["all", "f1"]


async def test_a_commit_is_shown_with_all_of_it(repo: Repo) -> None:
    async with history(repo.root) as gate:
        found = await data(gate, "code.show", commit="HEAD~1")
        commit = found["commit"]
        assert commit["hash"] == hashes(repo)[1]
        assert commit["parents"] == [hashes(repo)[2]]
        assert commit["committer"]["name"] == "Bob"
        assert [file["path"] for file in commit["diff"]] == commit["files_changed"] == ["all", "f0"]
        assert found["summary"].endswith("commit 6 (2 files)")
        bare = await data(gate, "code.show", commit=commit["short_hash"], includeDiff=False)
        assert "diff" not in bare["commit"]
        root = await data(gate, "code.show", commit=hashes(repo)[-1])
        assert [file["status"] for file in root["commit"]["diff"]] == ["added", "added"]


async def test_a_merge_is_compared_with_its_first_parent(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side", "HEAD~2")
    repo.commit("on the side", {"side": "side\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    repo.seal("merge")
    async with history(repo.root) as gate:
        commit = (await data(gate, "code.show", commit="HEAD"))["commit"]
        assert len(commit["parents"]) == 2
        assert commit["files_changed"] == ["side"]
        logged = await data(gate, "code.log")
        assert [commit["hash"] for commit in logged["commits"]] == hashes(repo)
        assert logged["commits"][0]["files_changed"] == ["side"]


async def test_tags_branches_and_expressions_are_revisions(repo: Repo) -> None:
    repo.git("tag", "-a", "-m", "a tag", "v1", "HEAD~3")
    repo.git("branch", "feature/x", "HEAD~2")
    async with history(repo.root) as gate:
        for revision in (
            "v1",
            "feature/x",
            "HEAD^^",
            "@",
            "main~2",
            "v1^{}",
            "refs/heads/main",
        ):
            found = await data(gate, "code.show", commit=revision, include_diff=False)
            assert found["commit"]["hash"] == repo.git("rev-parse", f"{revision}^{{commit}}").strip()
        repo.git("pack-refs", "--all")
        repo.git("branch", "later")
        assert (await data(gate, "code.show", commit="later"))["commit"]["hash"] == repo.head()
        repo.git("branch", "-D", "later")
        assert await refused(gate, "code.show", commit="later") == "not_found"


async def test_messages_in_any_encoding_are_read(repo: Repo) -> None:
    repo.git("config", "i18n.commitEncoding", "ISO-8859-1")
    repo.git("commit", "-q", "--allow-empty", "-F", "-", stdin="grüße".encode("latin-1"))
    repo.git("config", "--unset", "i18n.commitEncoding")
    repo.git("commit", "-q", "--allow-empty", "-F", "-", stdin=b"broken \xff\xfe")
    repo.commit("bytes", {"latin": "käse\n".encode("latin-1")})
    async with history(repo.root) as gate:
        commits = (await data(gate, "code.log", limit=3))["commits"]
        assert [commit["message"] for commit in commits] == ["bytes", "broken ÿþ", "grüße"]
        [file] = (await data(gate, "code.show", commit="HEAD"))["commit"]["diff"]
        assert (file["encoding"], file["hunks"][0]["lines"][0]["content"]) == ("latin-1", "käse")


@pytest.mark.parametrize("diff", [False, True])
async def test_of_a_path_no_merge_is_told_that_changed_nothing_about_it(repo: Repo, diff: bool) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("on the side", {"other": "1\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("on main", {"f1": "main\n"})
    repo.git("merge", "-q", "--no-ff", "-m", "merge the side", "side")
    repo.git("checkout", "-q", "-b", "evil", "HEAD~1")
    repo.commit("evil", {"third": "1\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "evil")
    merge = repo.commit("merge and change", {"f1": "by the merge\n"})
    async with history(repo.root) as gate:
        found = await data(gate, "code.log", path="f1", includeDiff=diff)
        assert [commit["hash"] for commit in found["commits"]] == hashes(repo, "--", "f1")
        assert found["commits"][0]["hash"] == merge
        assert [commit["files_changed"] for commit in found["commits"]] == [["f1"]] * len(found["commits"])
        first = await data(gate, "code.log", path="f1", limit=2)
        rest = await data(gate, "code.log", path="f1", skip=2)
        told = [commit["hash"] for commit in (*first["commits"], *rest["commits"])]
        assert (told, first["truncated"]) == (hashes(repo, "--", "f1"), True)


@pytest.mark.parametrize("name", ["f*", "f?", "[f]1", "!f1", "^f1"])
async def test_a_path_is_a_name_and_no_pattern(tmp_path: Path, name: str) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("others", {"f1": "1\n", "f2": "1\n"})
    repo.commit("this one", {name: "1\n"})
    repo.commit("others again", {"f1": "2\n", "f2": "2\n"})
    async with history(repo.root) as gate:
        found = await data(gate, "code.log", path=name)
        assert [commit["message"] for commit in found["commits"]] == ["this one"]
        compared = await data(gate, "code.diff", base="HEAD~2", compare="HEAD", paths=[name])
        assert [file["path"] for file in compared["files"]] == [name]
        assert [
            line["commit"]["message"] for line in (await data(gate, "code.blame", path=name))["lines"]
        ] == ["this one"]
