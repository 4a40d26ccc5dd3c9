"""Text from outside: what is spelled out for a human who decides, for one who reads, and in a pipe."""

from __future__ import annotations

import pytest

from toolgate.core.display import harmless, legible, visible

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ORDINARY = (
    "«\u00a0a\u00a0»",
    "日\u3000本",
    "\u2764\ufe0f",
    "1\ufe0f\u20e3",
    FAMILY,
    "\u2764\ufe0f\u200d\U0001f525",
    "葛\U000e0100",
)
NEVER = (
    "\x1b", "\x07", "\x0b", "\x7f", "\x85", "\x9b", "\u202a", "\u202e", "\u2066", "\u2069", "\U000e0041", "\ud800",
)  # fmt: skip


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_spelled_out_only_where_a_human_decides(text: str) -> None:
    assert "⟨U+" in visible(text)
    assert legible(text) == text
    assert harmless(text) == text


@pytest.mark.parametrize("char", NEVER)
def test_what_speaks_to_a_terminal_reorders_or_hides_is_spelled_out_everywhere(char: str) -> None:
    for show in (visible, legible, harmless):
        for keep in (False, True):
            assert show(f"a{char}b", keep_lines=keep) == f"a⟨U+{ord(char):04X}⟩b"


@pytest.mark.parametrize(
    "text",
    ["a\ufe0f\ufe0e", "\u2764\ufe0f\ufe0f", "a\ufe0fb", "a\u200db", "\u200d", "\u2764\u200da", "\u200b"],
)
def test_selectors_and_joiners_that_no_writing_needs_are_seen(text: str) -> None:
    assert "⟨U+" in legible(text)


def test_line_ends_stay_where_they_are_wanted_and_cannot_break_a_line_elsewhere() -> None:
    assert harmless("a\tb\r\nc\f", keep_lines=True) == "a\tb\r\nc\f"
    assert harmless("a\tb\r\nc\f") == "a\tb⟨U+000D⟩⟨U+000A⟩c⟨U+000C⟩"
    assert legible("a\tb\nc", keep_lines=True) == "a\tb\nc"
    assert legible("a\tb\r\nc\f") == "a\tb⟨U+000D⟩⟨U+000A⟩c⟨U+000C⟩"
    assert (visible("a\tb\n"), visible("a\tb\n", keep_lines=True)) == ("a⟨U+0009⟩b⟨U+000A⟩", "a\tb\n")
