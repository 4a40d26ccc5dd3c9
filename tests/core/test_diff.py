from __future__ import annotations

import random
import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.change import Change, FileChange
from toolgate.core.diff import render
from toolgate.core.paths import MountPath

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
texts = st.lists(st.sampled_from(["a", "b", "c\r", "", "\x0b-", "\u2028+", "\\ x"]), max_size=40).map(
    "\n".join
)


def shown(before: bytes | None, after: bytes | None) -> str:
    return render(Change((FileChange(MountPath.parse("f"), before, after),)))


def lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def patched(before: str, diff: str) -> str:
    """What `patch` makes of it, strictly: every number and every line must be right."""
    old, out, at = lines(before), list[str](), 0
    todo = diff.split("\n")[:1:-1]
    while todo and (head := HUNK.fullmatch(todo.pop())):
        start, count, new_start, new_count = (1 if part is None else int(part) for part in head.groups())
        out += old[at : start - (count > 0)]
        at = start - (count > 0)
        assert len(out) == new_start - (new_count > 0)
        made = 0
        while todo and not todo[-1].startswith("@@"):
            shown_line = todo.pop()
            mark, line = shown_line[0], shown_line[1:] + "\n"
            if todo and todo[-1].startswith("\\"):
                todo.pop()
                line = line[:-1]
            if mark in " -":
                assert old[at] == line
                at, count = at + 1, count - 1
            if mark in " +":
                out.append(line)
                made += 1
        assert (count, made) == (0, new_count)
    return "".join(out + old[at:])


@given(texts, texts)
@settings(max_examples=fewer(300, 60))
def test_the_diff_of_two_texts_makes_the_one_from_the_other(before: str, after: str) -> None:
    diff = shown(before.encode(), after.encode())
    assert diff.endswith("(no change)") if before == after else patched(before, diff) == after


@pytest.mark.parametrize("size", [10, 400, 5000])
def test_git_applies_the_diff(size: int, tmp_path: Path) -> None:
    dice = random.Random(size)
    before = "".join(f"{dice.randrange(9)}\n" for _ in range(size))
    after = "".join(f"{dice.randrange(9)}\n" for _ in range(size)) + "end"
    (tmp_path / "f").write_text(before)
    diff = shown(before.encode(), after.encode()) + "\n"
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize("count", [190, 1400, 60_000])
def test_no_two_texts_take_long(count: int) -> None:
    dice = random.Random(count)
    for choices in (2, 50, count):
        before, after = (
            "".join(f"{dice.randrange(choices)}\n" for _ in range(count)) for _ in ("before", "after")
        )
        started = time.process_time()
        diff = shown(before.encode(), after.encode())
        assert time.process_time() - started < 10
        assert patched(before, diff) == after


def test_many_files_take_no_longer_than_a_few() -> None:
    """Each of them would be worth the search by itself."""
    before, after = (
        "".join(f"{sign * at if at % 9 == 0 else at}\n" for at in range(5000)).encode() for sign in (1, -1)
    )
    files = [FileChange(MountPath(f"project:{at}"), before, after) for at in range(200)]
    started = time.process_time()
    shown_all = render(Change(tuple(files)))
    assert time.process_time() - started < 15
    assert shown_all.count("-4995\n") >= 200


def test_files_that_come_and_go_are_compared_as_far_as_that_is_quick() -> None:
    body = b"".join(b"%x\n" % (at * 7919) for at in range(30_000))
    gone = [FileChange(MountPath(f"project:old/{at}"), body + b"%d\n" % at, None) for at in range(20)]
    come = [FileChange(MountPath(f"project:new/{at}"), None, b"%d\n" % -at + body) for at in range(20)]
    started = time.process_time()
    shown_all = render(Change((*gone, *come)))
    assert time.process_time() - started < 10
    assert "rename" not in shown_all
    assert "rename from" in render(Change((gone[0], come[0])))


def test_small_edits_of_a_file_are_shown_as_small_hunks() -> None:
    before = [f"{number}\n" for number in range(1000)]
    after = [*before[:10], "new\n", *before[10:500], *before[501:]]
    assert shown("".join(before).encode(), "".join(after).encode()).splitlines()[2:] == [
        "@@ -8,6 +8,7 @@", " 7", " 8", " 9", "+new", " 10", " 11", " 12",
        "@@ -498,7 +499,6 @@", " 497", " 498", " 499", "-500", " 501", " 502", " 503",
    ]  # fmt: skip


def test_a_name_that_changes_in_a_few_places_of_a_long_file_is_shown_as_small_hunks() -> None:
    before = [f"{number}\n" for number in range(10_000)]
    after = ["name\n" if number % 1000 == 7 else line for number, line in enumerate(before)]
    diff = shown("".join(before).encode(), "".join(after).encode())
    assert diff.count("\n@@ ") == diff.count("\n+name") == 10
    assert diff.count("\n-") == 10


def test_the_text_is_shown_if_only_the_other_side_is_binary() -> None:
    gone = shown(b"one\ntwo\n", b"\0\1")
    assert "-one\n-two" in gone
    assert re.search(r"^after is binary: 2 bytes, sha256:[0-9a-f]{64}$", gone, re.M)
    come = shown(b"\0\1", b"one\n")
    assert "+one" in come
    assert re.search(r"^before is binary: 2 bytes, sha256:[0-9a-f]{64}$", come, re.M)


def test_two_binary_sides_and_new_and_removed_binary_files_are_shown_by_size() -> None:
    assert re.search(r"^binary: 1 bytes → 2 bytes, sha256:\w+$", shown(b"\0", b"\0\0"), re.M)
    assert re.search(r"^binary: no file → 2 bytes, sha256:\w+$", shown(None, b"\0\0"), re.M)
    assert shown(b"\0", None).endswith("binary: 1 bytes → no file, removed")


def test_latin_1_is_shown_as_text_with_a_note() -> None:
    diff = shown("caf\u00e9\n".encode("latin-1"), "caf\u00e9s\n".encode())
    assert "before is not UTF-8; it is shown as Latin-1" in diff
    assert "-caf\u00e9\n+caf\u00e9s" in diff
    assert "bytes are not" in shown("\u00e9".encode("latin-1"), "\u00e9".encode())
    assert "binary" in shown(b"\xff\x00", b"\xff\x01")


def test_an_empty_file_is_called_empty() -> None:
    assert shown(None, b"").endswith("(empty file)")
    assert shown(b"", None).endswith("(empty file)")
