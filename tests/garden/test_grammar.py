"""The grammar: reading and writing back is identical, and an edit changes the bytes of its section and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import fewer
from toolgate.core.errors import CallError, InvalidArgs, NotText, TooLarge
from toolgate.features.garden import edits, grammar
from toolgate.features.garden.grammar import _parsed_headings, _plain_headings
from toolgate.features.garden.layout import template

ROOT = Path(__file__).parents[2]
BLOCKS = st.sampled_from([
    "text", "two\nlines", "- one\n- two\n  more\n  - deep\n", "1. one\n2. two", "```\n## not a heading\n<!-- @anchor: a v1 -->\n```",
    "~~~md\n# no\n~~~", "<!-- a comment\n## hidden\n-->", "> ## quoted\n> text", "    ## code", "### small", "- item\n  ## in the item",
    "<div>\n## in html\n</div>", "| a | b |\n|---|---|", "[x]: /y", "*emph*\n_x_", "\tcode", "\u202eright to left\u202c \U0001f33b", "a\\\nb",
    "* * *", "-", "text\n## after text\n", "- a\n\n  para\n", "1) x",
])  # fmt: skip
HEADINGS = st.sampled_from(
    ["## {}", "## {} ##", "{}\n---", "{}\n===", "# {}", " ## {}", "##\t{}", "## {} #x"]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    parts = [draw(st.sampled_from(["", "---\nid: x\nuser_id: y\n---\n", "---\nid: x\n", "---\n---\n"]))]
    for number in range(draw(st.integers(0, 5))):
        parts.append(draw(HEADINGS).format(f"H{number}") + "\n")
        if draw(st.booleans()):
            parts.append(f"<!-- @anchor: a{number} v1 -->\n")
        parts += [
            draw(BLOCKS) + draw(st.sampled_from(["\n", "\n\n", "\n \n"]))
            for _ in range(draw(st.integers(0, 3)))
        ]
    text = "".join(parts)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return (draw(st.sampled_from(["", "\ufeff"])) + text.replace("\n", draw(ENDS))).encode()


def written(document: grammar.MarkdownFile) -> bytes:
    return (document.bom + document.text()).encode()


def examples() -> list[str]:
    """Those of the CommonMark specification, as markdown-it's own rules name them, and real documents."""
    found = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]
    return [
        *found,
        (ROOT / "README.md").read_text(),
        *json.loads((Path(__file__).parent / "commonmark.json").read_text()),
    ]


def test_reading_and_writing_back_is_identical_for_the_specification_and_real_documents() -> None:
    every = examples()
    assert len(every) > 650
    for text in every:
        for raw in (text.encode(), text.replace("\n", "\r\n").encode(), ("\ufeff" + text).encode()):
            document = grammar.read(raw)
            assert written(document) == raw
            assert all(document.text(one.start, one.end) for one in document.sections)


def test_what_needs_no_parser_is_read_as_the_parser_would() -> None:
    quick = 0
    for text in examples():
        plain = re.split(r"\r\n|\r|\n", text)
        joined = "\n".join(plain)
        if not grammar._TRICKY.search(joined):
            quick += 1
            assert _plain_headings(joined, plain)[0] == _parsed_headings(joined, plain)[0], text
    assert quick > 300


@settings(max_examples=fewer(2000, 150), deadline=None)
@given(documents())
def test_random_documents_are_written_back_as_they_were(raw: bytes) -> None:
    document = grammar.read(raw)
    assert written(document) == raw
    plain = [line.rstrip("\r\n") for line in document.lines]
    plain[: document.front] = [""] * document.front
    parsed = _parsed_headings("\n".join(plain), plain)[0]
    assert [(one.level, one.start, one.heading) for one in document.sections] == [
        (a, b, d) for a, b, _, d in parsed
    ]


ITEM = st.sampled_from(
    [
        "- a",
        "* b",
        "+ c",
        "- *** x",
        "* * *",
        "1. one",
        '- "q" (ev:a)',
        "-",
        "  - deep",
        "- # h",
        "- - x",
        "",
        "text",
        "-\tx",
        "- ```",
        "---",
    ]
)


@settings(max_examples=fewer(3000, 300), deadline=None)
@given(st.lists(ITEM, max_size=6))
def test_items_of_a_plain_list_are_those_that_the_parser_finds(lines: list[str]) -> None:
    document = grammar.read(("## A\n<!-- @anchor: a v1 -->\n" + "\n".join(lines) + "\n").encode())
    section = document.section("a v1")
    assert document.items(section) == document._parsed_items(section)


