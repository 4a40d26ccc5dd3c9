"""What a served result rests on, one thing at a time."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path
from typing import Any

import pytest

from toolgate import MountPath, tool
from toolgate.core.result import Result
from toolgate.facade import Gate
from toolgate.gate.cache import Cache
from toolgate.workspace import inotify, watch
from toolgate.workspace.git import store, view
from toolgate.workspace.search import local

from .world import World, git


async def ask(gate: Gate, name: str, **args: Any) -> Result:
    result = await gate.call(name, args, persona="ada")
    assert result.ok, result.error
    return result


async def served(gate: Gate, name: str, **args: Any) -> Result:
    """Asked until it comes from the cache: the first time it is read, a tree is watched from the second on."""
    for _ in range(3):
        result = await ask(gate, name, **args)
        if result.meta.cached:
            return result
    raise AssertionError(f"{name} is never served")


@pytest.mark.parametrize("name", ["code.read", "code.outline", "fs.read"])
async def test_a_file_is_served_again_and_every_serving_is_recorded(gate: Gate, name: str) -> None:
    first = await ask(gate, name, path="a.py")
    again = await ask(gate, name, path="a.py")
    assert (first.meta.cached, again.meta.cached) == (False, True)
    assert again.data == first.data
    assert again.meta.event_id is not None
    assert again.meta.event_id > (first.meta.event_id or 0)


async def test_a_write_through_a_memory_map_that_is_held_open_shows(gate: Gate, world: World) -> None:
    """The second store goes to a page that is dirty already: no time stamp changes."""
    with (world.root / "a.py").open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as memory:
        memory[:] = world.text().encode()
        await served(gate, "fs.read", path="a.py")
        wanted = world.text()
        memory[:] = wanted.encode()
        assert (await ask(gate, "fs.read", path="a.py")).data["content"] == wanted


async def test_the_same_bytes_in_another_file_are_not_the_same(gate: Gate, world: World) -> None:
    await served(gate, "code.read", path="a.py")
    os.utime(world.root / "a.py", (0, 0))
    fresh = await ask(gate, "code.read", path="a.py")
    assert not fresh.meta.cached
    assert fresh.data["metadata"]["last_modified"].startswith("1970")


async def test_what_is_denied_now_is_denied_and_not_served(gate: Gate, world: World) -> None:
    await served(gate, "code.read", path="a.py")
    await served(gate, "fs.list", path=".")
    world.hide("a.py")
    refused = await gate.call("code.read", {"path": "a.py"}, persona="ada")
    assert refused.error is not None
    assert refused.error.code == "blocked_path"
    listed = await ask(gate, "fs.list", path=".")
    assert "a.py" not in listed.data["entries"]


async def test_another_persona_gets_no_result_that_was_kept_for_this_one(gate: Gate) -> None:
    await served(gate, "code.read", path="a.py")
    assert not (await gate.call("code.read", {"path": "a.py"}, persona="bob")).meta.cached


async def test_our_own_write_shows_at_once(gate: Gate, world: World) -> None:
    await served(gate, "fs.read", path="a.py")
    await served(gate, "code.search", pattern="return")
    wanted = world.text()
    await gate.call("fs.write", {"path": "a.py", "content": wanted}, persona="bob")
    assert (await ask(gate, "fs.read", path="a.py")).data["content"] == wanted
    found = await ask(gate, "code.search", pattern="return")
    assert wanted.splitlines()[1] in [match["line_text"] for match in found.data["matches"]]


TREES: dict[str, dict[str, Any]] = {
    "code.search": {"pattern": "return"}, "fs.search": {"pattern": "return"}, "code.list": {}, "fs.list": {"glob": "**/*"},
    "fs.find": {"base": ".", "pattern": "*"},
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
async def test_a_tree_is_served_until_something_happens_in_it(gate: Gate, world: World, name: str) -> None:
    before = await served(gate, name, **TREES[name])
    (world.root / "d" / "new").mkdir()
    assert not (await ask(gate, name, **TREES[name])).meta.cached
    await served(gate, name, **TREES[name])
    (world.root / "d" / "new" / "n.py").write_text(world.text())
    after = await ask(gate, name, **TREES[name])
    assert not after.meta.cached
    assert after.data != before.data


@pytest.mark.parametrize("how", ["link", "rename"])
async def test_a_path_that_leads_to_another_tree_by_now_is_not_served(
    gate: Gate, world: World, how: str
) -> None:
    for name in ("one", "two"):
        (world.root / "trees" / name).mkdir(parents=True)
        (world.root / "trees" / name / f"{name}.py").write_text("return\n")
    path = "trees/one"
    if how == "link":
        path = "here"
        (world.root / path).symlink_to("trees/one")
    for tool_name, args in (
        ("code.list", {"directory": path}),
        ("code.search", {"pattern": "x", "paths": [path]}),
    ):
        await served(gate, tool_name, **args)
    if how == "link":
        (world.root / path).unlink()
        (world.root / path).symlink_to("trees/two")
    else:
        (world.root / "trees/one").rename(world.root / "trees/three")
        (world.root / "trees/two").rename(world.root / "trees/one")
    listed = await ask(gate, "code.list", directory=path)
    assert ([file["name"] for file in listed.data["files"]], listed.meta.cached) == (["two.py"], False)
    assert not (await ask(gate, "code.search", pattern="x", paths=[path])).meta.cached


async def test_what_happens_in_toolgates_own_files_disturbs_no_watch(gate: Gate, world: World) -> None:
    await served(gate, "code.list")
    (world.root / ".toolgate" / "noise").write_text("x")
    assert (await ask(gate, "code.list")).meta.cached


@pytest.mark.parametrize("missing", ["available", "begin", "add", "local"])
async def test_where_nothing_can_be_watched_no_tree_is_kept(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(inotify, missing, lambda *_: None if missing in ("begin", "add") else False)
    assert [(await ask(gate, "code.list")).meta.cached for _ in range(4)] == [False] * 4


async def test_a_tree_of_too_many_directories_is_not_kept(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MAX_DIRECTORIES", 1)
    assert [(await ask(gate, "code.list")).meta.cached for _ in range(4)] == [False] * 4


async def test_a_search_that_was_cut_is_not_kept_and_its_tree_is_watched_in_vain_only_once(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    begin = inotify.begin
    monkeypatch.setattr(inotify, "begin", lambda: begun.append(1) or begin())
    monkeypatch.setattr(local, "QUICK", 60.0)  # one that is given up begins again elsewhere
    for _ in range(5):
        result = await ask(gate, "code.search", pattern="return", max_matches=1)
        assert (result.data["truncated"], result.meta.cached) == (True, False)
    assert len(begun) == 1


def test_an_overflowing_queue_ends_the_watch(tmp_path: Path) -> None:
    watches = watch.Watches()
    handle = os.open(tmp_path, os.O_RDONLY)
    found = watches.begin(handle, ".", lambda *_: True)
    assert found is not None
    assert found.quiet()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(min(most, 20_000) // 2 + 10):  # the queue joins equal neighbours: two names in turn
        os.close(os.open(tmp_path / str(number % 2), os.O_CREAT | os.O_WRONLY))
    assert not found.quiet()
    assert not found.quiet()
    os.close(handle)
    watches.close()


async def test_only_so_many_trees_are_watched_at_once(gate: Gate, world: World) -> None:
    for number in range(watch.MAX_TREES + 1):
        (world.root / f"t{number}").mkdir()
    for number in range(watch.MAX_TREES + 1):
        await served(gate, "fs.list", path=f"t{number}")
    assert not (await ask(gate, "fs.list", path="t0")).meta.cached
    assert (await ask(gate, "fs.list", path=f"t{watch.MAX_TREES}")).meta.cached


HISTORY: dict[str, dict[str, Any]] = {
    "code.log": {}, "code.show": {"commit": "HEAD"}, "code.blame": {"path": "log.txt"},
    "code.diff": {"base": "HEAD~1", "compare": "HEAD"},
}  # fmt: skip


def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the times say is believed: nothing waits for the clock."""
    for module in (store, view):
        monkeypatch.setattr(module, "SETTLED_NS", 0)


