"""A search hands over what it finds while it goes on; the whole comes last, and is held to the same rules."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.core.result import Result
from toolgate.workspace.search import search as engine

from .planted import Script

CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "observe"}, "nobody": {"phase": "observe", "deny": ["code.*"]}},
}


@pytest.fixture(params=["local", "rg"])
def project(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "rg":
        monkeypatch.setattr(engine, "_known_large", lambda starts: True)
    for number in range(30):
        (project / f"f{number:02}.txt").write_text("nothing\nhit here\n" * 2)
    return project


async def gathered(gate: toolgate.Gate, args: dict[str, Any], **more: Any) -> tuple[list[Any], Result]:
    *parts, last = [part async for part in gate.stream("code.search", args, **more)]
    assert isinstance(last, Result)
    return parts, last


async def test_matches_come_one_by_one_and_then_the_result(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        parts, result = await gathered(gate, {"pattern": "hit", "context_lines": 1})
        assert result.ok
        assert len(parts) == 60
        key = ("file", "line")
        assert sorted(parts, key=lambda part: [part[name] for name in key]) == result.data["matches"]


async def test_no_more_parts_come_than_were_asked_for(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        parts, result = await gathered(gate, {"pattern": "hit", "max_matches": 7})
        assert len(parts) == 7
        assert (len(result.data["matches"]), result.data["total_matches"]) == (7, 60)


async def test_matches_that_are_known_only_at_the_end_come_as_parts_too(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("hit\n")
    (tmp_path / "broken").write_bytes(b"\xff hit\n")
    (tmp_path / "wide").write_bytes("hit\n".encode("utf-16"))
    async with toolgate.open(tmp_path, CONFIG, "memory") as gate:
        for turn, paths in enumerate(([], ["plain"], ["plain"], ["wide"])):  # all; in process; at once; by rg
            parts, result = await gathered(gate, {"pattern": "hit", "paths": paths, "context_lines": turn})
            assert not result.meta.cached
            assert sorted(parts, key=lambda part: part["file"]) == result.data["matches"]
            assert [part["file"] for part in result.data["matches"]] == (paths or ["broken", "plain", "wide"])


async def test_a_refused_call_has_no_parts(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        parts, result = await gathered(gate, {"pattern": "hit"}, persona="nobody")
        assert (parts, result.error and result.error.code) == ([], "not_allowed")


async def test_secrets_of_the_vault_are_taken_out_of_parts_too(project: Path, own_state_dir: Path) -> None:
    (project / "s.txt").write_text("hit hunter2-is-a-long-secret\n")
    async with toolgate.open(project, CONFIG) as gate:
        await gate.set_secret("DOOR", "hunter2-is-a-long-secret")
        parts, result = await gathered(gate, {"pattern": "hit"})
        assert "hunter2" not in f"{parts}{result.data}"
        assert "[secret:DOOR]" in str(parts)


async def test_whoever_stops_listening_ends_the_call(project: Path) -> None:
    async with toolgate.open(project, CONFIG, "memory") as gate:
        async with aclosing(gate.stream("code.search", {"pattern": "hit"})) as parts:
            async for _ in parts:
                break
        assert (await gate.call("system.ping")).ok
        assert (await gate.verify()).ok


async def test_a_call_that_is_cancelled_ends_its_rg(
    tmp_path: Path, rg_that: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a few of them would keep all others waiting."""
    said = tmp_path / "said"
    rg_that(f"echo $$ > {said}.new; mv {said}.new {said}; exec sleep 60")
    monkeypatch.setattr(engine, "_known_large", lambda starts: True)
    (tmp_path / "project").mkdir()
    async with toolgate.open(tmp_path / "project", CONFIG, "memory") as gate, asyncio.timeout(9):
        call = asyncio.ensure_future(gate.call("code.search", {"pattern": "hit"}))
        while not said.exists():
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while os.path.exists(f"/proc/{said.read_text().strip()}"):
            await asyncio.sleep(0.01)
