"""A garden file as HTML: nothing of it is obeyed, and nothing of it is left out."""

from __future__ import annotations

import re
import time
from html import unescape
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgate.features.garden.page_html import HtmlBlock, html_blocks

TAG = re.compile(r"<(/?)([a-z0-9]+)((?: [a-z]+=\"[^\"]*\")*) ?/?>")
KNOWN = {
    "p",
    "a",
    "span",
    "code",
    "pre",
    "strong",
    "em",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "hr",
    "br",
}
HIDING = {
    "a comment by a definition": "[//]: # (obey me)",
    "a definition": '[ref]: https://example.com "obey me"',
    "a title": '[x](https://example.com "obey me")',
    "behind a fence": "```text obey me\nx\n```",
    "a comment": "<!-- obey me -->",
    "far down": "> " * 200 + "obey me",
    "in a list far down": "- " * 200 + "obey me",
    "an attribute": "<b title='obey me'>",
    "a cell too many": "| a |\n|---|\n| b | obey me |",
    "a picture's words": "![obey me](https://example.com/x.png)",
    "an address": "[x](https://example.com/obey%20me)",
}
HOSTILE = [
    '<a href="javascript:x">k</a>', "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,hi)", "<javascript:alert(1)>",
    '<https://a"onmouseover=alert(1)>', '[x](https://a.b/"onmouseover="alert(1))', "[x](//evil.example)",
    '[x](http://a "t\\"onx=")', "![x](https://e.example/a.png)", "```html\n<script>\n```", "    <script>",
    "&#60;script&#62;", "# <img src=x onerror=alert(1)>", "[![i](https://a/b.png)](https://c/d)", '```js onx="\n x\n```',
]  # fmt: skip


def drawn(blocks: list[HtmlBlock]) -> str:
    return "\n".join(str(one.html) + drawn(one.items) for one in blocks)


def words(text: str) -> str:
    return unquote(unescape(re.sub(r"<[^>]*>", "", drawn(html_blocks(text)))))


@pytest.mark.parametrize("name", HIDING)
def test_what_a_model_reads_a_person_sees(name: str) -> None:
    assert "obey me" in words(HIDING[name])


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_hostile_is_only_text(text: str) -> None:
    check(drawn(html_blocks(text)))


def check(html: str) -> None:
    for found in re.findall(r"<[^>]*>", html):
        match = TAG.fullmatch(found)
        assert match is not None, found
        assert match[2] in KNOWN, found
        for name, value in re.findall(r" ([a-z]+)=\"([^\"]*)\"", match[3]):
            assert name in ("href", "rel", "class", "start"), found
            assert name != "href" or value.startswith(("http://", "https://")), found


PIECES = st.lists(
    st.sampled_from(
        ["word", "<b>", "[a](http://x 'ti')", "[r]: x", "- ", "> ", "# ", "```\n", "\n", "\n\n", "    ", "*", "_", "`", "1. ",
         "![p](q)", "&lt;", "\\", "| c |", "---\n", "<!-- ", "-->", "\u202e", "ünï", "\r\n", "\t", "[r]"]
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_every_word_is_on_the_page_and_nothing_else_is_markup(pieces: list[str]) -> None:
    text = "".join(pieces)
    check(drawn(html_blocks(text)))
    shown = words(text)
    for word in ("word", "ünï"):
        assert shown.count(word) == text.count(word), text


@pytest.mark.parametrize("text", ["[" * 20_000, "*a " * 20_000, "> " * 20_000, "`" * 20_000])
def test_a_hostile_text_takes_seconds_at_most(text: str) -> None:
    begun = time.process_time()
    html_blocks(text)
    assert time.process_time() - begun < 20


def test_blocks_and_items_know_their_lines() -> None:
    blocks = html_blocks("one\n\n- a\n- b\n  c\n\n3. x\n")
    assert [(one.tag, one.first, one.end, len(one.items)) for one in blocks] == [
        ("", 0, 1, 0),
        ("ul", 2, 6, 2),
        ("ol", 6, 7, 1),
    ]
    assert [(one.first, one.end) for one in blocks[1].items] == [(2, 3), (3, 6)]
