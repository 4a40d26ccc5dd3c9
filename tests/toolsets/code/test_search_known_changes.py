"""A mount whose names are known, in which anything may happen: the answer stays that of the patterns."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampling import sampled
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import search as known
from toolgate.workspace.search.query import EXCLUDED, SearchQuery
from toolgate.workspace.search.search import search

from .planted import FILES, Told, ask, patterns, plant

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def plainly(project: Path) -> Iterator[Mounts]:
    with Mounts({"project": project}, watch=False) as opened:
        yield opened


NAMES = [
    "x.py",
    "y.txt",
    ".env",
    "id_rsa",
    "k.PEM",
    ".h",
    ".gitignore",
    "node_modules",
    "secrets",
    "dir",
    "é",
    ".github",
]


@pytest.mark.parametrize("seed", [0, *sampled(range(1, 40), 7, "changes")])
def test_after_any_changes_the_answer_is_that_of_the_patterns(
    project: Path, mounts: Mounts, plainly: Mounts, told: Told, seed: int
) -> None:
    dice = random.Random(seed)
    plant(project, FILES)
    used = 0
    for _ in range(12):
        for _ in range(dice.randint(0, 4)):
            _change(dice, project)
        if dice.random() < 0.6:
            known.learned(mounts)
        files = dice.choice(["", "", "*.py", "id_*", "*e*", "**/*.txt", "a/**", "dir/*"])
        excluded = dice.choice([EXCLUDED, EXCLUDED, (), ("dir",), ("*.txt",)])
        told.clear()
        found = ask(mounts, files=files, excluded=excluded)
        used += not patterns(told[-1])
        assert found == ask(plainly, files=files, excluded=excluded)
        assert found == search(plainly, SearchQuery("hit"), files=files, excluded=excluded, engine="local")
    assert seed or used  # that names were used at all is shown once


def _change(dice: random.Random, project: Path) -> None:
    places = [path for path in project.rglob("*") if path.is_dir() and not path.is_symlink()] + [project]
    place = dice.choice(places)
    target = place / dice.choice(NAMES)
    what = dice.randrange(6)
    if what <= 1 and not os.path.lexists(target):
        target.write_text("hit\n")
    elif what == 2 and not os.path.lexists(target):
        target.mkdir()
        (target / dice.choice(NAMES)).write_text("hit\n")
    elif what == 3 and place != project:
        goal = dice.choice([other for other in places if not other.is_relative_to(place)]) / target.name
        if not os.path.lexists(goal):
            place.rename(goal)
    elif what == 4 and not os.path.lexists(target):
        target.symlink_to(dice.choice(["a.py", "a", "/etc/passwd"]))
    elif what == 5 and place != project and dice.random() < 0.3:
        shutil.rmtree(place)
