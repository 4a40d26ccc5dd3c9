"""fs.write, append, edit, save, ensure_dir, move and delete: what they change, and that undo gives it back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.ports import Question
from toolgate.facade import Gate

from .world import config, tree, world


async def test_a_write_creates_directories_and_undo_removes_them(root: Path) -> None:
    async with world(root) as at:
        start = tree(root)
        result = await at.call("write", path="a/b/c.txt", content="héllo\n")
        assert result.data["bytes_written"] == result.data["new_size"] == 7
        assert result.data["created"]
        assert (root / "a/b/c.txt").read_text() == "héllo\n"
        assert (await at.undo(result)).ok
        assert tree(root) == start


async def test_a_directory_that_others_use_by_now_stays(root: Path) -> None:
    async with world(root) as at:
        result = await at.call("write", path="a/mine", content="x")
        (root / "a/theirs").write_text("theirs")
        assert (await at.undo(result)).ok
        assert tree(root).keys() == {"a", "a/theirs"}


async def test_a_write_keeps_mode_and_line_endings(root: Path) -> None:
    (root / "run.sh").write_bytes(b"#!/bin/sh\r\nold\r\n")
    (root / "run.sh").chmod(0o750)
    async with world(root) as at:
        await at.data("write", path="run.sh", content="#!/bin/sh\nnew\n")
        assert (root / "run.sh").read_bytes() == b"#!/bin/sh\r\nnew\r\n"
        assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


async def test_if_match_guards_with_either_hash(root: Path) -> None:
    (root / "f").write_bytes(b"one \r\n")
    async with world(root) as at:
        hashes = await at.data("hash", path="f")
        assert await at.code("write", path="f", content="x", if_match="sha256:" + "0" * 64) == "conflict"
        assert await at.code("write", path="none", content="x", if_match=hashes["hash"]) == "conflict"
        assert (root / "f").read_bytes() == b"one \r\n"
        first = await at.data("write", path="f", content="two", ifMatch=hashes["hash"])
        assert first["before_hash"] == hashes["raw_hash"]
        await at.data("write", path="f", content="three", if_match=first["new_hash"])
        assert not (root / "none").exists()


async def test_an_append_touches_nothing_but_the_end(root: Path) -> None:
    (root / "f").write_bytes("\ufeffwide\r\n".encode("utf-16-le"))
    async with world(root) as at:
        found = await at.data("append", path="f", text="more\n")
        assert (root / "f").read_bytes() == "\ufeffwide\r\nmore\r\n".encode("utf-16-le")
        assert (found["bytes_written"], found["new_size"]) == (12, 26)
        assert (await at.data("append", path="log", text="a"))["created"]


async def test_an_edit_spans_lines_and_counts_its_matches(root: Path) -> None:
    (root / "f").write_bytes(b"a\r\nb\r\nc\r\na\r\nb\r\n")
    async with world(root) as at:
        ambiguous = await at.call("edit", path="f", find="a\nb", replace="x")
        assert ambiguous.error is not None
        assert ambiguous.error.code == "invalid_args"
        assert "lines 1, 4" in ambiguous.error.message
        assert await at.code("edit", path="f", find="nowhere", replace="x") == "not_found"
        assert await at.code("edit", path="f", find="", replace="x") == "invalid_args"
        assert await at.code("edit", path="gone", find="a", replace="x") == "not_found"
        assert (root / "f").read_bytes() == b"a\r\nb\r\nc\r\na\r\nb\r\n"
        once = await at.data("edit", path="f", find="b\nc", replace="B\nC")
        assert once["match_count"] == 1
        every = await at.data("edit", path="f", find="a", replace="A", all=True)
        assert every["match_count"] == 2
        assert (root / "f").read_bytes() == b"A\r\nB\r\nC\r\nA\r\nb\r\n"


MISSES = {
    "a tab instead of blanks": (
        "def f():\n\treturn 1\n", "    return 1",
        "nearest is line 2: only white space differs: line 2 begins with 1 tab, not with 4 blanks", "2\t\treturn 1",
    ),
    "blanks at the end": (
        "a = 1  \nb = 2\n", "a = 1\nb = 2",
        "nearest is lines 1-2: only white space differs: line 1 ends with 2 blanks, not with no white space",
        "1\ta = 1  \n2\tb = 2",
    ),
    "another depth over lines": (
        "class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1\n",
        "nearest is lines 2-3: only white space differs: line 3 begins with 8 blanks, not with 4 blanks",
        "2\t    def f(self):\n3\t        return 1",
    ),
    "a word that has changed": (
        "import os\n\n\ndef total(prices, rate):\n    return sum(prices) * rate\n",
        "def total(prices):\n    return sum(prices) * rate",
        "nearest is lines 4-5: line 4 is 'def total(prices, rate):', not 'def total(prices):'",
        "4\tdef total(prices, rate):\n5\t    return sum(prices) * rate",
    ),
    "a line in Windows' way": (
        "a = 1\r\n\tb = 2\r\n", "    b = 2",
        "nearest is line 2: only white space differs: line 2 begins with 1 tab, not with 4 blanks", "2\t\tb = 2",
    ),
    "lines in Windows' way, looked for where there are none": (
        "a = 1\nb = 2\n", "a = 1\r\nb = 2", "nearest is lines 1-2: only white space differs: the ends of lines",
        "1\ta = 1\n2\tb = 2",
    ),
}  # fmt: skip


async def test_an_edit_that_would_change_nothing_is_refused_before_anybody_is_asked(root: Path) -> None:
    (root / "f").write_text("a\n")
    async with world(root) as at:
        assert await at.code("edit", path="f", find="a", replace="a") == "invalid_args"


@pytest.mark.parametrize("name", MISSES)
async def test_an_edit_that_misses_shows_the_nearest_lines_and_what_differs(root: Path, name: str) -> None:
    content, find, told, shown = MISSES[name]
    (root / "f").write_bytes(content.encode())
    async with world(root) as at:
        missed = await at.call("edit", path="f", find=find, replace="x")
        assert missed.error is not None
        assert missed.error.code == "not_found"
        assert missed.error.message == f"'f' does not contain the text to find; {told}"
        assert missed.error.fix == f"read it again and copy it exactly. There it says:\n{shown}"
    assert (root / "f").read_bytes() == content.encode()


async def test_an_edit_that_misses_by_far_shows_nothing_and_takes_no_time(root: Path) -> None:
    (root / "f").write_text("".join(f"value_{n} = compute({n})\n" for n in range(100_000)))
    async with world(root) as at:
        far = await at.call("edit", path="f", find="something else altogether", replace="x")
        assert far.error is not None
        assert far.error.fix == "read it again and copy it exactly"
        begun = time.process_time()
        near = await at.call("edit", path="f", find="value_77 = computes(77)", replace="x")
        assert near.data["near"]["line"] == 78
        assert time.process_time() - begun < 5


async def test_an_edit_takes_the_spellings_of_other_editors(root: Path) -> None:
    (root / "f").write_text("a a")
    async with world(root) as at:
        given = {"file_path": "f", "old_string": "a", "new_string": "b", "replace_all": True}
        assert (await at.gate.call("fs.edit", given)).data["match_count"] == 2
        camel = {"filePath": "f", "oldString": "b b", "newString": "c"}
        assert (await at.gate.call("fs.edit", camel)).ok
        assert (root / "f").read_text() == "c"
        shown = at.gate.services.registry.resolve("fs.edit").input_schema["properties"]
        assert set(shown) == {"path", "find", "replace", "all"}, "and lists say each once"


async def test_overlapping_matches_are_ambiguous(root: Path) -> None:
    (root / "f").write_text("aaa")
    async with world(root) as at:
        assert await at.code("edit", path="f", find="aa", replace="b") == "invalid_args"


async def test_an_edit_keeps_the_encoding_or_says_that_it_cannot(root: Path) -> None:
    text = "Grüße aus Köln, schöne Straße für Müller und Söhne über Österreich"
    (root / "f").write_bytes(text.encode("cp1252"))
    async with world(root) as at:
        await at.data("edit", path="f", find="Köln", replace="Münster")
        assert (root / "f").read_bytes() == text.replace("Köln", "Münster").encode("cp1252")
        assert await at.code("edit", path="f", find="Müller", replace="☃") == "invalid_args"


async def test_saves_go_to_scratch_and_nowhere_else(root: Path) -> None:
    async with world(root) as at:
        saved = await at.gate.call("file/save", {"path": "out/r.txt", "content": "x"})
        assert saved.data["path"] == "scratch:out/r.txt"
        assert (root / ".toolgate/scratch/out/r.txt").read_text() == "x"
        for path in ("project:r.txt", "garden:r.txt", "../r.txt", "/r.txt"):
            assert await at.code("save", path=path, content="x") == "outside_mount"
        assert tree(root) == {}
        assert (await at.data("read", path="scratch:out/r.txt"))["content"] == "x"


async def test_a_scratch_save_is_judged_by_the_scratch_row(root: Path) -> None:
    personas = {"maker": {"phase": "contribute"}}
    async with toolgate.open(root, config() | {"personas": personas}, "memory") as gate:
        assert (await gate.call("fs.save", {"path": "r", "content": ""})).ok
        assert (await gate.call("fs.write", {"path": "scratch:r", "content": ""})).ok
        asked = await gate.call("fs.write", {"path": "r", "content": ""}, wait=False)
        moved = await gate.call("fs.move", {"path": "r", "new_path": "s"}, wait=False)
        assert asked.error is not None
        assert asked.error.code == "pending"
        assert moved.error is not None
        assert moved.error.code == "not_allowed"


async def test_ensure_dir_makes_what_is_missing_once(root: Path) -> None:
    async with world(root) as at:
        made = await at.call("ensure_dir", path="a/b")
        assert made.data["created"]
        assert not (await at.data("ensure_dir", path="a/b"))["created"]
        (root / "f").write_text("x")
        assert await at.code("ensure_dir", path="f") == "blocked_path"
        assert await at.code("ensure_dir", path="f/g") == "blocked_path"
        (root / "a/b/theirs").touch()
        refused = await at.undo(made)
        assert refused.error is not None
        assert refused.error.code == "conflict"
        assert (root / "a/b/theirs").exists()


async def test_a_move_takes_all_and_overwrites_nothing(root: Path) -> None:
    (root / "a/empty").mkdir(parents=True)
    (root / "a/run").write_text("x")
    (root / "a/run").chmod(0o711)
    (root / "b").write_text("b")
    async with world(root) as at:
        start = tree(root)
        for bad in ("a", "a/c", "."):
            assert await at.code("move", path="a", new_path=bad) == "invalid_args"
        assert await at.code("move", path="a", new_path="b") == "conflict"
        assert await at.code("move", path="gone", new_path="c") == "not_found"
        assert tree(root) == start
        moved = await at.call("move", path="a", newPath="new/home")
        assert tree(root) == {
            "b": start["b"], "new": ("directory", (root / "new").stat().st_mode & 0o777, b""),
            "new/home": start["a"], "new/home/empty": start["a/empty"], "new/home/run": start["a/run"],
        }  # fmt: skip
        assert (await at.undo(moved)).ok
        assert tree(root) == start


async def test_a_deleted_directory_comes_back_with_modes_and_empty_directories(root: Path) -> None:
    (root / "d/empty").mkdir(parents=True)
    (root / "d/empty").chmod(0o700)
    (root / "d/run").write_bytes(b"\0\xff")
    (root / "d/run").chmod(0o755)
    async with world(root) as at:
        start = tree(root)
        gone = await at.call("delete", path="d")
        assert (gone.data["deleted"], gone.data["count"]) == (["d/run"], 1)
        assert tree(root) == {}
        undone = await at.undo(gone)
        assert tree(root) == start
        assert (await at.undo(undone)).ok
        assert tree(root) == {}


async def test_a_directory_is_not_deleted_with_what_undo_could_not_give_back(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/a").touch()
    async with world(root) as at:
        for spoil in (
            lambda: (root / "d/x").symlink_to("a"),
            lambda: os.mkfifo(root / "d/x"),
            lambda: (root / "d/x").mkdir() or (root / "d/x/.env").touch(),  # type: ignore[func-returns-value]
            lambda: os.link(root / "d/a", root / "d/x"),
        ):
            spoil()
            start = tree(root)
            assert await at.code("delete", path="d") == "blocked_path"
            assert tree(root) == start
            for name in ("d/x/.env", "d/x"):
                path = root / name
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                elif path.is_symlink() or path.exists():
                    path.unlink()
        assert await at.code("delete", path=".") == "blocked_path"
        assert await at.code("delete", path="gone") == "not_found"


async def test_nothing_in_the_garden_is_deleted_or_moved(root: Path) -> None:
    (root / "garden/users/me/parts/a").mkdir(parents=True)
    (root / "garden/users/me/notes.md").write_text("x")
    async with world(root, garden={"path": "garden"}) as at:
        assert await at.code("delete", path="garden:users/me/notes.md") == "blocked_path"
        assert (
            await at.code(
                "move", path="garden:users/me/notes.md", new_path="garden:users/me/parts/a/notes.md"
            )
            == "blocked_path"
        )
        assert (root / "garden/users/me/notes.md").exists()


async def test_undo_removes_nothing_from_the_garden_and_gives_back_what_was_edited_there(root: Path) -> None:
    (root / "garden/users/me/parts/a").mkdir(parents=True)
    (root / "garden/users/me/notes.md").write_text("x")
    async with world(root, garden={"path": "garden"}) as at:
        created = await at.call("write", path="garden:users/me/parts/a/notes.md", content="new")
        edited = await at.call("write", path="garden:users/me/notes.md", content="y")
        refused = await at.undo(created)
        assert refused.error is not None
        assert (refused.error.code, "nothing is deleted" in refused.error.message) == ("conflict", True)
        assert (root / "garden/users/me/parts/a/notes.md").read_text() == "new"
        assert (await at.undo(edited)).ok
        assert (root / "garden/users/me/notes.md").read_text() == "x"


class Meddler:
    """Approves, after changing the project behind the gate's back, once."""

    name = "meddler"

    def __init__(self, file: Path) -> None:
        self.file, self.seen, self.gate = file, list[Question](), None

    async def ask(self, question: Question) -> None:
        assert isinstance(self.gate, Gate)
        self.seen.append(question)
        if len(self.seen) == 1:
            self.file.write_text("came in between")
        await self.gate.answer(question.id, "approve" if len(self.seen) == 1 else "deny", channel=self.name)


