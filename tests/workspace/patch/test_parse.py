"""Diffs in every spelling, and malformed ones, each refused with its line and hunk."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from toolgate.core.errors import CallError, InvalidArgs, OutsideMount
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.parse import parse, parse_one

HUNK = "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


def ops(diff: str) -> list[tuple[str, str, str]]:
    return [(patch.op, patch.old.relative, patch.new.relative) for patch in parse(diff)]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("--- a/x\n+++ b/x\n", ("modify", "x", "x")),
        ("--- x\n+++ x\n", ("modify", "x", "x")),
        ("--- src/x\n+++ src/x\n", ("modify", "src/x", "src/x")),
        ("--- b/x\n+++ a/x\n", ("modify", "x", "x")),
        ("--- i/x\n+++ w/x\n", ("modify", "x", "x")),
        ("--- c/x\n+++ c/x\n", ("modify", "c/x", "c/x")),
        ("--- a/x\t2020-01-01 00:00:00.000 +0000\n+++ b/x\t2020-01-01 00:00:00\n", ("modify", "x", "x")),
        ("--- a/x 2020-01-01 00:00:00 +0000\n+++ b/x 2020-01-01 00:00:00 +0100\n", ("modify", "x", "x")),
        ("--- a/with blank\t\n+++ b/with blank\t\n", ("modify", "with blank", "with blank")),
        ('--- "a/\\303\\251\\"\\t"\n+++ "b/\\303\\251\\"\\t"\n', None),
        ('--- "a/\\303\\251"\n+++ "b/\\303\\251"\n', ("modify", "é", "é")),
        ("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n", ("modify", "x", "x")),
        ("diff --git src/x src/x\n--- src/x\n+++ src/x\n", ("modify", "src/x", "src/x")),
        ("diff --git a/x b/y\nsimilarity index 80%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n", ("rename", "x", "y")),
        ("diff --git a/x b/y\nsimilarity index 80%\ncopy from x\ncopy to y\n--- a/x\n+++ b/y\n", ("copy", "x", "y")),
        ("diff --git a/a b b/a b b/c d\nrename from a b\nrename to b/a b b/c d\n--- a/a b\t\n+++ b/b/a b b/c d\t\n", ("rename", "a b", "b/a b b/c d")),
        ("--- a/garden:users/u1/notes.md\n+++ b/garden:users/u1/notes.md\n", ("modify", "users/u1/notes.md", "users/u1/notes.md")),
    ],
)  # fmt: skip
def test_names_are_read_in_every_spelling(header: str, expected: tuple[str, str, str] | None) -> None:
    if expected is None:
        with pytest.raises(CallError):
            parse(header + HUNK)
    else:
        assert ops(header + HUNK) == [expected]


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", ("create", "x", "x")),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", ("delete", "x", "x")),
        ("--- a/x\t1970-01-01 00:00:00.000000000 +0000\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", ("create", "x", "x")),
        ("--- a/x\n+++ b/x\t1970-01-01 01:00:00 +0100\n@@ -1 +0,0 @@\n-a\n", ("delete", "x", "x")),
        ("diff --git a/x b/x\nnew file mode 100644\nindex 0..e\n", ("create", "x", "x")),
        ("diff --git a/x b/x\ndeleted file mode 100644\nindex e..0\n", ("delete", "x", "x")),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", ("rename", "x", "y")),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", ("modify", "x", "x")),
    ],
)  # fmt: skip
def test_creations_deletions_renames_and_modes_are_told_apart(
    diff: str, expected: tuple[str, str, str]
) -> None:
    assert ops(diff) == [expected]


def test_text_around_and_between_files_is_no_part_of_them() -> None:
    mail = (
        "From: somebody\nSubject: [PATCH] it\n\nWhy.\n---\n x | 2 +-\n\n"
        f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{HUNK}-- \n2.39.5\n\nFrom: again\n---\n"
        f"Index: y\n=====\n--- a/y\n+++ b/y\n{HUNK}\nThe end.\n"
    )
    assert ops(mail) == [("modify", "x", "x"), ("modify", "y", "y")]


def test_a_no_newline_mark_takes_the_line_end_away_from_its_own_line() -> None:
    (patch,) = parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n")
    assert (patch.hunks[0].old, patch.hunks[0].new) == ([b"a"], [b"a\n"])


def test_an_empty_line_in_a_hunk_is_an_empty_context_line() -> None:
    (patch,) = parse("--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n+b\n\n")
    assert patch.hunks[0].new == [b"a\n", b"b\n", b"\n"]


HEAD = "--- a/x\n+++ b/x\n"
GIT = "diff --git a/x b/x\n"
MALFORMED = [
    ("", 1, None, "names no file"),
    ("just words\n", 1, None, "names no file"),
    (HUNK, 1, None, "without a file header"),
    (HEAD, 1, None, "no hunk"),
    (HEAD + "words\n", 1, None, "no hunk"),
    (HEAD + "@@ -1,3 +1,3\n a\n", 3, 1, "not a hunk header"),
    (HEAD + "@@ -1,3 +x @@\n", 3, 1, "not a hunk header"),
    (HEAD + "@@ -1,9999999999 +1 @@\n", 3, 1, "not a hunk header"),
    (HEAD + "@@ -1,4 +1,3 @@\n a\n-b\n+B\n c\n", 7, 1, "ends within the hunk; 1 old and 0 new"),
    (HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+B\n c\n", 7, 1, "more lines than its header says"),
    (HEAD + "@@ -1,1 +1,1 @@\n a\n-b\n+B\n", 3, 1, "changes nothing"),
    (HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n-b\n+B\n c\n", 8, 1, "more lines"),
    (HEAD + "@@ -1,3 +1,3 @@\n a\nb\n+B\n c\n", 5, 1, "is no line of a hunk"),
    (HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c", 7, 1, "middle of a line"),
    (HEAD + "@@ -1,2 +1,2 @@\n a\n b\n", 3, 1, "changes nothing"),
    (HEAD + "@@ -0,1 +1 @@\n-a\n+b\n", 3, 1, "counted from 1"),
    (HEAD + "@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n", 4, 1, "follows no line"),
    (HEAD + "@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+b\n", 6, 1, "without a newline"),
    (HEAD + "@@ -1 +1 @@\n-a\n\\ no\n+b\n", 5, 1, "no line of a hunk"),
    (HEAD + "@@ -5 +5 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n", 6, 2, "hunk 1 reaches to line 5"),
    (HEAD + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -3,2 +3,2 @@\n c\n-d\n+D\n", 8, 2, "reaches to line 3"),
    (HEAD + HUNK + "junk\n" + HUNK, 9, None, "without a file header"),
    ("--- a/x\n+++ b/y\n" + HUNK, 1, None, "differ"),
    ("--- old/x\n+++ new/x\n" + HUNK, 1, None, "differ"),
    ("--- a/x\r\n+++ b/x\r\n" + HUNK, 1, None, "CRLF"),
    ('--- "a/x\n+++ b/x\n' + HUNK, 1, None, "does not end"),
    ('--- "a/\\8"\n+++ b/x\n' + HUNK, 1, None, "unknown escape"),
    ('--- "a/\\377"\n+++ "b/\\377"\n' + HUNK, 1, None, "not UTF-8"),
    ("--- a/\n+++ b/\n" + HUNK, 1, None, "does not name a file"),
    (GIT, 1, None, "no hunk"),
    (GIT + "index 1..2 100644\n" + HUNK, 1, None, "hunks without"),
    (GIT + "junk\n", 2, None, "no line of a file's header"),
    (GIT + "--- a/x\n" + HUNK, 2, None, "without `+++`"),
    (GIT + "+++ b/x\n" + HUNK, 2, None, "without `---`"),
    (GIT + "--- a/x\nindex 1..2\n+++ b/x\n" + HUNK, 2, None, "without `+++`"),
    (GIT + "--- a/y\n+++ b/y\n" + HUNK, 1, None, "another"),
    (GIT + "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", 1, None, "new file mode"),
    (GIT + "new file mode 100644\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", 1, None, "/dev/null"),
    (GIT + "old mode 100644\nnew mode 100755\njunk\n" + HEAD + HUNK, 4, None, "no line of a file's header"),
    (GIT + "rename from x\n", 1, None, "go together"),
    (GIT + "old mode 100644\nnew mode 100644\n", 1, None, "are the same"),
    (GIT + "old mode 100644\n", 1, None, "go together"),
    (GIT + "new file mode 100644\ndeleted file mode 100644\n", 1, None, "cannot be both"),
    (GIT + "index 1..2\nindex 1..2\n", 3, None, "twice"),
    (GIT + "index 1..2 1006\n--- a/x\n+++ b/x\n" + HUNK, 2, None, "not a mode"),
    (GIT + "index words\n--- a/x\n+++ b/x\n" + HUNK, 2, None, "hash..hash"),
    (GIT + "index 1..2 120000\n--- a/x\n+++ b/x\n" + HUNK, 2, None, "a symbolic link"),
    (GIT + "new file mode wide\n", 2, None, "not a mode"),
    (GIT + "new file mode 120000\n", 2, None, "a symbolic link"),
    (GIT + "new file mode 160000\n", 2, None, "a submodule"),
    (GIT + "new file mode 100644", 2, None, "middle of a line"),
    (GIT + "index 1..2 100644\nBinary files a/x and b/x differ\n", 3, None, "binary"),
    (GIT + "index 1..2 100644\nGIT binary patch\nliteral 3\n", 3, None, "binary"),
    ("Binary files a/x and b/x differ\n", 1, None, "binary"),
    ("diff --cc x\nindex 1,2..3\n", 1, None, "combined"),
    ("diff --git a/b c d\n", 1, None, "which file"),
]


@pytest.mark.parametrize(("diff", "line", "hunk", "said"), MALFORMED)
def test_a_malformed_diff_is_refused_with_its_line_and_hunk(
    diff: str, line: int, hunk: int | None, said: str
) -> None:
    with pytest.raises(InvalidArgs) as caught:
        parse(diff)
    assert said in caught.value.message
    assert caught.value.fix
    assert caught.value.data is not None
    assert (caught.value.data["line"], caught.value.data["hunk"]) == (line, hunk)


@pytest.mark.parametrize("name", ["../x", "x/../../y", "/etc/passwd", "~/x", "C:/x", "x\\y", "file:///x"])
def test_a_name_that_leads_out_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(OutsideMount, match="line 1 of the diff"):
        parse(
            f"--- a/{name}\n+++ b/{name}\n{HUNK}"
            if name[0] not in "/~"
            else f"--- {name}\n+++ {name}\n{HUNK}"
        )


def test_a_diff_for_one_file_may_be_hunks_alone_and_must_be_about_that_file() -> None:
    notes = MountPath.parse("docs/notes.md")
    for header in (
        "",
        "Here it is:\n\n",
        "--- a/docs/notes.md\n+++ b/docs/notes.md\n",
        "--- notes.md\n+++ notes.md\n",
    ):
        assert parse_one(notes, header + HUNK).new == notes
    for header, said in (
        ("--- a/other.md\n+++ b/other.md\n", "it is about 'other.md'"),
        ("--- a/tes.md\n+++ b/tes.md\n", "it is about 'tes.md'"),
        (f"--- a/notes.md\n+++ b/notes.md\n{HUNK}--- a/x\n+++ b/x\n", "a second file"),
        (
            "diff --git a/x b/docs/notes.md\nrename from x\nrename to docs/notes.md\n--- a/x\n+++ b/docs/notes.md\n",
            "it is a rename",
        ),
    ):
        with pytest.raises(InvalidArgs, match=said):
            parse_one(notes, header + HUNK)
    with pytest.raises(InvalidArgs, match="no hunk"):
        parse_one(notes, "words\n")


@pytest.mark.parametrize(
    "header",
    [
        "--- a/x" + " " * 60_000 + "y\n+++ b/x\n",
        "diff --git " + " x" * 30_000 + "\n--- a/x\n+++ b/x\n",
        "diff --git " + "a/x " * 500_000 + "\n--- a/x\n+++ b/x\n",
        "--- a/x\t" + "2" * 2_000_000 + "\n+++ b/x\n",
        '--- "' + "\\101" * 500_000 + '"\n+++ b/x\n',
    ],
    ids=["blanks", "names", "long", "date", "escapes"],
)
def test_a_header_made_to_be_slow_is_read_or_refused_at_once(header: str) -> None:
    begun = time.process_time()
    with suppress(InvalidArgs, OutsideMount):
        parse(header + "@@ -1 +1 @@\n-a\n+b\n")
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("name", ["x", "a b", "d e/f g", "a/b c", "long " * 20 + "name"])
def test_a_name_with_blanks_is_found_in_the_middle_of_its_header(name: str) -> None:
    mode = "old mode 100644\nnew mode 100755\n"
    (git,) = parse(f"diff --git a/{name} b/{name}\n{mode}")
    assert git.new.relative == name
    (bare,) = parse(f"diff --git {name} {name}\n{mode}") if "/" not in name else (git,)
    assert bare.new.relative == name
