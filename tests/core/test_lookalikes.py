"""Look-alike characters are marked and named, and ordinary writing of any language is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.core.lookalikes import MOST_NOTES, marked, notes, positions

ODD = {
    "a Cyrillic letter in a Latin word": ("import \u043es", {7}),
    "a whole word of Cyrillic look-alikes": ("\u0441\u043e\u0440\u0443(x)", {0, 1, 2, 3}),
    "a Greek letter alone in code": ("\u03bf = 1", {0}),
    "a Greek letter in a host": ("g\u03bfogle.com", {1}),
    "an Armenian letter": ("c\u0585de.py", {1}),
    "a Cherokee letter": ("\u13aadmin", {0}),
    "Cherokee letters only": ("\u13df\u13aa", {0, 1}),
    "a Lisu letter": ("\ua4d0ox", {0}),
    "wide letters": ("\uff50wd", {0}),
    "a mathematical letter": ("\U0001d41aws", {0}),
    "a ligature": ("\ufb01le", {0}),
    "a dotless i": ("\u0131d_rsa", {0}),
    "a script g": ("\u0261it", {0}),
    "the Kelvin sign": ("\u212aey", {0}),
    "a long s": ("pa\u017fsword", {2}),
    "a combining acute accent": ("e\u0301cole", {1}),
    "a combining mark over a sign": ("a\u0338", {1}),
    "an enclosing mark": ("x\u20dd", {1}),
    "a division slash": ("a\u2215b", {1}),
    "a fraction slash": ("etc\u2044passwd", {3}),
    "a wide slash": ("a\uff0fb", {1}),
    "a one dot leader": ("evil\u2024com", {4}),
    "a Greek question mark": ("x = 1\u037e", {5}),
    "a letter colon": ("C\ua789x", {1}),
    "an exclamation letter": ("run\u01c3", {3}),
    "a ratio for a colon": ("host\u2236443", {4}),
    "a wide at sign": ("user\uff20host", {4}),
    "digits of two scripts": ("1\u0662", {1}),
    "Hebrew in a Latin word": ("ab\u05d5", {2}),
    "Cyrillic and Greek in one word": ("\u0436\u03bb", {0, 1}),
    "a Coptic letter": ("\u2c9fs", {0}),
    "a Cyrillic word in code with a Cyrillic comment": (
        "\u0441\u043e\u0440\u0443(x)  # \u044d\u0442\u043e",
        {0, 1, 2, 3},
    ),
    "a Cyrillic word beside a Cyrillic text": ("print('\u0436') or \u0441\u0440(x)", {14, 15}),
    "a small capital g in a host": ("\u0262oogle.com", {0}),
    "a small capital s": ("o\ua731.path", {1}),
    "a length mark for a colon": ("http\u02d0//x", {4}),
    "a Katakana letter for a slash": ("ok.example\u30ceevil", {10}),
    "a Chinese numeral for a dash": ("a\u4e00b", {1}),
    "a drawn slash": ("a\u2571b", {1}),
}

ORDINARY = [
    "naïve café Straße ñandú",
    "это а не о чём-то другом",
    "пример",
    "ελληνικά ο",
    "Python入門 と テスト",
    "日本語、中文。한국어 텍스트",
    "x² + y³ ≠ 0 → µs",
    "“quotes” – dash … ©",
    "שלום עולם",
    "مرحبا",
    "हिन्दी",
    "emoji 🚀 ✓",
    "plain ascii",
    "работа с Python, а не о нём",
    "Tシャツのノート",
]


@pytest.mark.parametrize("kind", ODD)
def test_a_look_alike_is_marked_where_it_stands_and_named(kind: str) -> None:
    text, where = ODD[kind]
    assert positions(text) == where
    assert marked(text).count("⟨U+") == len(where)
    told = " ".join(notes([text]))
    assert all(f"U+{ord(text[at]):04X}" in told for at in where)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_writing_of_any_language_is_left_alone(text: str) -> None:
    assert marked(text) == text
    assert notes([text]) == []


def test_more_words_than_can_be_told_are_counted() -> None:
    words = [f"w{chr(0x61 + n % 26)}{n}\u0430" for n in range(MOST_NOTES + 5)]
    told = notes([" ".join(words)])
    assert len(told) == MOST_NOTES + 1
    assert told[-1] == "and 5 more such words"


@given(st.text())
def test_marking_leaves_every_character_and_its_place(text: str) -> None:
    where = positions(text)
    expected = "".join(f"{c}⟨U+{ord(c):04X}⟩" if at in where else c for at, c in enumerate(text))
    assert marked(text) == expected