@pytest.mark.parametrize("come", ["d/new", "d/a"])
async def test_what_came_between_question_and_deletion_is_not_deleted_unseen(root: Path, come: str) -> None:
    (root / "d").mkdir()
    (root / "d/a").write_text("a")
    meddler = Meddler(root / come)
    personas = {"maker": {"phase": "contribute"}}
    async with toolgate.open(root, config() | {"personas": personas}, "memory", channels=[meddler]) as gate:
        meddler.gate = gate  # type: ignore[assignment]
        result = await gate.call("fs.delete", {"path": "d"})
        assert not result.ok
        assert "remove directory d/" in meddler.seen[0].preview
        assert (root / come).read_text() == "came in between"


async def test_an_edit_that_would_be_too_large_is_refused_before_it_is_made(root: Path) -> None:
    (root / "f").write_text("a" * 1_000_000)
    begun = time.process_time()
    async with world(root) as at:
        assert await at.code("edit", path="f", find="a", replace="b" * 100_000, all=True) == "too_large"
    assert time.process_time() - begun < 5, "the text would have 100 GB"


async def test_what_is_in_a_directory_comes_in_one_order_whoever_made_it_when(root: Path) -> None:
    names = ["d/a.md", "d/b/x.md", "d/b/y.md", "d/b.md", "d/c.md"]
    for name in (*names[::2], *names[1::2]):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    async with world(root) as at:
        assert (await at.data("delete", path="d"))["deleted"] == names


