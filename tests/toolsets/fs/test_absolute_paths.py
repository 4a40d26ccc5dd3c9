"""Models like to give whole paths. One that is in a mount by its words is taken for what it is there; every other is
refused in the same words, whether or not it leads to something."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import world


async def test_a_whole_path_in_the_project_is_the_path_in_it(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/a.txt").write_text("hello")
    async with world(root) as at:
        for path in (f"{root}/d/a.txt", f"{root}//d/./a.txt", str(root / "d" / "a.txt")):
            assert (await at.data("read", path=path))["path"] == "d/a.txt"
        assert (await at.data("list", path=str(root)))["entries"] == (await at.data("list"))["entries"]
        assert (await at.data("write", path=f"{root}/new", content="x"))["path"] == "new"


async def test_the_rules_hold_for_a_whole_path(root: Path) -> None:
    (root / ".env").write_text("x")
    async with world(root) as at:
        for path in (".env", ".toolgate/ledger.db", "toolgate.yaml"):
            shut = await at.call("write", path=f"{root}/{path}", content="x")
            assert shut.error is not None
            assert shut.error.code == "blocked_path"
        assert await at.code("read", path=f"{root}/.env") == "blocked_path"


@pytest.mark.parametrize("name", ["", "/", "/..", "/../outside", "/d/../../outside/page", "x", "/a:b"])
async def test_what_only_begins_like_the_project_is_outside(root: Path, name: str) -> None:
    async with world(root) as at:
        path = f"{root}{name}" if name not in ("", "/") else f"{root.parent}{name}"
        assert await at.code("read", path=path) == "outside_mount"


async def test_what_is_there_and_what_is_not_are_refused_alike(root: Path, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    async with world(root) as at:
        there, missing = [await at.call("read", path=f"{tmp_path}/{name}") for name in ("here", "gone")]
        assert there.error is not None
        assert missing.error is not None
        assert there.error.message.replace("/here'", "/gone'") == missing.error.message
