"""Who speaks in a text, and what is left of it for the vectors."""

from __future__ import annotations

import pytest

from toolgate.recall.query import only_asks
from toolgate.recall.text import is_turn, passages, speaker, without_names


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


def test_names_are_left_out_and_words_that_only_name_a_part_are_not() -> None:
    assert without_names("User: Each user has a role, Mina.", ("User", "Mina")) == "Each user has a role."


def test_a_heading_stands_over_each_passage_and_a_first_turn_does_not() -> None:
    long = "\n".join(f"Mina: we sailed to island {n}, and then slept." for n in range(90))
    for first, repeated in (("Sailing in the north", True), ("Rahel: Hi, how was your summer?", False)):
        cut = passages(f"{first}\n{long}")
        assert len(cut) > 2
        assert [piece.startswith(first) for piece in cut[1:]] == [repeated] * len(cut[1:])


@pytest.mark.parametrize(
    ("turn", "asks"),
    [
        ("What did you do?", True),
        ("Oh. How nice! Where was that? And when?", True),
        ("I sold the boat. Why do you ask?", True),
        ("I sold the boat. It was old. Why do you ask?", False),
        ("I am building a budget tracker with three tables, a login and charts of each month, and the deadline is the "
         "tenth of March: can you help me to plan the sprints?", False),
    ],
)  # fmt: skip
def test_a_long_question_tells_what_it_is_about(turn: str, asks: bool) -> None:
    assert only_asks(turn) is asks
