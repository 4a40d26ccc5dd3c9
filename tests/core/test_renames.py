"""What moves is shown as a move, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolgate.core.change import FileChange
from toolgate.core.diff import MAX_PAIRS, moved
from toolgate.core.paths import MountPath

LONG = b"".join(b"line %d\n" % n for n in range(30))


def file(path: str, before: bytes | None, after: bytes | None) -> FileChange:
    return FileChange(MountPath.parse(path), before, after)


def told(*files: FileChange) -> list[tuple[str, str]]:
    return [(each.old_path.shown if each.old_path else "", each.file.path.shown) for each in moved(files)]


def test_the_same_content_elsewhere_has_moved() -> None:
    assert told(file("a", LONG, None), file("b", None, LONG)) == [("a", "b")]


def test_most_of_the_content_elsewhere_has_moved_and_the_most_alike_goes_first() -> None:
    files = (file("a", LONG, None), file("b", None, LONG[:150]), file("c", None, LONG + b"more\n"))
    assert told(*files) == [("", "b"), ("a", "c")]


def test_what_has_little_in_common_is_deleted_and_created() -> None:
    assert told(file("a", LONG, None), file("b", None, b"other\n")) == [("", "a"), ("", "b")]


def test_a_copy_an_empty_file_and_a_changed_one_have_not_moved() -> None:
    assert told(file("b", None, LONG), file("a", LONG, LONG)) == [("", "b"), ("", "a")]
    assert told(file("a", b"", None), file("b", None, b"")) == [("", "a"), ("", "b")]


def test_too_many_files_to_compare_are_shown_one_by_one() -> None:
    many = MAX_PAIRS // 10 + 1
    gone = [file(f"a{n}", LONG + b"%d\n" % n, None) for n in range(many)]
    come = [file(f"b{n}", None, LONG + b"x%d\n" % n) for n in range(many)]
    assert [old for old, _ in told(*gone, *come) if old] == []


contents = st.none() | st.sampled_from([b"", b"x\n", LONG, LONG + b"y\n", b"\xff\0"])


@given(st.lists(st.tuples(contents, contents), max_size=8))
def test_every_file_is_shown_once_whatever_moves(sides: list[tuple[bytes | None, bytes | None]]) -> None:
    files = [file(f"f{n}", before, after) for n, (before, after) in enumerate(sides)]
    names = [name for pair in told(*files) for name in pair if name]
    assert sorted(names) == sorted(each.path.shown for each in files)
    for each in moved(files):
        if each.old_path is not None:
            sources = {one.path: one for one in files}
            assert (each.file.before, each.file.after) == (
                sources[each.old_path].before, sources[each.file.path].after,
            )  # fmt: skip
