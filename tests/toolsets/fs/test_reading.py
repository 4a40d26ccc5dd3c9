"""fs.list, fs.find, fs.read and fs.hash: what is there, and what it says."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from toolgate.features.files.fs import tree

from .world import world


def sha(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


async def test_a_listing_is_sorted_and_marks_directories(root: Path) -> None:
    for name in ("b.txt", "a.txt", "Z.md"):
        (root / name).write_text(name)
    (root / "sub/deep").mkdir(parents=True)
    (root / "sub/x.py").write_text("x")
    async with world(root) as at:
        assert (await at.data("list"))["entries"] == ["Z.md", "a.txt", "b.txt", "sub/"]
        assert (await at.data("list", path="sub"))["entries"] == ["deep/", "x.py"]
        assert (await at.data("list", glob="*.txt"))["entries"] == ["a.txt", "b.txt"]
        assert (await at.data("list", glob="**/*.py"))["entries"] == ["sub/x.py"]
        (row,) = (await at.data("list", path="sub", glob="*.py", details=True))["details"]
        assert (row["path"], row["kind"], row["size"]) == ("sub/x.py", "file", 1)


async def test_a_cut_listing_says_so_and_is_the_first_by_name(root: Path) -> None:
    for number in range(30):
        (root / f"f{number:02}").touch()
    async with world(root) as at:
        found = await at.data("list", limit=5)
        assert (found["entries"], found["truncated"]) == ([f"f{number:02}" for number in range(5)], True)
        assert not (await at.data("list", limit=30))["truncated"]


async def test_find_goes_by_name_or_by_path(root: Path) -> None:
    for name in ("a.ts", "src/b.ts", "src/x/c.ts", "src/x/d.tsx"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    async with world(root) as at:
        assert (await at.data("find", base=".", pattern="*.ts"))["files"] == [
            "a.ts",
            "src/b.ts",
            "src/x/c.ts",
        ]
        assert (await at.data("find", base="src", pattern="x/*"))["files"] == ["src/x/c.ts", "src/x/d.tsx"]
        found = await at.data("find", base="src", pattern="**/*.tsx")
        assert (found["files"], found["count"]) == (["src/x/d.tsx"], 1)
        assert await at.code("find", base=".", pattern="/etc/*") == "invalid_args"
        assert await at.code("find", base="none", pattern="*") == "not_found"


async def test_blocked_and_hidden_names_are_not_shown(root: Path) -> None:
    for name in (
        ".env",
        ".git/config",
        "secrets/x",
        "id_rsa",
        ".private",
        ".gitignore",
        ".github/ci.yml",
        "a",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    async with world(root) as at:
        assert (await at.data("list"))["entries"] == [".github/", ".gitignore", "a"]
        assert (await at.data("find", base=".", pattern="*"))["files"] == [
            ".github/ci.yml",
            ".gitignore",
            "a",
        ]


async def test_a_mount_lists_the_dotfiles_it_opens(root: Path) -> None:
    for name in (".tool/deep/a.toml", ".tool/deep/b.txt", ".tool/c", ".gitignore"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    async with world(root, project={"path": ".", "dotfiles": [".tool/deep/*.toml"]}) as at:
        assert (await at.data("find", base=".", pattern="*"))["files"] == [".tool/deep/a.toml"]
        assert (await at.data("read", path=".tool/deep/a.toml"))["content"] == "text"
        for path in (".tool/c", ".tool/deep/b.txt", ".gitignore"):
            assert await at.code("read", path=path) == "blocked_path"
            assert await at.code("write", path=path, content="x") == "blocked_path"


async def test_links_inside_are_followed_and_judged_by_where_they_lead(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real/a.txt").write_text("hello")
    (root / "real/.env").write_text("TOKEN=1")
    (root / "a").symlink_to("real/a.txt")
    (root / "folder").symlink_to("real")
    (root / "up").symlink_to("real/../real/a.txt")
    (root / "notes.txt").symlink_to("real/.env")
    (root / "dangling.txt").symlink_to("real/.env.gone")
    async with world(root) as at:
        for path in ("a", "folder/a.txt", "up"):
            assert (await at.data("read", path=path))["content"] == "hello"
        there = await at.call("read", path="notes.txt")
        absent = await at.call("read", path="dangling.txt")
        assert there.error is not None and absent.error is not None  # noqa: PT018
        assert there.error.code == "blocked_path"
        assert there.error.message.replace("notes.txt", "") == absent.error.message.replace(
            "dangling.txt", ""
        )
        assert (await at.data("list", path="folder"))["entries"] == ["a.txt"]


async def test_hidden_paths_hold_also_by_way_of_a_link(root: Path) -> None:
    (root / "private").mkdir()
    (root / "private/x").write_text("x")
    (root / "sub").mkdir()
    (root / "sub/top").symlink_to("..")
    (root / "sub/in").symlink_to("../private")
    async with world(root, project={"path": ".", "hidden": ["private/**"]}) as at:
        for path in ("sub/top/private/x", "sub/in/x"):
            assert await at.code("read", path=path) == "blocked_path"
        assert (await at.data("find", base="sub/top", pattern="*"))["files"] == [
            "sub/top/sub/in",
            "sub/top/sub/top",
        ]


async def test_ranges_of_lines_are_counted_from_one(root: Path) -> None:
    (root / "f").write_bytes(b"1\n2\r\n3\n4")
    async with world(root) as at:
        found = await at.data("read", path="f", ranges=[[2, 3], [4, 9], [7, 8]])
        assert [part["content"] for part in found["range_slices"]] == ["2\r\n3\n", "4", ""]
        assert found["lines"] == 4
        assert await at.code("read", path="f", ranges=[[3, 2]]) == "invalid_args"
        assert await at.code("read", path="f", ranges=[[0, 2]]) == "invalid_args"
        assert await at.code("read", path="f", ranges=[[5, 9], [7, 7]]) == "invalid_args", (
            "none of it is there"
        )


async def test_a_file_is_not_said_to_be_missing_because_it_is_no_directory(root: Path) -> None:
    (root / "f").write_text("x")
    async with world(root) as at:
        for verb, args in (("list", {"path": "f"}), ("find", {"base": "f", "pattern": "*"})):
            refused = await at.call(verb, **args)
            assert refused.error is not None
            assert (refused.error.code, refused.error.message) == ("not_found", "'f' is not a directory")
        assert "there is no 'g'" in str((await at.call("list", path="g")).error)


async def test_a_large_file_is_read_by_lines_only(root: Path) -> None:
    lines = [f"line {number}\n" for number in range(1, 200_001)]
    (root / "big").write_text("".join(lines))
    (root / "one").write_bytes(b"x" * (5 << 20))
    async with world(root, project={"path": ".", "max_bytes": 1000}) as at:
        assert await at.code("read", path="big") == "too_large"
        found = await at.data("read", path="big", ranges=[[1, 2], [150_000, 150_001]])
        assert [part["content"] for part in found["range_slices"]] == [
            "".join(lines[:2]),
            "".join(lines[149_999:150_001]),
        ]
        assert await at.code("read", path="one", ranges=[[1, 1]]) == "too_large"
        raw = (await at.data("hash", path="one"))["raw_hash"]
        assert raw == sha(b"x" * (5 << 20))
        assert await at.code("write", path="new", content="x" * 1001) == "too_large"


@pytest.mark.parametrize(
    ("raw", "text", "encoding"),
    [
        ("héllo ☃".encode(), "héllo ☃", "utf-8"),
        (b"\xef\xbb\xbfhi", "hi", "utf-8"),
        ("\ufeffwide".encode("utf-16-le"), "wide", "utf-16-le"),
        ("\ufeffwide".encode("utf-16-be"), "wide", "utf-16-be"),
        (b"", "", "utf-8"),
    ],
)
async def test_encodings_are_told(root: Path, raw: bytes, text: str, encoding: str) -> None:
    (root / "f").write_bytes(raw)
    async with world(root) as at:
        found = await at.data("read", path="f")
        assert (found["content"], found["encoding"]) == (text, encoding)


@pytest.mark.parametrize(
    "raw",
    [b"\x7fELF\x02\x01\x01\x00", b"a\0b", bytes(range(256)) * 8, b"%PDF-1.7\nplain", b"\xff\xfea\xd8", b"PK\x03\x04\x14\x00"],
    ids=["elf", "nul", "bytes", "pdf", "broken utf-16", "zip"],
)  # fmt: skip
async def test_what_is_no_text_is_refused_and_hashed_all_the_same(root: Path, raw: bytes) -> None:
    (root / "f").write_bytes(raw)
    async with world(root) as at:
        assert await at.code("read", path="f") == "not_text"
        assert await at.code("edit", path="f", find="a", replace="b") == "not_text"
        found = await at.data("hash", path="f")
        assert (found["hash"], found["raw_hash"], found["canonical"]) == (sha(raw), sha(raw), False)


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        (b"a  \r\nb\t\r\n\r\nc", b"a\nb\n\nc\n"),
        (b"a\n", b"a\n"),
        (b"", b""),
        (b"a\rb", b"a\nb\n"),
        ("x\u00a0 \n".encode(), b"x\n"),
    ],
)
async def test_the_hash_is_of_the_canonical_text(root: Path, raw: bytes, canonical: bytes) -> None:
    (root / "f").write_bytes(raw)
    async with world(root) as at:
        found = await at.data("hash", path="f")
        assert (found["hash"], found["raw_hash"]) == (sha(canonical), sha(raw))


async def test_a_directory_of_many_entries_is_passed_through(root: Path) -> None:
    many = root / "many"
    many.mkdir()
    for number in range(20_000):
        (many / f"{number:05}").touch()
    async with world(root) as at:
        found = await asyncio.wait_for(at.data("list", path="many", limit=3), 20)
        assert (found["entries"], found["truncated"]) == (["00000", "00001", "00002"], True)
        assert (await at.data("find", base=".", pattern="1999[89]"))["files"] == ["many/19998", "many/19999"]


async def test_a_walk_whose_time_is_up_says_that_it_is_not_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "TIME_LIMIT", -1.0)
    (root / "a.txt").write_text("a")
    async with world(root) as at:
        for verb, args in (("list", {}), ("find", {"base": ".", "pattern": "*"})):
            found = await at.data(verb, **args)
            assert (found["count"], found["truncated"]) == (0, True)
            assert found["next"].startswith("there is too much to look at")


@pytest.mark.parametrize(
    ("encoding", "line"),
    [("shift_jis", "これは日本語のテキストです。\n"), ("gb18030", "这是中文文本，有很多行。\n"), ("koi8_r", "Это русский текст.\n")],
)  # fmt: skip
async def test_an_encoding_without_a_mark_is_guessed_from_a_part_of_the_file(
    root: Path, encoding: str, line: str
) -> None:
    (root / "f").write_bytes((line * 4000).encode(encoding))
    async with world(root) as at:
        found = await at.data("read", path="f", ranges=[[4000, 4000]])
        assert found["range_slices"][0]["content"] == line


async def test_a_line_too_long_for_any_answer_is_not_asked_for_again(root: Path) -> None:
    (root / "f").write_text("x" * 300_000 + "\nshort\n")
    (root / "one").write_text("x" * 300_000)
    async with world(root) as at:
        for args in ({}, {"ranges": [[1, 2]]}):
            found = await at.data("read", path="f", **args)
            assert found["truncated"]
            assert "line 1 has 2" in found["next"]
            assert found["next"].endswith("; go on with ranges [[2, 2]]")
        for args in ({}, {"ranges": [[1, 1]]}):
            assert "go on" not in (await at.data("read", path="one", **args))["next"]


@pytest.mark.parametrize("verb", ["list", "find"])
async def test_a_listing_for_which_there_are_too_few_handles_fails_instead_of_leaving_something_out(
    root: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "below").mkdir()
    (root / "below/a.txt").write_text("x")
    real = os.open

    def refusing(path: str, *rest: Any, **more: Any) -> int:
        if path == "below":
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, *rest, **more)

    async with world(root) as at:
        monkeypatch.setattr(os, "open", refusing)
        args = {"glob": "**"} if verb == "list" else {"base": ".", "pattern": "*"}
        assert await at.code(verb, **args) == "failed"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("src/transactoin.py", "src/transaction.py"), ("scr/transaction.py", "src/transaction.py"), ("READNE.md", "README.md"),
        ("src/other.py", None), ("scr/other.py", None), ("client_secert.json", None), ("hiden/plan.md", None),
        ("gardn/notes.md", None), ("linked/transactoin.py", None), ("x" * 300 + "/README.md", None),
    ],
)  # fmt: skip
async def test_a_misspelt_path_is_told_the_near_one_that_may_be_read(
    root: Path, asked: str, meant: str | None
) -> None:
    for name in (
        "src/transaction.py",
        "README.md",
        "client_secret.json",
        "hidden/plan.md",
        "garden/notes.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "linked").symlink_to("src")
    async with world(root, project={"path": ".", "hidden": ["hidden/**"]}, garden={"path": "garden"}) as at:
        for verb in ("fs.read", "code.read", "fs.list", "code.outline"):
            error = (await at.gate.call(verb, {"path": asked})).error
            assert error is not None
            told = error.fix.partition("did you mean ")[2].partition("?")[0]
            assert told == (repr(meant) if meant else "")
