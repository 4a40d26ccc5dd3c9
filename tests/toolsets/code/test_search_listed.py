"""Whatever dotfiles a mount lists and whatever files are chosen: rg, told by patterns, finds all that may be shown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from toolgate.core.errors import ConfigError
from toolgate.policy.hard import MountRules, Named
from toolgate.policy.model import MountSpec
from toolgate.workspace.mounts import Mounts
from toolgate.workspace.search import search as known
from toolgate.workspace.search.query import EXCLUDED, SearchQuery
from toolgate.workspace.search.search import search

FOLDERS = ["", "a", "conf", ".d", ".github", ".ab", "a/.d", "conf/.x", ".ab/.d", ".d/.ab/b", "a/conf"]
FILES = ["f.py", ".f.py", ".gitignore", "sp ", ".sp ", ".eslintrc.json", "x!y", ".e[1]"]
PARTS = [
    "a",
    "conf",
    ".d",
    ".github",
    ".x",
    ".ab",
    "*",
    ".*",
    ".a*",
    "?*",
    "[.]d",
    ".[dx]",
    "{a,conf}",
    "{.x,.d}",
    "**",
]
LAST = [
    "f.py",
    "*.py",
    ".f.py",
    ".gitignore",
    ".*",
    ".x",
    "*",
    "**",
    "{.x,.d,f.py}",
    ".[fx]*",
    "sp ",
    ".s* ",
    "x!*",
    ".d/",
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    for folder in FOLDERS:
        for file in FILES:
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / file).write_text("hit\n")
    return root


def _glob(dice: random.Random) -> str:
    return "/".join([*dice.choices(PARTS, k=dice.choice([0, 0, 1, 1, 2, 3])), dice.choice(LAST)])


def _rules(dice: random.Random) -> dict[str, MountRules]:
    while True:
        dots = None if dice.random() < 0.3 else tuple(_glob(dice) for _ in range(dice.randint(1, 3)))
        hidden = (dice.choice(["a", "a/conf", "**/.x", "conf/*", "f.py"]),) if dice.random() < 0.2 else ()
        try:
            return MountRules.all_of({"project": MountSpec(path=".", dotfiles=dots, hidden=hidden)}, Named())
        except ConfigError:
            continue


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(30))
def test_patterns_are_never_too_narrow(planted: Path, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(8):
        rules = _rules(dice)
        with Mounts({"project": planted}, rules=lambda rules=rules: rules, watch=False) as mounts:
            files = _glob(dice) if dice.random() < 0.9 else ""
            query = SearchQuery("hit", max_matches=500)
            here = search(mounts, query, files=files, engine="local")
            there = search(mounts, query, files=files, engine="rg")
            told = (rules["project"].dotfiles, files)
            assert there.matches == here.matches, told
            assert there.files_searched >= here.files_searched, told


DOTS = [".config", ".config/foo/**", "x/.d/**", "*/.x", ".a*/**"]
DOTTED = [
    ".github/.x", ".github/y", "x/.d/.f", "x/.d/e/f", ".gitignore", ".config/x", ".config/foo/.y", ".config/foo/z", "a/.x",
    ".ab/c", ".ab/.c/.d", "plain", "x/plain", "a/b",
]  # fmt: skip


@pytest.mark.sample(10)
@pytest.mark.parametrize("dotfiles", [None, DOTS])
@pytest.mark.parametrize(
    "files",
    [
        "**/.github/.x", "**/.github/**", "**/.d/.f", ".gitignore/**", ".gitignore", "plain/**", "a/**", "x/**", ".config/**",
        ".config/*", "**/.config/foo/*", "*", "**", "**/*", "**/f", "{a,x}/**", "[ax]/*", ".ab/**", "**/.c/*", "x/.d/", "y",
    ],
)  # fmt: skip
def test_dotfiles_that_are_listed_and_chosen_are_found(
    project: Path, files: str, dotfiles: list[str] | None
) -> None:
    for name in DOTTED:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("hit\n")
    spec = MountSpec(path=".", dotfiles=tuple(dotfiles) if dotfiles else None)
    rules = MountRules.all_of({"project": spec}, Named())
    with Mounts({"project": project}, rules=lambda: rules) as mounts:
        wanted = search(mounts, SearchQuery("hit"), files=files, engine="local").matches
        for _ in range(3):  # by patterns twice, then by names that are known
            assert search(mounts, SearchQuery("hit"), files=files, engine="rg").matches == wanted
            known.learned(mounts)


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    "excluded", [EXCLUDED, (*EXCLUDED, "??"), (*EXCLUDED, "[!a][!a]"), (*EXCLUDED, "??/")]
)
@pytest.mark.parametrize(
    "files", ["", "?", "?.py", "[!a]", "[é]", "[a-é]*", "é/?", "?/**", "*?", "{?,??}.py"]
)
def test_a_place_for_one_character_is_for_any_character_whichever_engine_runs(
    project: Path, files: str, excluded: tuple[str, ...]
) -> None:
    """In rg's globs it is for one byte."""
    for name in ("a", "é", "ab", "é.py", "日本.py", "é/ü", "é/ab", "éé/é.py", "日/b", "?", "[!"):
        place = project / (name if "/" in name or "." in name else f"top/{name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("hit\n")
    with Mounts({"project": project}) as mounts:
        wanted = search(mounts, SearchQuery("hit"), files=files, excluded=excluded, engine="local").matches
        for _ in range(3):  # by patterns twice, then by names that are known
            found = search(mounts, SearchQuery("hit"), files=files, excluded=excluded, engine="rg").matches
            assert found == wanted
            known.learned(mounts)
