"""The source about itself: one class name has one meaning, every module says what it is, and the tree stays small."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "toolgate"
ROOT_MODULES = 9
FILES = 524
LINES = 96_700
"""Ceilings. They are lowered when the tree gets smaller, and raised only with a feature that is new."""
SEVERAL_MEANINGS = {
    "Asked": 2,
    "Denied": 2,
    "Effects": 2,
    "Elsewhere": 2,
    "Expired": 2,
    "Failed": 2,
    "Job": 2,
    "Outcome": 2,
    "Undone": 2,
    "View": 2,
}
"""Class names that still have so many meanings. The list may shrink only."""


@cache
def modules() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def test_one_class_name_has_one_meaning() -> None:
    """Whoever searches for a name finds the one thing it means."""
    meanings = Counter(
        node.name for tree in modules().values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    several = {name: count for name, count in meanings.items() if count > 1}
    assert several == SEVERAL_MEANINGS, "rename the rarer one, or take it off the list"


def test_every_module_says_what_it_is() -> None:
    silent = [path for path, tree in modules().items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []


def test_the_root_has_few_modules() -> None:
    names = sorted(path.name for path in modules() if path.parent == SOURCE)
    assert len(names) <= ROOT_MODULES, f"{names}: a feature lives in features/"


def test_the_tree_stays_small() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in modules())
    assert (len(modules()) <= FILES, lines <= LINES) == (True, True), f"{len(modules())} files, {lines} lines"
