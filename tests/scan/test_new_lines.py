"""Only what a change adds is a finding; and nothing that it adds is missed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.change import Change, FileChange
from toolgate.core.finding import Finding
from toolgate.core.paths import MountPath
from toolgate.secrets.scan import ContentScanner

from .corpus import AWS, GITHUB, KEY_LINES, PRIVATE_KEY

PATH = MountPath.parse("a.txt")
TOKENS = (GITHUB, AWS)
LINES = st.lists(
    st.sampled_from(["", "x = 1", "y = 2", "# end", *(f"a = {token}" for token in TOKENS), *(f"b: {token}" for token in TOKENS)]),
    max_size=8,
)  # fmt: skip


def scanned(before: str | None, after: str | None, path: MountPath = PATH) -> tuple[Finding, ...]:
    old = before.encode() if before is not None else None
    new = after.encode() if after is not None else None
    return ContentScanner().scan(Change((FileChange(path, old, new),))).findings


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=fewer(150, 30), deadline=None)
def test_a_token_on_a_line_that_is_new_is_never_missed_and_an_old_one_never_found(
    old: list[str], new: list[str], end: str
) -> None:
    found = scanned(end.join(old), end.join(new))
    lines = {finding.line for finding in found}
    for number, line in enumerate(new, start=1):
        if any(token in line for token in TOKENS):
            added = new.count(line) > old.count(line)
            assert (number in lines) is added, (old, new, found)
    assert all(any(token in new[line - 1] for token in TOKENS) for line in lines)


def test_a_token_that_comes_together_from_two_writes_is_found() -> None:
    half, rest = GITHUB[:20], GITHUB[20:]
    assert scanned("a\n", f"a\nx = {half}") == ()
    assert [one.rule for one in scanned(f"a\nx = {half}", f"a\nx = {half}{rest}")] == ["github-token"]


def test_a_key_that_comes_line_by_line_is_found_with_its_first_body_line() -> None:
    header, *body = PRIVATE_KEY.splitlines()
    assert scanned("", f"{header}\n") == ()
    before = f"{header}\n"
    after = before + body[0] + "\n"
    assert [one.rule for one in scanned(before, after)] == ["private-key"]
    assert [one.rule for one in scanned(after, after + body[1] + "\n")] == ["private-key"]


def test_lines_that_are_only_brought_together_are_new_as_a_whole() -> None:
    apart = ["import socket", *["#" * 60] * 40, "os.dup2(s.fi" + "leno(), 0)", "pty.spawn('/bin/sh')"]
    together = [apart[0], *apart[-2:], *apart[1:-2]]
    assert scanned("\n".join(apart), "\n".join(apart) + "\n") == ()
    assert [one.rule for one in scanned("\n".join(apart), "\n".join(together))] == ["reverse-shell"]


def test_a_renamed_file_is_quiet_and_a_copy_of_it_is_not() -> None:
    content = PRIVATE_KEY.encode()
    old, new, more = (MountPath.parse(name) for name in ("a.txt", "b.txt", "c.txt"))
    gone, come = FileChange(old, content, None), FileChange(new, None, content)
    scan = ContentScanner().scan
    assert scan(Change((gone, come))).findings == ()
    copied = scan(Change((gone, come, FileChange(more, None, content)))).findings
    assert [one.path for one in copied] == [more]


def test_the_secrets_to_mask_are_those_of_both_sides_and_show_in_no_repr() -> None:
    change = Change((FileChange(PATH, f"a {GITHUB}\n".encode(), f"b {AWS}\n{PRIVATE_KEY}".encode()),))
    scan = ContentScanner().scan(change)
    assert {GITHUB, AWS, *KEY_LINES} <= set(scan.values)
    assert GITHUB not in repr(scan)


def test_with_more_secrets_than_can_be_told_apart_all_count_as_new_and_each_is_hidden_where_it_stands() -> (
    None
):
    many = "".join(f"k{number} = {GITHUB}\n" for number in range(1200))
    change = Change((FileChange(PATH, many.encode(), f"{many}other = {AWS}\n".encode()),))
    scan = ContentScanner().scan(change)
    assert {one.rule for one in scan.findings} == {"github-token", "aws-access-key"}
    assert len(scan.findings) == 21
    assert ContentScanner().hide(many.encode()) == many.replace(GITHUB, "[masked]").encode()


def test_the_name_of_a_new_file_is_scanned_too_and_a_secret_in_it_is_not_repeated() -> None:
    path = MountPath.parse(f"keys/{GITHUB}.txt")
    for made in (scanned(None, "x = 1", path), scanned(None, "", path)):
        (found,) = made
        assert (found.kind, found.rule, found.line, found.column) == ("secret", "github-token", 0, 0)
        assert GITHUB not in f"{found.path} {found.excerpt}"
    assert scanned("x = 1", "x = 2", path) == ()  # the name was there before
    assert [found.rule for found in scanned(None, "", MountPath.parse("a\u202etxt.exe"))] == ["bidi-control"]
    directory = FileChange(path, None, b"", kind="directory")
    assert [found.line for found in ContentScanner().scan(Change((directory,))).findings] == [0]