@pytest.mark.parametrize("kind", ["too deep", "not readable"])
@pytest.mark.parametrize("verb", ["delete", "move"])
async def test_a_directory_of_which_a_part_cannot_be_seen_stays_whole(
    root: Path, verb: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    within = root / "d" / ("shut" if kind == "not readable" else "/".join("e" * 140))
    within.mkdir(parents=True)
    (within / "below.txt").write_text("not to be lost sight of")
    (root / "d/beside.txt").write_text("goes with it or stays with it")
    real = os.open

    def refusing(path: str, *rest: Any, **more: Any) -> int:
        if path == "shut":
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    async with world(root) as at:
        start = tree(root)
        result = await at.call(verb, path="d", **({"new_path": "n"} if verb == "move" else {}))
        assert result.error is not None
        assert result.error.code == "blocked_path"
        assert tree(root) == start


async def test_a_name_that_the_journal_cannot_hold_keeps_its_directory(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/plain").write_text("x")
    for name in (b"\xff", b"a\nb", b"a:b"):
        odd = os.fsencode(root / "d") + b"/" + name
        os.close(os.open(odd, os.O_CREAT | os.O_WRONLY))
        async with world(root) as at:
            assert await at.code("delete", path="d") == "blocked_path"
        assert (root / "d/plain").exists()
        os.unlink(odd)


_MOUNTED = """
import asyncio, json, subprocess, sys
from pathlib import Path
import toolgate

async def main(root):
    config = {"version": 1, "default_persona": "p", "personas": {"p": {"allow": ["*"]}}}
    (root / "d/sub").mkdir(parents=True)
    (root / "d/beside").write_text("stays")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(root / "d/sub")], check=True)
    (root / "d/sub/f").write_text("stays")
    async with toolgate.open(root, config, "memory") as gate:
        for path in ("d", "d/sub"):
            error = (await gate.call("fs.delete", {"path": path})).error
            print(error and error.code.value, (root / "d/sub/f").exists(), (root / "d/beside").exists())

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_directory_with_another_file_system_in_it_is_not_emptied(root: Path) -> None:
    inside = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of their own")
    done = subprocess.run(
        [*inside, sys.executable, "-c", _MOUNTED, str(root)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "blocked_path True True\n" * 2, done.stderr
