"""What `toolgate doctor` says of agents: models, keys, servers, budgets, runs that nobody goes on with."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.world import call, calls, config
from toolgate import app
from toolgate.agents.models.scripted import ScriptedModel
from toolgate.features.agents import checks
from toolgate.kits.terminal.checkup import Check, Diagnosis, Patient
from toolgate.storage.memory import MemoryBackend


async def examined(root: Path, check: Check, gate: Any) -> list[Diagnosis]:
    patient = Patient(root)
    patient.gate = gate
    return [one async for one in check(patient)]


async def test_each_model_that_could_not_be_asked_is_named_with_a_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    free = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    silent = free.sockets[0].getsockname()[1]
    free.close()
    await free.wait_closed()
    (tmp_path / "script.yaml").write_text("- hello\n")
    models: dict[str, Any] = {
        "here": {"kind": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "usd_per_million": [1, 1]},
        "gone": {"kind": "openai", "base_url": f"http://127.0.0.1:{silent}/v1"},
        "keyless": {"kind": "anthropic", "key": "NO_SUCH_KEY_HERE"},
        "said": {"kind": "scripted", "script": "script.yaml"},
        "unsaid": {"kind": "scripted", "script": "none.yaml"},
    }
    agents = {
        "model": "here",
        "personas": {"ada": "fast", "nobody": "here"},
        "summary": {"model": "tiny"},
        "budget": {"tokens": 0},
    }
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == "anthropic" else sys)
    async with listening, app.open(tmp_path, config(models=models, agents=agents), MemoryBackend()) as gate:
        found = await examined(tmp_path, checks.models, gate)
    told = {(one.state, one.what): one for one in found}
    assert told["ok", "model here"].found.endswith("which answers")
    assert "does not answer" in told["bad", "model gone"].found
    assert "price is not known" in told["warn", "model gone"].found
    keyless = [one.found for one in found if (one.state, one.what) == ("bad", "model keyless")]
    assert ["not installed" in keyless[0], "NO_SUCH_KEY_HERE" in keyless[1]] == [True, True]
    assert ("ok", "model said") in told
    assert ("bad", "model unsaid") in told
    general = [one.found for one in found if one.what == "agents"]
    assert [word in " ".join(general) for word in ("'fast'", "'tiny'", "'nobody'")] == [True] * 3
    assert all(one.fix for one in found if one.state != "ok")


async def test_runs_that_nobody_goes_on_with_are_named_and_without_models_nothing_is_said(
    tmp_path: Path,
) -> None:
    models = {"model": {"kind": "scripted", "script": "script.yaml"}}
    (tmp_path / "script.yaml").write_text("- hello\n")
    rules = {"rules": [{"persona": "*", "tools": ["fs.write"], "decision": "ask"}]}
    async with app.open(tmp_path, config(models=models, policy=rules), MemoryBackend()) as gate:
        agents = gate.feature("agents")
        write = calls(call("fs.write", path="a.txt", content="x"))
        agents.models.given["model"] = ScriptedModel([write, "done"], "model")
        run = await agents.drive(await agents.start("write"))
        assert run.state == "waiting"
        (asked,) = await examined(tmp_path, checks.agent_runs, gate)
        assert asked.state == "ok"
        await gate.answer(run.waiting, "deny")
        (due,) = await examined(tmp_path, checks.agent_runs, gate)
        assert (due.state, run.id in due.fix) == ("warn", True)
    async with app.open(tmp_path, config(agents={}), MemoryBackend()) as gate:
        assert await examined(tmp_path, checks.models, gate) == []
        assert await examined(tmp_path, checks.agent_runs, gate) == []
