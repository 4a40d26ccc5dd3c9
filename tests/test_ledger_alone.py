"""The brakes: a ledger that is opened alone loads little, believes nothing that has changed, and is the same ledger."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.gates import PATIENCE

import toolgate
from toolgate.core import loops
from toolgate.core.errors import ConfigError
from toolgate.project import checked, opening, trust
from toolgate.project.checked import WritableConfig

POLICY = "version: 1\ndefault_persona: ada\npersonas: {ada: {phase: observe, allow: ['system.*']}}\n"
HEAVY = (
    "asyncio", "pydantic", "yaml", "logging", "ssl", "subprocess", "email", "concurrent.futures", "difflib", "psutil",
    "cryptography", "asyncpg", "typer", "rich", "fastapi", "starlette", "uvicorn", "mcp", "dbos", "tree_sitter", "re2",
    "toolgate.app", "toolgate.facade", "toolgate.feature", "toolgate.features", "toolgate.gate", "toolgate.sandbox", "toolgate.secrets",
    "toolgate.policy", "toolgate.project.config", "toolgate.core.tool", "toolgate.core.ports",
)  # fmt: skip
CONTROL = """
import json, sys
from pathlib import Path
from toolgate.core import loops
from toolgate.project import opening

async def work():
    setup = opening.prepare_ledger(Path(sys.argv[1]))
    async with opening.open_desk(setup) as desk:
        await desk.pause("ada", reason="it edits the wrong files")
        await desk.resume("ada")
        await desk.grants()
        await desk.page(50)
    from toolgate.storage.port import Filter
    async with opening.open_record(setup) as record:
        return [row.kind for row in await record.events(Filter(limit=5))]

print(json.dumps({"kinds": loops.run(work()), "modules": sorted(sys.modules)}))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    made = tmp_path / "project"
    made.mkdir()
    (made / "toolgate.yaml").write_text(POLICY)
    trust.trust(made, trust.state_dir())
    return made


def test_a_control_command_loads_nothing_that_only_calls_need(root: Path) -> None:
    opening.prepare(root)  # as whoever opens a gate does: the file has been read in full once
    done = subprocess.run(
        [sys.executable, "-c", CONTROL, root], capture_output=True, text=True, timeout=60, check=True
    )
    said = json.loads(done.stdout)
    assert said["kinds"] == ["paused", "resumed"]
    loaded = {name for name in said["modules"] if name in HEAVY}
    assert loaded == set()


async def test_a_pause_that_is_written_without_an_event_loop_stops_a_gate_that_is_open(root: Path) -> None:
    async def pause() -> None:
        async with opening.open_desk(opening.prepare_ledger(root)) as desk:
            await desk.pause("ada", reason="enough")

    async with toolgate.open(root) as gate:
        assert (await gate.call("system.ping")).ok
        beside = threading.Thread(target=lambda: loops.run(pause()))
        beside.start()
        async with asyncio.timeout(PATIENCE):
            await asyncio.to_thread(beside.join)
        refused = await gate.call("system.ping")
        assert refused.error is not None
        assert "enough" in refused.error.message
        assert (await gate.verify()).ok


def test_what_was_checked_is_believed_for_the_very_same_bytes_only(root: Path) -> None:
    state = trust.state_dir()
    (root / ".toolgate" / "ledger.db").touch()  # the one that a broken file still means
    assert checked.known(root, state) is None
    opening.prepare(root)
    assert checked.known(root, state) == checked.of(opening.prepare(root).config)
    (root / "toolgate.yaml").write_text(POLICY + "consent: {expires_s: 5}\n")
    assert checked.known(root, state) is None
    assert opening.prepare_ledger(root).says.expires_s == 5
    (root / "toolgate.yaml").write_text(POLICY + "consent: {expires_s: soon}\n")
    assert opening.prepare_ledger(root).problem is not None
    assert checked.known(root, state) is None


def test_what_was_checked_by_another_version_or_is_odd_is_not_believed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = trust.state_dir()
    opening.prepare(root)
    (kept,) = (state / "checked").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(checked, "VERSION", "0.0.0")
    assert checked.known(root, state) is None
    monkeypatch.undo()
    for odd in ("", "[]", "{}", kept.read_text().replace('"personas"', '"people"')):
        kept.write_text(odd)
        assert checked.known(root, state) is None


def test_a_file_that_was_checked_and_can_be_written_by_a_tool_now_is_refused(root: Path) -> None:
    opening.prepare(root)
    os.link(root / "toolgate.yaml", root / "second.txt")
    with pytest.raises(WritableConfig, match="several names"):
        opening.prepare_ledger(root)


def test_a_project_that_is_not_trusted_any_more_is_not_opened_by_what_was_checked(root: Path) -> None:
    opening.prepare(root)
    trust.distrust(root, trust.state_dir())
    assert not opening.prepare_ledger(root).trusted


def test_work_that_needs_an_event_loop_goes_on_in_one_and_hears_what_is_raised_there() -> None:
    async def work() -> tuple[bool, bool, str]:
        before = loops.has_loop()
        await loops.need_loop()
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(PATIENCE)
        except TimeoutError as error:
            return before, loops.has_loop(), type(error).__name__
        return before, loops.has_loop(), ""

    assert loops.run(work()) == (False, True, "TimeoutError")


def test_work_that_waits_without_saying_so_is_refused_and_an_error_comes_out_as_it_is() -> None:
    async def waits() -> None:
        await _Future()

    async def fails() -> None:
        raise ConfigError("no", "yes")

    with pytest.raises(RuntimeError, match="need_loop"):
        loops.run(waits())
    with pytest.raises(ConfigError, match="no"):
        loops.run(fails())


class _Future:
    def __await__(self):  # type: ignore[no-untyped-def]
        yield self
