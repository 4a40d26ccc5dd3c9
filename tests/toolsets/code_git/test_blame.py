"""`code.blame` against plain git."""

from __future__ import annotations

import random
from pathlib import Path

from repositories import Repo, data, history, refused


def plain(repo: Repo, path: str) -> list[tuple[str, str]]:
    lines = repo.git("blame", "--line-porcelain", "--", path).split("\n")
    heads = [line.split(" ")[0] for line in lines if len(line.split(" ")[0]) == 40]
    return list(zip(heads, [line[1:] for line in lines if line.startswith("\t")], strict=True))


def made(root: Path) -> Repo:
    chance = random.Random(3)
    repo = Repo(root)
    lines = [f"start {number}" for number in range(30)]
    for number in range(20):
        lines[chance.randrange(len(lines))] = f"commit {number}"
        lines.insert(chance.randrange(len(lines)), f"new in {number}")
        repo.commit(f"commit {number}", {"file.txt": "\n".join(lines) + "\n"})
    return repo


async def test_every_line_has_the_commit_that_git_names(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    async with history(repo.root) as gate:
        found = await data(gate, "code.blame", path="file.txt")
        assert [(line["commit"]["hash"], line["content"]) for line in found["lines"]] == plain(
            repo, "file.txt"
        )
        assert [line["line_number"] for line in found["lines"]] == list(range(1, 51))
        commit = found["lines"][0]["commit"]
        assert (commit["author"], commit["short_hash"]) == ("Ada", commit["hash"][:10])
        assert (found["total_lines"], found["truncated"], found["authors"]) == (50, False, {"Ada": 50})


async def test_lines_not_committed_yet_belong_to_nobody(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    file = repo.root / "file.txt"
    file.write_text("mine\n" + file.read_text())
    async with history(repo.root) as gate:
        found = await data(gate, "code.blame", path="file.txt")
        assert [(line["commit"]["hash"], line["content"]) for line in found["lines"]] == plain(
            repo, "file.txt"
        )
        assert found["lines"][0]["commit"]["message"] == "not committed yet"


async def test_a_range_of_lines_is_that_range(tmp_path: Path) -> None:
    repo = made(tmp_path / "project")
    async with history(repo.root) as gate:
        found = await data(
            gate, "code.blame", path="file.txt", startLine=10, endLine=12, includeContent=False
        )
        assert [line["line_number"] for line in found["lines"]] == [10, 11, 12]
        assert "content" not in found["lines"][0]
        assert (await data(gate, "code.blame", path="file.txt", start_line=48, end_line=99))["lines"][-1][
            "line_number"
        ] == 50
        assert await refused(gate, "code.blame", path="file.txt", start_line=51) == "invalid_args"
        assert await refused(gate, "code.blame", path="file.txt", start_line=9, end_line=8) == "invalid_args"


async def test_a_long_file_is_cut_and_says_where_to_go_on(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("long", {"long": "".join(f"{n}\n" for n in range(3000))})
    async with history(repo.root) as gate:
        seen: list[str] = []
        start, calls = 1, 0
        while start <= 3000:
            result = await gate.call("code.blame", {"path": "long", "start_line": start})
            if result.data["truncated"]:
                assert f"the first {len(result.data['lines']):,} are shown" in result.data["summary"]
            seen += [line["content"] for line in result.data["lines"]]
            start, calls = len(seen) + 1, calls + 1
            assert result.data["truncated"] == result.meta.truncated == (start <= 3000)
        assert seen == [str(n) for n in range(3000)]
        assert calls > 1


async def test_what_cannot_be_blamed_says_why(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    async with history(repo.root) as gate:
        assert await refused(gate, "code.blame", path="a") == "not_found"
        repo.commit("one", {"a": "a\n", "binary": b"\0\1\2\n", "dir/b": "b\n", "empty": ""})
        (repo.root / "link").symlink_to("a")
        repo.commit("link")
        repo.write({"untracked": "x\n"})
        assert await refused(gate, "code.blame", path="untracked") == "not_found"
        assert await refused(gate, "code.blame", path="dir") == "not_found"
        assert await refused(gate, "code.blame", path="binary") == "not_text"
        assert await refused(gate, "code.blame", path="link") == "blocked_path"
        assert (await data(gate, "code.blame", path="empty"))["lines"] == []
