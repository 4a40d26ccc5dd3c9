"""Every form of every secret is found, ordinary text is left alone, and hostile text costs no more than long text."""

from __future__ import annotations

import random
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.secrets.finder import Finder
from toolgate.secrets.redactor import TOO_DEEP, Stream, VaultRedactor, cleaned
from toolgate.secrets.vault import Vault

from .corpus import VALUES, bare, written

FINDER = Finder(VALUES)
SOURCES = Path(__file__).parents[2] / "src"
DOCS = Path(__file__).parents[2] / "docs"


def clean(value: Any) -> Any:
    return cleaned(FINDER, value)


@pytest.mark.parametrize("name", VALUES)
def test_every_form_of_a_secret_is_masked(name: str) -> None:
    for label, text in written(VALUES[name]):
        told = clean(f"before {text} after")
        assert f"[secret:{name}]" in told, label
        assert bare(text.strip("\"'b")) not in bare(told), label
        assert bare(VALUES[name]) not in bare(told), label
        assert told.startswith("before "), label
        assert told.endswith(" after"), label


def test_nothing_of_the_value_is_left_beside_the_mask() -> None:
    """Of the plain form not one character; of base64 not the characters that hold some of its bits."""
    assert clean("x" + VALUES["GITHUB"] + "y") == "x[secret:GITHUB]y"
    told = clean(dict(written(VALUES["GITHUB"]))["base64"])
    assert told == "[secret:GITHUB]"


def test_bytes_keys_numbers_and_pieces_in_a_list_are_masked_too() -> None:
    value = VALUES["GITHUB"]
    assert clean(value.encode()) == b"[secret:GITHUB]"
    assert clean({value: [1, {"a": (value, None)}]}) == {
        "[secret:GITHUB]": [1, {"a": ["[secret:GITHUB]", None]}]
    }
    assert clean({"n": int(VALUES["DIGITS"])}) == {"n": "[secret:DIGITS]"}
    assert "".join(clean([value[:9], value[9:17], value[17:]])).count("secret:GITHUB") == 3
    assert "".join(clean(list(value))) == "[secret:GITHUB]" * len(value)


def test_utf_16_and_a_diff_with_its_margin_are_read_too() -> None:
    value = VALUES["STRIPE"]
    assert b"[secret:STRIPE]" in clean(b"x" + value.encode("utf-16-le"))
    pieces = [value[at : at + 5] for at in range(0, len(value), 5)]
    shown = "@@ -0,0 +1,9 @@\n" + "\n".join("+" + piece for piece in pieces)
    assert "[secret:STRIPE]" in clean(shown)


def test_a_value_that_is_nested_too_deeply_to_be_searched_is_left_out() -> None:
    deep: Any = VALUES["GITHUB"]
    for _ in range(100_000):
        deep = [deep]
    assert clean(deep) == TOO_DEEP
    while isinstance(deep, list):  # taken apart step by step: Python's own recursion would end the process
        deep = deep[0]


def test_what_holds_no_secret_comes_back_as_the_very_same_object() -> None:
    value = {"a": ["text", 7, None, True, 2**80, 1.5e300, b"bytes"], "k": {"x": "y"}}
    assert clean(value) is value


def test_our_own_sources_and_pages_are_not_mangled() -> None:
    for path in (*SOURCES.rglob("*.py"), *DOCS.rglob("*.md")):
        text = path.read_text()
        assert clean(text) is text, path


WORDS = st.text(string.ascii_letters + string.digits + " \n\t.,;:%&\\/+=-_#\"'<>{}[]()ü密🔑", max_size=400)


@given(WORDS, st.sampled_from(sorted(VALUES)), WORDS)
def test_ordinary_text_around_a_secret_is_kept_as_it_is(before: str, name: str, after: str) -> None:
    assert clean(before) == before
    told = clean(before + " . " + VALUES[name] + " . " + after)
    assert told == before + " . " + f"[secret:{name}]" + " . " + after


@given(st.randoms(use_true_random=False), st.sampled_from(sorted(VALUES)))
def test_any_mixture_of_escapes_is_undone(dice: random.Random, name: str) -> None:
    made = ""
    for char in VALUES[name]:
        percent = "".join(f"%{byte:02x}" for byte in char.encode())
        made += percent if char in "%&\\" else dice.choice([char, percent, f"&#{ord(char)};"])
    assert clean("x " + made + " y") == f"x [secret:{name}] y"


class Open(Vault):
    """A vault without a file."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"), "p")
        self.finder = FINDER


@given(st.data())
def test_a_stream_masks_across_any_border_of_its_pieces(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=5))
    text = b" ~ ".join([b"x" * data.draw(st.integers(0, 90_000)), *(VALUES[name].encode() for name in names)])
    text += b" ~ " + b"y" * data.draw(st.integers(0, 90_000))
    stream = Stream(VaultRedactor(b"k", Open()))
    made, at = b"", 0
    while at < len(text):
        size = data.draw(st.integers(1, 60_000))
        made += stream.feed(text[at : at + size])
        at += size
    assert made + stream.close() == clean(text)


def test_one_byte_at_a_time_is_masked_and_not_searched_each_time() -> None:
    text = b"a" * 50_000 + VALUES["GITHUB"].encode() + b"b" * 50_000
    stream = Stream(VaultRedactor(b"k", Open()))
    begun = time.process_time()
    told = b"".join(stream.feed(text[at : at + 1]) for at in range(len(text))) + stream.close()
    assert told == b"a" * 50_000 + b"[secret:GITHUB]" + b"b" * 50_000
    assert time.process_time() - begun < 5


HOSTILE = {
    "escapes": "%41",
    "backslashes": "\\",
    "signs": "&",
    "half escapes": "\\u00",
    "entities": "&#65;",
    "beginnings": VALUES["GITHUB"][:-1],
    "groups": VALUES["REPEATING"][:-1],
    "blanks": "a ",
    "hunks": "\n@@ -1 +1 @@\n+",
    "secrets": VALUES["EIGHT"] + "\n",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_takes_time_in_proportion_to_its_length(what: str) -> None:
    def cost(size: int) -> float:
        text = (HOSTILE[what] * size)[:size].encode()
        return min(_timed(text) for _ in range(2))

    small, large = cost(50_000), cost(400_000)
    assert large < 40 * small + 0.1
    assert large < 5


def _timed(text: bytes) -> float:
    begun = time.process_time()
    FINDER.spans(text)
    return time.process_time() - begun
