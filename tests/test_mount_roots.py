"""Where mounts and the key file may lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.app import key_path, prepare
from toolgate.core.errors import SetupError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("state/keys", "project/docs", "project/.toolgate/log", "far/deep"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "project"


async def opened(root: Path, **mounts: str) -> None:
    config: dict[str, Any] = {"version": 1, "mounts": {name: {"path": path} for name, path in mounts.items()}}
    async with toolgate.open(root, config):
        pass


async def refused(root: Path, **mounts: str) -> str:
    with pytest.raises(SetupError) as caught:
        await opened(root, **mounts)
    assert caught.value.fix
    return f"{caught.value}; {caught.value.fix}"


async def test_a_link_into_toolgates_own_files_is_no_mount(root: Path) -> None:
    (root / "in").symlink_to(".toolgate/log")
    assert "toolgate's own files" in await refused(root, garden="in")


@pytest.mark.parametrize("path", ["../state", "../state/keys", ".."])
async def test_no_mount_reaches_the_keys(root: Path, path: str) -> None:
    assert "could reach the keys" in await refused(root, garden=path)


async def test_the_usual_scratch_is_a_real_directory(root: Path) -> None:
    (root / ".toolgate" / "scratch").symlink_to(root.parent / "far")
    assert "is a link" in await refused(root)


async def test_a_link_in_place_of_the_state_is_refused(root: Path) -> None:
    (root / ".toolgate" / "log").rmdir()
    (root / ".toolgate").rmdir()
    (root / ".toolgate").symlink_to("docs")
    assert "link" in await refused(root)


async def test_mounts_that_overlap_are_refused(root: Path) -> None:
    assert "has too" in await refused(root, garden="../far", other="../far/deep")
    assert "has too" in await refused(root, garden="docs", other="docs")
    assert "has too" in await refused(root, garden=".")


async def test_a_mount_in_the_project_is_written_as_it_is(root: Path) -> None:
    (root / "garden").symlink_to("docs")
    assert "`path: docs`" in await refused(root, garden="garden")
    assert "`path: docs`" in await refused(root, garden=str(root / "docs"))
    await opened(root, garden="docs", other="../far")


def test_a_key_file_in_the_home_directory_is_found_there(root: Path) -> None:
    setup = prepare(root, {"version": 1, "ledger": {"key_file": "~/k.json"}})
    assert key_path(setup) == root.parent / "home" / "k.json"
    setup = prepare(root, {"version": 1, "ledger": {"key_file": "keys/k.json"}})
    assert key_path(setup) == root / "keys" / "k.json"


def test_a_key_file_that_leads_into_the_project_by_another_way_is_refused(root: Path) -> None:
    (root / "link").symlink_to("docs")
    for written in ("link/k.json", str(root / "docs" / "k.json")):
        with pytest.raises(SetupError, match="leads into the project") as caught:
            key_path(prepare(root, {"version": 1, "ledger": {"key_file": written}}))
        assert "docs/k.json" in caught.value.fix
