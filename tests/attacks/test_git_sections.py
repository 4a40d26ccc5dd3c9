"""What belongs to a blocked name is shown under no other one, however alike git prints them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from repositories import Repo, data, history
from toolgate.workspace.git.patch import parse

from .hostile import SECRET

BODY = "".join(f"line {number}\n" for number in range(30))
SHUT = "".join(f"{SECRET} {number}\n" for number in range(30))


async def test_two_renames_with_the_same_first_line_are_told_apart(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"x": BODY, "x b/secrets": SHUT})
    repo.commit(
        "two",
        {"x": None, "x b/secrets": None, "secrets b/zz": BODY + "more\n", "zz": SHUT + f"{SECRET} new\n"},
    )
    printed = repo.git("show", "-M", "--format=").splitlines()
    assert printed.count("diff --git a/x b/secrets b/zz") == 2, "git prints the same line for both"
    async with history(repo.root) as gate:
        shown = await data(gate, "code.show", commit="HEAD")
        logged = await data(gate, "code.log", include_diff=True)
        compared = await data(gate, "code.diff", base="HEAD~1", compare="HEAD")
    assert SECRET not in json.dumps([shown, logged, compared])
    [file] = shown["commit"]["diff"]
    assert [line["content"] for line in file["hunks"][0]["lines"]][-1] == "more"
    assert shown["commit"]["left_out"] == "1 file that may not be shown"


def _printed(*, old: str = "1" * 40, new: str = "2" * 40, names: tuple[str, str] = ("a", "a")) -> bytes:
    moved = f"rename from {names[0]}\nrename to {names[1]}\n" if names[0] != names[1] else ""
    return (
        f":100644 100644 {'1' * 40} {'2' * 40} M\ta\n1\t1\ta\n\n"
        f"diff --git a/a b/a\n{moved}index {old}..{new} 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"
    ).encode()


def test_a_section_about_other_objects_or_names_is_nobodys() -> None:
    assert len(parse(_printed(), lambda _: True).files[0].hunks) == 1
    for wrong in (_printed(old="3" * 40), _printed(new="3" * 40), _printed(names=("b", "c"))):
        [file] = parse(wrong, lambda _: True).files
        assert (file.hunks, file.insertions) == ([], 1)


async def test_a_file_that_turns_into_a_link_and_back_has_both_its_sections(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a": "a\n", "b": "b\n"})
    (repo.root / "a").unlink()
    os.symlink("b", repo.root / "a")
    repo.commit("two")
    async with history(repo.root) as gate:
        for commit in ("HEAD",):
            [file] = (await data(gate, "code.show", commit=commit))["commit"]["diff"]
            assert [len(hunk["lines"]) for hunk in file["hunks"]] == [1, 1]