@settings(max_examples=fewer(2000, 150), deadline=None)
@given(documents(), st.data())
def test_patching_one_section_changes_only_its_bytes(raw: bytes, data: st.DataObject) -> None:
    document = grammar.read(raw)
    if not document.anchors:
        return
    anchor = data.draw(st.sampled_from(document.anchors))
    text = data.draw(BLOCKS)
    section = document.section(anchor)
    edit = data.draw(st.sampled_from([edits.replace, edits.append]))
    try:
        after = edit(raw, anchor, text)
    except InvalidArgs:  # it would reach beyond its section
        return
    before, behind = document.text(0, section.body), document.text(section.end)
    now = after.decode().removeprefix("\ufeff")
    assert now.startswith(before)
    assert now.endswith(behind)
    assert after.startswith(document.bom.encode())
    assert edit(after, anchor, text) == after  # once more changes nothing
    one = grammar.read(after)
    assert one.anchors == document.anchors
    assert [one.hash(one.section(name)) for name in one.anchors if name != anchor] == [
        document.hash(document.section(name)) for name in document.anchors if name != anchor
    ]


@pytest.mark.parametrize(
    ("raw", "anchors", "strays"),
    [
        (b"## A\n<!-- @anchor: a v1 -->\n", ["a v1"], 0),
        (b"## A\n\n<!-- @anchor: a v1 -->\n", [], 1),
        (b"```\n## A\n<!-- @anchor: a v1 -->\n```\n", [], 0),
        (b"# A\n<!-- @anchor: a v1 -->\n", [], 1),
        (b"A\n---\n<!-- @anchor: a v1 -->\n", ["a v1"], 0),
        (b"- ## A\n  <!-- @anchor: a v1 -->\n", [], 1),
        (b"## A\n<!-- @anchor: a v1 --> x\n", [], 1),
        (b"## A\r\n<!-- @anchor: a v1 -->\r\n", ["a v1"], 0),
        (b"---\n## A\n<!-- @anchor: a v1 -->\n---\n", [], 0),
        (b"<!--\n## A\n<!-- @anchor: a v1 -->\n", [], 1),
    ],
)
def test_an_anchor_is_one_only_below_its_heading(raw: bytes, anchors: list[str], strays: int) -> None:
    document = grammar.read(raw)
    assert (document.anchors, len(document.strays)) == (anchors, strays)


def test_what_is_no_text_or_too_large_is_refused_at_once() -> None:
    with pytest.raises(NotText, match="line 2"):
        grammar.read(b"# A\n\xff\n")
    with pytest.raises(TooLarge, match="at most"):
        grammar.read(b"x" * 10_000_000)


LIST = b'## E\n<!-- @anchor: evidence v1 -->\n\n* "late" (ev:a1)\n* tired\n  again\n* "late" too (ev:b2)\n\n## N\n<!-- @anchor: n v1 -->\n'


@pytest.mark.parametrize(
    ("op", "item", "after"),
    [
        ("append", "- new (ev:c3)", LIST.replace(b"(ev:b2)\n", b"(ev:b2)\n* new (ev:c3)\n")),
        ("append", "tired again", LIST),
        ("prune", "tired again", LIST.replace(b"* tired\n  again\n", b"")),
        ("prune", "ev:a1", LIST.replace(b"* \"late\" (ev:a1)\n", b"")),
        ("prune", "nobody said it", LIST),
        ("merge", {"from": ["ev:a1", "ev:b2"], "into": "late twice"},
         LIST.replace(b"* \"late\" (ev:a1)\n", b"* late twice (ev:a1, ev:b2)\n").replace(b"* \"late\" too (ev:b2)\n", b"")),
    ],
)  # fmt: skip
def test_a_list_is_curated_item_by_item(op: str, item: object, after: bytes) -> None:
    assert edits.curate(LIST, "evidence v1", [(op, item)], []) == after
    skipped: list[str] = []
    assert edits.curate(after, "evidence v1", [(op, item)], skipped) == after
    assert skipped


def test_items_that_are_not_there_cannot_be_merged() -> None:
    with pytest.raises(CallError, match="none of the items"):
        edits.curate(LIST, "evidence v1", [("merge", {"from": ["x"], "into": "y"})], [])


def test_a_name_without_its_version_is_refused_where_two_versions_are_there() -> None:
    made = template("part", "me", "work").replace(
        "## Strengths", "## Worries\n<!-- @anchor: concerns v2 -->\nother\n\n## Strengths"
    )
    document = grammar.read(made.encode())
    with pytest.raises(InvalidArgs, match="'concerns' may mean `concerns v1` and `concerns v2`"):
        document.section("concerns")
    assert document.section("concerns v2").heading == "Worries"
    assert document.section("strengths").anchor == "strengths v1"
