"""Documents in pieces: within the budget, nothing lost, code and tables whole, headings carried."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.core.errors import InvalidArgs
from toolgate.recall.chunking import chunk, token_counter

COUNT = token_counter(None)
CODE = "```python\ndef f(x):\n\n    # not a heading\n    return x\n```"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"
DOCUMENT = f"# Guide\n\nSome words here. More words.\n\n## Use\n\nCall it so:\n\n{CODE}\n\n### Values\n\n{TABLE}\nThat was it.\n"


def test_code_blocks_and_tables_stay_whole_and_headings_are_carried() -> None:
    chunks = chunk(DOCUMENT, COUNT, 40, 0)
    assert sum(CODE in each.text for each in chunks) == 1
    assert sum(TABLE in each.text for each in chunks) == 1
    [values] = [each for each in chunks if TABLE in each.text]
    assert values.headings == ("Guide", "Use", "Values")
    assert values.text.startswith("Guide > Use > Values\n\n")
    assert DOCUMENT.splitlines()[values.line - 1] == "| a | b |"


def test_pieces_overlap_by_whole_sentences() -> None:
    text = " ".join(f"Sentence number {n} is here." for n in range(40))
    chunks = chunk(text, COUNT, 60, 14)
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        assert after.text.split(". ")[0] in before.text


def test_an_overlap_as_large_as_the_budget_is_refused() -> None:
    with pytest.raises(InvalidArgs):
        chunk("x", COUNT, 10, 10)


@given(st.text(alphabet="ab \n#|`.", max_size=600), st.integers(8, 60))
def test_every_piece_fits_and_no_word_is_lost(text: str, budget: int) -> None:
    chunks = chunk(text, COUNT, budget, 0)
    for each in chunks:
        assert COUNT(each.text) <= budget + COUNT(" > ".join(each.headings)) + 2
    told = "".join(each.text for each in chunks)
    for letter in "ab":
        assert told.count(letter) >= text.count(letter) - sum(
            line.count(letter) for line in text.splitlines() if line.startswith("#")
        )
