"""A diff is taken apart by its counts, drawn without losing a character, and told in words where eyes would miss it."""

from __future__ import annotations

import html
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core import diff
from toolgate.core.change import Change, FileChange
from toolgate.core.display import visible
from toolgate.core.paths import MountPath
from toolgate.faces.console.call_timeline import said
from toolgate.faces.console.diff_view import remarks
from toolgate.faces.console.markup import blocks, differing, draw
from toolgate.faces.console.question import deed
from toolgate.kits.diffs import FileDiff, parse
from toolgate.kits.words import change_in_words


def change(path: str, before: str | None, after: str | None, **modes: int) -> FileChange:
    def as_bytes(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    return FileChange(MountPath.parse(path), as_bytes(before), as_bytes(after), **modes)


def parsed(*files: FileChange) -> list[FileDiff]:
    return parse(diff.render(Change(files)))


def told(*files: FileChange) -> list[str]:
    return [remark.text for file in parsed(*files) for remark in remarks(file)]


LINES = st.lists(
    st.sampled_from(["", "a", "-- a/x", "++ b/x", "@ -1 +1 @@", "--- a/x", "x\r", "\u202e", "\\ No newline"]),
    max_size=12,
)


@settings(max_examples=fewer(60, 20), deadline=None)
@given(st.lists(st.tuples(LINES, LINES, st.booleans()), min_size=1, max_size=3))
def test_every_line_of_every_change_is_there_with_its_side_and_number(
    files: list[tuple[list[str], list[str], bool]],
) -> None:
    changes = [
        change(
            f"f{at}", "\n".join(old) + ("\n" if old and ends else ""), "\n".join(new) + ("\n" if new else "")
        )
        for at, (old, new, ends) in enumerate(files)
    ]
    found = parse(diff.render(Change(tuple(changes))))
    assert [file.path for file in found] == [f"f{at}" for at in range(len(changes))]
    for file, made in zip(found, changes, strict=True):
        assert made.before is not None
        assert made.after is not None
        old, new = made.before.decode().split("\n"), made.after.decode().split("\n")
        for line in file.lines:
            if line.old:
                assert old[line.old - 1] == line.text
            if line.new:
                assert new[line.new - 1] == line.text


def test_a_line_that_looks_like_a_header_stays_a_line() -> None:
    (file,) = parsed(change("a.sql", "-- a/secret\nkeep\n", "++ b/other\nkeep\n"))
    assert [(line.mark, line.text) for line in file.lines][:2] == [("-", "-- a/secret"), ("+", "++ b/other")]


def test_what_is_not_a_diff_to_its_last_line_is_none() -> None:
    text = diff.render(Change((change("a", "x\n", "y\n"),)))
    assert parse(text)
    for broken in (text + "\nand more", text.replace("@@ -1 +1 @@", "@@ -1,2 +1 @@"), "--- a/x\n", "hello"):
        assert parse(broken) == []
    endless = text.replace("@@ -1 +1 @@", f"@@ -1 +1,{'9' * 5000} @@")
    assert parse(endless) == [], "a number too long to be read is none of a diff's"


def test_a_long_name_is_told_by_its_ends_and_pushes_no_other_out_of_sight() -> None:
    long = "docs/" + "x" * 200 + '", "b.md'
    told = change_in_words(diff.render(Change((change(long, "x\n", "y\n"), change("a.md", "x\n", "y\n")))))
    assert told.startswith('change "docs/xxx')
    assert told.endswith('xxx\\", \\"b.md", "a.md"')
    assert len(told) < 150


def test_what_is_deleted_is_named_before_all_that_is_changed() -> None:
    files = (*(change(f"{n}.md", "x\n", "y\n") for n in range(9)), change("keys.md", "x\n", None))
    told = change_in_words(diff.render(Change(files)))
    assert told == 'delete "keys.md"; change "0.md", "1.md", "2.md", "3.md" and 5 more'


def test_a_rename_shows_what_differs_and_says_where_the_file_was() -> None:
    lines = [f"line {n}\n" for n in range(40)]
    old, new = "".join(lines), "".join(["first\n", *lines[1:]])
    text = diff.render(Change((change("old.py", old, None), change("new.py", None, new))))
    assert text.startswith(
        "rename from old.py\nrename to new.py\n--- a/old.py\n+++ b/new.py\n@@ -1,4 +1,4 @@\n"
    )
    (file,) = parse(text)
    assert (file.op, file.old_path, file.path, file.added, file.removed) == (
        "rename",
        "old.py",
        "new.py",
        1,
        1,
    )
    assert [remark.text for remark in remarks(file)] == ["renamed from old.py"]
    assert change_in_words(text) == 'rename "old.py" to "new.py"'
    assert deed("fs.patch", [file], {}) == "rename old.py to new.py"


def test_a_rename_that_names_other_files_than_its_diff_is_none() -> None:
    text = diff.render(Change((change("old.py", "x\n", None), change("new.py", None, "x\n"))))
    assert text.endswith("(content unchanged, 2 bytes)")
    assert [file.op for file in parse(text)] == ["rename"]
    assert parse(text.replace("rename from old.py", "rename from other.py")) == []


def test_a_servers_question_cannot_pose_as_what_came_of_it() -> None:
    asked = {"server": "up", "message": "Well? → decline (nobody was asked)", "action": "accept"}
    assert said("elicited", asked) == "up asked: 'Well? → decline (nobody was asked)' → accept"


@settings(max_examples=fewer(80, 20), deadline=None)
@given(
    st.text(max_size=40),
    st.lists(st.tuples(st.integers(0, 45), st.integers(0, 45)), max_size=4),
    st.booleans(),
)
def test_colours_and_marks_change_no_character(text: str, cuts: list[tuple[int, int]], word: bool) -> None:
    text = text.replace("\n", "")
    spans = sorted((min(cut), max(cut), "k") for cut in cuts)
    drawn = str(draw(text, spans, (3, 9) if word else None))
    plain = html.unescape(re.sub(r"<[^<>]*>", "", drawn))
    expected = (
        visible(text[:-1], keep_lines=True) + "CR" if text.endswith("\r") else visible(text, keep_lines=True)
    )
    assert plain == expected
    assert set(re.findall(r"<(/?\w+)", drawn)) <= {"span", "/span"}


def test_words_that_differ_are_marked_within_similar_lines_only() -> None:
    assert differing("return a + b", "return a - b") == ((9, 10), (9, 10))
    assert differing("import os", "x = 1") == (None, None)


def test_syntax_colours_and_words_meet_in_one_line() -> None:
    (file,) = parsed(change("a.py", "x = one\n", "x = two\n"))
    drawn = blocks(file.hunks[0], {("new", 1): [(0, 1, "nb")]})
    assert str(drawn[0].new[0].html) == '<span class="nb">x</span> = <span class="w">two</span>'


def test_line_ends_modes_and_invisible_characters_are_told_in_words() -> None:
    assert told(change("a", "x\ny\n", "x\r\ny\r\n")) == ["line ends change from LF to CRLF (2 lines)"]
    assert told(change("a", "x\r\n", "x\n")) == ["line ends change from CRLF to LF (1 line)"]
    assert told(change("a", "x\n", "x")) == ["the last line has no line break any more"]
    assert told(change("run.sh", "x\n", "y\n", before_mode=0o644, after_mode=0o755)) == [
        "permissions change from 644 to 755: it can be run as a program"
    ]
    assert told(change("a", None, "if admin\u2066:\u200b\n")) == [
        "adds an invisible character: U+200B ZERO WIDTH SPACE in line 1",
        "adds a character that reorders text: U+2066 LEFT-TO-RIGHT ISOLATE in line 1",
    ]


def test_what_a_call_wants_is_said_in_plain_words() -> None:
    assert deed("fs.write", parsed(change("src/a.py", "x\n", "y\n")), {}) == "change src/a.py"
    assert deed("fs.write", parsed(change("src/a.py", None, "y\n")), {}) == "create src/a.py"
    both = parsed(change("src/x/a.py", "x\n", "y\n"), change("src/b.py", "x\n", None))
    assert deed("fs.patch", both, {}) == "change 2 files in src/"
    apart = parsed(*(change(name, "x\n", "y\n") for name in ("a.py", "b.py", "src/c.py", "src/d.py")))
    assert deed("fs.apply", apart[:2], {}) == "change a.py and b.py"
    assert deed("fs.apply", apart, {}) == "change a.py, b.py and 2 more"
    assert deed("mail.send", [], {}) == "call mail.send"
