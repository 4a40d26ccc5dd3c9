"""Where hunks land, how the files of one diff depend on each other, and what a reject says."""

from __future__ import annotations

import time

import pytest

from toolgate.core.errors import Conflict, TooLarge
from toolgate.workspace.patch import Applied, apply
from toolgate.workspace.patch.parse import parse

Files = dict[str, bytes]


def run(diff: str | bytes, **files: bytes) -> Applied:
    return apply(parse(diff), lambda path: files.get(path.relative))


def after(diff: str | bytes, **files: bytes) -> dict[str, bytes | None]:
    return {file.path.relative: file.after for file in run(diff, **files).files}


def reject(diff: str, **files: bytes) -> Conflict:
    with pytest.raises(Conflict) as caught:
        run(diff, **files)
    return caught.value


HUNK = "--- a/x\n+++ b/x\n@@ -{0},3 +{0},3 @@\n a\n-b\n+B\n c\n"


def test_a_moved_hunk_is_found_nearest_and_its_offset_is_told() -> None:
    done = run(HUNK.format(2), x=b"0\n0\n0\n0\na\nb\nc\n")
    assert (done.files[0].after, done.patched[0].offsets) == (b"0\n0\n0\n0\na\nB\nc\n", (3,))


def test_at_equal_distance_the_lower_place_is_taken_as_git_does() -> None:
    block = b"a\nb\nc\n"
    for between in (b"", b"0\n" * 3, b"0\n" * 297):
        x = b"0\n" + block + between + b"0\n" * 3 + between + block + b"0\n"
        done = run(HUNK.format(5 + between.count(b"\n")), x=x)
        assert done.files[0].after == x.removesuffix(block + b"0\n") + b"a\nB\nc\n0\n"
        assert done.patched[0].offsets == (3 + between.count(b"\n"),)


def test_the_nearest_place_is_found_however_far_it_is() -> None:
    for above, below in ((90, 3000), (3000, 110), (5000, 5000), (101, 100), (100, 101), (1, 9000)):
        lines = [b"a\nb\nc\n", b"0\n" * above, b"0\n" * below, b"a\nb\nc\n", b"end\n"]
        done = run(HUNK.format(4 + above), x=b"".join(lines))
        offset = below if below <= above + 3 else -(above + 3)
        assert done.patched[0].offsets == (offset,), (above, below)


def test_a_hunk_from_line_one_is_looked_for_nowhere_else() -> None:
    error = reject(HUNK.format(1), x=b"0\na\nb\nc\n")
    assert "hunk 1 (line 3 of the diff) does not apply to 'x': line 1 is '0', not 'a'" in error.message
    assert error.data == {
        "path": "x",
        "hunk": 1,
        "line": 3,
        "why": error.data["why"] if error.data else "",
    }


def test_a_hunk_without_context_after_it_belongs_at_the_end() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -4,2 +4,3 @@\n a\n b\n+c\n"
    assert after(diff, x=b"0\na\nb\n") == {"x": b"0\na\nb\nc\n"}
    assert "end of the file" in reject(diff, x=b"0\n0\n0\na\nb\nd\n").message


def test_a_hunk_without_context_is_never_moved() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -2,0 +3 @@\n+new\n"
    assert after(diff, x=b"a\nb\n") == {"x": b"a\nb\nnew\n"}
    assert "no context" in reject(diff, x=b"a\nb\nc\n").message


def test_no_line_may_differ_not_even_in_blanks_or_line_ends() -> None:
    for content, said in (
        (b"a\nb \nc\n", "line 2 is 'b ', not 'b'"),
        (b"a\r\nb\r\nc\r\n", "CRLF and LF"),
        (b"a\nb\nc", "no newline and LF"),
        (b"a\nb\n", "the file ends at line 2"),
    ):
        assert said in reject(HUNK.format(1), x=content).message


def test_crlf_content_stays_crlf() -> None:
    diff = b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"
    assert after(diff, x=b"a\r\nb\r\n") == {"x": b"a\r\nB\r\n"}


def test_lines_of_one_hunk_are_out_of_bounds_for_the_next() -> None:
    diff = HUNK.format(1) + "@@ -4,2 +4,2 @@\n c\n-d\n+D\n"
    assert "hunk 2" in reject(diff, x=b"a\nb\nc\nd\n").message


def test_a_hunk_found_before_the_one_above_it_is_refused() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -6,3 +6,3 @@\n a\n-b\n+B\n c\n@@ -9,3 +9,3 @@\n e\n-f\n+F\n g\n"
    error = reject(diff, x=b"0\ne\nf\ng\n0\na\nb\nc\n0\n")
    assert "before those of the hunk above it" in error.message


def test_files_of_one_diff_are_all_or_nothing() -> None:
    diff = HUNK.format(1) + HUNK.format(1).replace("x", "y")
    assert after(diff, x=b"a\nb\nc\n", y=b"a\nb\nc\n") == {"x": b"a\nB\nc\n", "y": b"a\nB\nc\n"}
    assert reject(diff, x=b"a\nb\nc\n", y=b"").message.endswith("nothing was changed")


