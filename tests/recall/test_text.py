"""Who speaks in a text, and what is left of it for the vectors."""

from __future__ import annotations

import pytest

from toolgate.recall.text import is_turn, speaker, without_names


@pytest.mark.parametrize(
    ("text", "who", "said"),
    [
        ("Mina: I sold the boat.", "Mina", "I sold the boat."),
        ("[8 May 2023] Mina: I sold the boat.", "Mina", "I sold the boat."),
        ("(1:56 pm on 8 May, 2023) Mina: I sold the boat.", "Mina", "I sold the boat."),
        ("2023-05-08 Mina: I sold the boat.", "Mina", "I sold the boat."),
        ("2023-05-08 13:56 - Jean Luc: I sold it.", "Jean Luc", "I sold it."),
        ("2023-05-08T13:56:00Z Mina: I sold it.", "Mina", "I sold it."),
        ("08/05/2023, Mina: I sold it.", "Mina", "I sold it."),
        ("Note: the boat is sold.", "", "Note: the boat is sold."),
        ("The boat is sold at 10:30 today", "", "The boat is sold at 10:30 today"),
        ("https://example.org/boat", "", "https://example.org/boat"),
    ],
)
def test_whoever_speaks_is_known_behind_a_date_too(text: str, who: str, said: str) -> None:
    assert speaker(text) == who
    assert without_names(text, ()) == said


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("Mina: I like it black", True),
        ("2023-05-08 Mina: Great!", True),
        ("Coffee: likes it black", False),
        ("Ports: the server listens on 8443", False),
        ("I like it black", False),
    ],
)
def test_a_title_before_a_fact_is_nobody_who_talks(text: str, turn: bool) -> None:
    assert is_turn(text) is turn
