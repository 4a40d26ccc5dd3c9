"""A full disk: what is said is what is known, what was not written did not happen, and a server ends as it should."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolgate
from contracts.databases import Sqlite
from toolgate.storage.port import Filter
from toolgate.workspace import images, write
from toolgate.workspace.images import Images

from .full_disk import CONFIG

SIZE = "12m"


def on_a_small_disk(tmp_path: Path, *args: str) -> Any:
    inside = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of their own")
    root = tmp_path / "small"
    root.mkdir()
    script = Path(__file__).with_name("full_disk.py")
    done = subprocess.run(
        [*inside, sys.executable, str(script), str(root), SIZE, *args],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("leave", [0, 60_000, 100_000, 160_000])
def test_on_a_full_disk_no_write_is_in_doubt(tmp_path: Path, leave: int) -> None:
    """With some space left it ends at another place: the images, the file beside its goal, the row that settles."""
    found = on_a_small_disk(tmp_path, "writes", str(leave))
    assert found["verified"]
    assert found["left"] == []
    for one in found["said"]:
        assert one["there"] == (one["code"] == "ok"), one
        assert one["code"] in ("ok", "failed", "unavailable"), one
        if one["code"] == "unavailable":
            assert "nothing ran" in one["message"]
            assert one["kinds"] in ([], ["started", "failed"])
        else:
            assert one["kinds"] == ["started", "committed" if one["code"] == "ok" else "failed"], one
    assert any(one["code"] != "ok" for one in found["said"]), "the disk was full"


@pytest.mark.parametrize("what", ["up", "mcp"])
def test_a_server_that_is_told_to_end_on_a_full_disk_ends_well(tmp_path: Path, what: str) -> None:
    found = on_a_small_disk(tmp_path, what)
    assert "the disk is full" in str(found["said"])
    assert found["code"] == 0, found["stderr"]
    assert "Traceback" not in found["stderr"]


def no_space(*args: Any, **more: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


PLACES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "images": lambda patch: patch.setattr(Images, "_put", no_space),
    "sync of images": lambda patch: patch.setattr(images, "_sync", no_space),
    "directory": lambda patch: patch.setattr(write, "_make", no_space),
    "file beside its goal": lambda patch: patch.setattr(write, "prepare", no_space),
    "rename": lambda patch: patch.setattr(write, "put_in_place", no_space),
}


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_write_without_space_failed_and_is_settled_so_once_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Neither the file nor the row that says so can be written."""
    async with toolgate.open(tmp_path, CONFIG) as gate:
        database = Sqlite(tmp_path / ".toolgate/ledger.db")
        files = gate.services.files
        assert files is not None
        (tmp_path / "there").write_text("old")
        keep = files.keep

        async def full(change: Any, holder: Any) -> None:
            await database.refuse_writes()
            await keep(change, holder)

        monkeypatch.setattr(files, "keep", full)
        with monkeypatch.context() as patch:
            PLACES[place](patch)
            path = "new/dir/f" if place == "directory" else "there"
            result = await gate.call("fs.write", {"path": path, "content": "new"})
        assert result.error is not None
        assert (result.error.code.value, result.data) == ("failed", None)
        assert "it did not happen" in result.error.message
        assert (tmp_path / "there").read_text() == "old"
        await database.accept_writes()
        assert (await gate.call("system.ping")).ok
        rows = await gate.events(Filter(call=result.meta.call_id))
        assert [row.kind for row in rows] == ["started", "failed"]
        assert not (tmp_path / "new").exists()
        assert (await gate.verify()).ok