def git(old: str, new: str, *lines: str) -> str:
    return f"diff --git a/{old} b/{new}\n" + "".join(line + "\n" for line in lines)


def rename(old: str, new: str) -> str:
    return git(old, new, "similarity index 100%", f"rename from {old}", f"rename to {new}")


def test_two_files_can_change_names() -> None:
    assert after(rename("x", "y") + rename("y", "x"), x=b"1", y=b"2") == {"x": b"2", "y": b"1"}


def test_a_copy_starts_from_what_was_there_before_the_diff() -> None:
    copy = git("x", "y", "similarity index 100%", "copy from x", "copy to y")
    assert after(HUNK.format(1) + copy, x=b"a\nb\nc\n") == {"x": b"a\nB\nc\n", "y": b"a\nb\nc\n"}


def test_two_patches_of_one_file_follow_each_other() -> None:
    second = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-B\n+b!\n c\n"
    assert after(HUNK.format(1) + second, x=b"a\nb\nc\n") == {"x": b"a\nb!\nc\n"}


def test_a_file_deleted_and_created_again_is_changed() -> None:
    diff = git("x", "x", "deleted file mode 100644", "--- a/x", "+++ /dev/null", "@@ -1 +0,0 @@", "-a")
    diff += git("x", "x", "new file mode 100644", "--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+b")
    assert after(diff, x=b"a\n") == {"x": b"b\n"}


NEW = git("x", "x", "new file mode 100644", "--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+a")
GONE = git("x", "x", "deleted file mode 100644", "--- a/x", "+++ /dev/null", "@@ -1 +0,0 @@", "-a")


@pytest.mark.parametrize(
    ("diff", "files", "said"),
    [
        (HUNK.format(1), {}, "there is no 'x'"),
        (NEW, {"x": b""}, "exists already"),
        (GONE, {}, "there is no 'x'"),
        (GONE, {"x": b"a\nb\n"}, "end of the file"),
        (git("x", "x", "deleted file mode 100644"), {"x": b"a"}, "some of its content is not in the diff"),
        (rename("x", "y"), {"x": b"", "y": b""}, "'y' exists already"),
        (rename("x", "y") + "diff --git a/x b/x\n" + HUNK.format(1), {"x": b"a\nb\nc\n"}, "removed earlier"),
        (HUNK.format(1) + rename("x", "y"), {"x": b"a\nb\nc\n"}, "changed earlier"),
        (NEW + GONE, {}, "written earlier"),
        (NEW + NEW, {}, "written earlier"),
        (GONE + GONE, {"x": b"a\n"}, "removed earlier"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_as_the_diff_needs_it_is_named(diff: str, files: Files, said: str) -> None:
    error = reject(diff, **files)
    assert said in error.message
    assert error.message.endswith("nothing was changed")


def test_a_plain_diff_without_old_lines_creates_the_file_where_there_is_none() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
    assert after(diff) == {"x": b"a\n"}
    assert after(diff, x=b"") == {"x": b"a\n"}
    assert "hunk 1" in reject(diff, x=b"b\n").message


def test_a_long_file_of_equal_lines_is_searched_in_time_that_grows_with_its_size() -> None:
    """A search that starts anew at every line would compare four thousand million lines here."""
    size = 200_000
    lines = " a\n" * 20_000
    diff = f"--- a/x\n+++ b/x\n@@ -9,20002 +9,20002 @@\n{lines}-b\n+B\n c\n"
    assert "nowhere else fits" in reject(diff, x=b"a\n" * size).message


def test_no_hunk_takes_long_to_be_found_nowhere() -> None:
    """Long, and unlike the file only at its beginning: looked for backwards, each place would cost its whole length."""
    lines = 100_000
    hunk = " a\n-bbb\n" + " a\n" * lines
    diff = f"--- a/x\n+++ b/x\n@@ -{lines},{lines + 2} +{lines},{lines + 1} @@\n{hunk}"
    started = time.perf_counter()
    assert "nowhere else fits" in reject(diff, x=b"a\n" * (4 * lines)).message
    assert time.perf_counter() - started < 10


def test_many_hunks_take_no_longer_than_they_are_long() -> None:
    count = 20_000
    parts = [f"@@ -{3 * at + 1},3 +{3 * at + 1},3 @@\n {at}\n-b\n+B\n c\n" for at in range(count)]
    before, expected = (
        b"".join(b"%d\n%s\nc\n" % (at, letter) for at in range(count)) for letter in (b"b", b"B")
    )
    patches = parse("--- a/x\n+++ b/x\n" + "".join(parts))
    started = time.perf_counter()
    assert apply(patches, lambda _: before).files[0].after == expected
    assert time.perf_counter() - started < 5


def test_hunks_that_are_all_far_from_their_places_are_too_much() -> None:
    away, count = 400_000, 200
    parts = [f"@@ -{3 * at + 2},3 +{3 * at + 2},3 @@\n {at}\n-b\n+B\n c\n" for at in range(count)]
    before = b"0\n" * away + b"".join(b"%d\nb\nc\n" % at for at in range(count)) + b"end\n"
    with pytest.raises(TooLarge, match="too far from where their headers put them"):
        run("--- a/x\n+++ b/x\n" + "".join(parts), x=before)
