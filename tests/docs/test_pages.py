"""What every page must be: its links lead somewhere, its code is code, what it includes is what it names."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

from .pages import PAGES, REPOSITORY, anchors, blocks, name_of, prose, read

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_INCLUDE = re.compile(r"<!-- include: (\S+) -->\n```python\n(.*?)^```$", re.M | re.S)
_PART = re.compile(r"<!-- include-part: (\S+) -->\n```python\n(.*?)^```$", re.M | re.S)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
_MODULE = re.compile(r"`((?:src|examples|bench)/[\w/]+\.(?:py|md|sql))`")

every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@every_page
def test_a_relative_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    for link in _LINK.findall(prose(page.read_text("utf-8"))):
        if link.startswith(("https://", "http://")):
            continue
        file, _, heading = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{name_of(page)} links to {link}"
        assert target.is_relative_to(REPOSITORY), f"{name_of(page)} links out of the repository: {link}"
        if heading:
            assert heading in anchors(target.read_text("utf-8")), f"{name_of(page)}: no heading for {link}"


@every_page
def test_a_python_block_compiles(page: Path) -> None:
    for block in blocks(page.read_text("utf-8"), "python"):
        ast.parse(textwrap.dedent(block), name_of(page))


@every_page
def test_an_included_example_is_the_file_itself(page: Path) -> None:
    text = page.read_text("utf-8")
    for name, block in _INCLUDE.findall(text):
        assert block == read(name), f"{name_of(page)} shows another {name}"
    for name, block in _PART.findall(text):
        assert _flush(block) in _flush(read(name)), f"{name_of(page)} shows what {name} does not have"
    assert len(_INCLUDE.findall(text)) + len(_PART.findall(text)) == text.count("<!-- include")


def _flush(text: str) -> str:
    """A part is shown as the formatter sets it by itself: less indented, with other blank lines."""
    return "\n".join(line.lstrip() for line in text.splitlines() if line.strip())


@every_page
def test_a_named_test_and_a_named_module_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for file, test in _TEST.findall(text):
        assert (REPOSITORY / file).is_file(), f"{name_of(page)} names {file}"
        assert not test or re.search(rf"^(async )?def {test}\(", read(file), re.M), f"{file} has no {test}"
    for file in _MODULE.findall(text):
        assert (REPOSITORY / file).is_file() or file == "bench/RESULTS.md", f"{name_of(page)} names {file}"


def test_the_pages_that_matter_are_there() -> None:
    names = {name_of(page) for page in PAGES}
    documents = "vocabulary architecture policy ledger threat-model library capabilities"
    assert {f"docs/{name}.md" for name in documents.split(" ")} <= names
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} <= names


def test_every_page_in_docs_is_reached_from_the_readme() -> None:
    readme = read("README.md")
    for page in PAGES:
        if name_of(page).startswith("docs/"):
            assert f"({name_of(page)})" in readme


def test_every_capability_that_is_built_has_one_row_with_a_module_and_a_test() -> None:
    rows = [
        line.split("|")[1:-1] for line in read("docs/capabilities.md").splitlines() if line.startswith("| ")
    ]
    ids = [row[0].strip() for row in rows[1:]]
    first = "P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P16 P23 A3 A4 A6 G3 G6 G7 G8 X3 X4 X5"
    files = "A2 A5 G1"
    assert len(ids) == len(set(ids))
    assert {*first.split(" "), *files.split(" ")} <= set(ids)
    for row in rows[1:]:
        assert _MODULE.search(row[3]), row[0]
        assert _TEST.search(row[4]), row[0]
