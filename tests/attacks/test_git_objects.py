"""A repository whose packs, config or commits were written by hand shows nothing from outside and holds up nobody."""

from __future__ import annotations

import os
from pathlib import Path

from repositories import Repo, data, history, refused

from .forged import multi_pack_index, objects_of
from .hostile import SECRET, Hostile


def _borrowing(hostile: Hostile) -> str:
    """A multi-pack-index that names the outside repository's pack; its commit."""
    hostile.outside.git("repack", "-adq")
    stolen = hostile.outside.head()
    [pack] = (hostile.outside.root / ".git" / "objects" / "pack").glob("*.pack")
    here = hostile.root / ".git" / "objects" / "pack"
    name = os.path.relpath(pack.with_suffix(".idx"), here)
    (here / "multi-pack-index").write_bytes(multi_pack_index(name, objects_of(hostile.outside, pack)))
    return stolen


async def test_a_multi_pack_index_opens_no_pack_outside(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path / "project")
    stolen = _borrowing(hostile)
    assert SECRET in hostile.git("show", stolen), "plain git walks into it"
    async with history(hostile.root) as gate:
        assert await refused(gate, "code.show", commit=stolen) == "not_found"
        assert (await gate.call("code.log")).ok


async def test_a_multi_pack_index_that_is_a_directory_or_a_link_is_not_looked_at(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path / "project")
    packs = hostile.root / ".git" / "objects" / "pack"
    (packs / "multi-pack-index.d").mkdir()
    (packs / "multi-pack-index").symlink_to(hostile.outside.root / "loot.txt")
    async with history(hostile.root) as gate:
        assert (await gate.call("code.log")).ok


async def test_packs_that_come_and_go_are_seen(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    first = repo.commit("one", {"a": "a\n"})
    async with history(repo.root) as gate:
        for number in range(3):
            await data(gate, "code.show", commit=first)
            repo.commit(f"more {number}", {"a": f"{number}\n"})
            repo.git("repack", "-adq")
            found = await data(gate, "code.show", commit="HEAD")
            assert found["commit"]["message"] == f"more {number}"
    [links] = (repo.root / ".toolgate" / "cache" / "git").glob("*/objects/pack")
    there = {file.name for file in (repo.root / ".git" / "objects" / "pack").iterdir()}
    assert {file.name for file in links.iterdir()} == there


async def test_a_directory_of_links_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a": "a\n"})
    async with history(repo.root) as gate:
        assert (await gate.call("code.log")).ok
    [links] = (repo.root / ".toolgate" / "cache" / "git").glob("*/objects/pack")
    (links / "multi-pack-index").write_bytes(b"")
    async with history(repo.root) as gate:
        assert await refused(gate, "code.log") == "unavailable"


async def test_a_link_to_all_packs_from_an_earlier_version_is_replaced(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "project")
    repo.commit("one", {"a": "a\n"})
    repo.git("repack", "-adq")
    async with history(repo.root) as gate:
        assert (await gate.call("code.log")).ok
    [links] = (repo.root / ".toolgate" / "cache" / "git").glob("*/objects/pack")
    for file in links.iterdir():
        file.unlink()
    links.rmdir()
    links.symlink_to(repo.root / ".git" / "objects" / "pack")
    async with history(repo.root) as gate:
        assert (await gate.call("code.show", {"commit": "HEAD"})).ok
    assert not links.is_symlink()
