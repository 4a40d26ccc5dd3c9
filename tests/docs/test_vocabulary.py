"""docs/vocabulary.md against the code: nothing that exists is missing, nothing is described that does not exist."""

from __future__ import annotations

import inspect

import pytest

from toolgate.core.effects import READS, WRITES
from toolgate.core.errors import CallError, Code
from toolgate.core.event import BY_KIND, EVENTS
from toolgate.gate.gate import ORDER
from toolgate.storage.schema import JOURNAL, PROJECTIONS

from .pages import first_cells, read, section

PAGE = read("docs/vocabulary.md")
WORDS = {
    "Tool", "Toolset", "Change", "Call", "Persona", "Policy", "Decision", "Consent", "Grant", "Gate", "Ledger", "Event",
    "Mount", "Garden", "Catalog", "Recall", "Face",
}  # fmt: skip


def described(heading: str) -> list[str]:
    cells = first_cells(section(PAGE, heading))
    return [cell.strip("`") for cell in cells if cell.startswith("`")]


def test_every_word_of_the_design_is_defined() -> None:
    defined = [cell.strip("*") for cell in first_cells(section(PAGE, "Words")) if cell.startswith("**")]
    assert set(defined) >= WORDS
    assert len(defined) == len(set(defined))


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("Event kinds", list(BY_KIND)),
        ("Error codes", [code.value for code in Code]),
        ("Effects", list(dict.fromkeys([*READS, *WRITES]))),
    ],
)
def test_the_page_describes_exactly_what_the_code_has(heading: str, known: list[str]) -> None:
    assert sorted(described(heading)) == sorted(known)


def test_an_effect_is_described_in_the_words_of_the_code() -> None:
    for row in section(PAGE, "Effects").splitlines():
        if row.startswith("| `"):
            word, read_as, written_as = (cell.strip().strip("`") for cell in row.split("|")[1:4])
            assert (read_as, written_as) == (READS.get(word, ""), WRITES.get(word, ""))


def test_every_event_kind_has_one_sentence_here_and_in_the_code() -> None:
    for event in EVENTS:
        assert (inspect.getdoc(event) or "").endswith(".")


def test_every_error_class_stands_in_the_tree_and_has_a_code() -> None:
    import toolgate.core.errors as errors

    tree = inspect.getdoc(errors) or ""
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    assert all(kind.__name__ in tree for kind in classes)
    used = {kind.code for kind in classes if issubclass(kind, CallError)}
    assert used == set(Code)


def test_the_architecture_lists_the_stages_in_their_order() -> None:
    table = section(read("docs/architecture.md"), "How a call flows").split("### ")[0]
    stages = [row.split("|")[2].strip().strip("`") for row in table.splitlines() if row.startswith("| ")][1:]
    assert stages == [stage.__name__ for stage in ORDER]


def test_the_ledger_page_lists_the_columns_and_projections_as_they_are() -> None:
    page = read("docs/ledger.md")
    columns = [cell.strip("`") for cell in first_cells(section(page, "The row")) if cell.startswith("`")]
    assert tuple(columns) == JOURNAL
    tables = [cell.strip("`") for cell in first_cells(section(page, "Projections")) if cell.startswith("`")]
    assert tables == list(PROJECTIONS)