@pytest.mark.parametrize("name", HISTORY)
async def test_history_is_served_until_a_ref_moves(
    gate: Gate, world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settled_at_once(monkeypatch)
    world.with_history()
    before = await served(gate, name, **HISTORY[name])
    world.commit()
    after = await ask(gate, name, **HISTORY[name])
    assert not after.meta.cached
    assert after.data != before.data


async def test_a_ref_that_is_written_in_place_moves_too(
    gate: Gate, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory does not change, and git itself never does it."""
    settled_at_once(monkeypatch)
    first = git(world.with_history().root, "rev-parse", "HEAD~1")
    await ask(gate, "code.log")
    (world.root / ".git/refs/heads/main").write_text(first + "\n")
    assert (await ask(gate, "code.log")).data["commits"][0]["hash"] == first


async def test_relative_times_and_the_working_tree_are_never_served(
    gate: Gate, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled_at_once(monkeypatch)
    world.with_history()
    for args in ({"since": "2 weeks ago"}, {"until": "now"}):
        assert [(await ask(gate, "code.log", **args)).meta.cached for _ in range(3)] == [False] * 3
    assert [(await ask(gate, "code.diff")).meta.cached for _ in range(3)] == [False] * 3


async def test_a_tool_that_reads_files_and_cannot_say_which_is_not_kept(gate: Gate, world: World) -> None:
    @tool("t.mine", reads=["project"], cache_s=60)
    def mine() -> str:
        """Read past everything."""
        return (world.root / "a.py").read_text()

    @tool("t.through", reads=["project"], cache_s=60)
    async def through() -> Any:
        """Read one file itself, and another through a call."""
        assert gate.services.files is not None
        own = await gate.services.files.read(MountPath("project:b.py"))
        return [str(own), (await gate.call("fs.read", {"path": "a.py"}, persona="ada")).data]

    for each in (mine, through):
        gate.services.registry.add(each)
        for _ in range(3):
            result = await gate.call(each.name, {}, persona="bob")
            assert (result.ok, result.meta.cached) == (True, False)


class Standing:
    """A proof that says what it is told to."""

    def __init__(self) -> None:
        self.holding = True

    def stood(self) -> bool:
        return True

    async def holds(self) -> bool:
        if not self.holding:
            raise OSError("gone")
        return True


async def test_the_cache_is_bounded_in_number_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(most_bytes=80_000, most_entries=3)
    for number in range(5):
        cache.put((str(number), ""), b"x" * 10, 60)
    assert len(cache) == 3
    assert [await cache.get((str(number), "")) is not None for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    cache.put(("large", ""), b"x" * 20_000, 60)
    assert await cache.get(("large", "")) is None
    for number in range(20):
        cache.put((str(number), ""), b"x" * 9_000, 60)
        assert cache.bytes <= 80_000
    proof = Standing()
    cache.put(("proven", ""), b"1", 60, [proof])
    cache.put(("short", ""), b"1", 60)
    cache.forget_unproven()
    assert await cache.get(("short", "")) is None
    assert await cache.get(("proven", "")) == b"1"
    proof.holding = False
    assert await cache.get(("proven", "")) is None
    assert (len(cache), cache.bytes) == (0, 0)
    cache.put(("old", ""), b"1", 60)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert await cache.get(("old", "")) is None
