"""Another ledger, or an older copy, at a path where this user has seen one: said by trust, verify and doctor."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import toolgate
from toolgate import places, trust
from toolgate.faces.cli.root import app

CONFIG = "version: 1\ndefault_persona: ada\npersonas: {ada: {phase: observe}}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLGATE_STATE_DIR", str(tmp_path / "state"))
    found = tmp_path / "project"
    found.mkdir()
    (found / "toolgate.yaml").write_text(CONFIG)
    trust.trust(found, tmp_path / "state")
    return found


async def _calls(root: Path, count: int) -> None:
    async with toolgate.open(root) as gate:
        for _ in range(count):
            assert (await gate.call("system.ping")).ok


def _run(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


def _verify(root: Path) -> Any:
    return _run("ledger", "verify", "--root", str(root))


def _ledger(root: Path) -> Path:
    return root / ".toolgate" / "ledger.db"


async def _empty(root: Path) -> None:
    for file in _ledger(root).parent.glob("ledger.db*"):
        file.unlink()
    await _calls(root, 1)


async def _older(root: Path) -> None:
    shutil.copy(root / "older.db", _ledger(root))


async def _another(root: Path) -> None:
    shutil.rmtree(root / ".toolgate")
    trust.trust(root, root.parent / "state")
    await _calls(root, 9)


@pytest.mark.parametrize("way", [_empty, _older, _another])
async def test_a_ledger_that_is_not_the_one_that_was_seen_is_said(root: Path, way: Any) -> None:
    await _calls(root, 2)
    shutil.copy(_ledger(root), root / "older.db")
    await _calls(root, 3)
    assert _verify_in_thread(root) == 0
    await way(root)
    assert _verify_in_thread(root) == 1


def _verify_in_thread(root: Path) -> int:
    """The command has an event loop of its own."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(_verify, root).result()
    return int(result.exit_code)


async def test_another_project_at_the_same_path_is_said_at_trust(root: Path) -> None:
    await _calls(root, 2)
    before = trust.project_id(root)
    shutil.rmtree(root / ".toolgate")
    state = root.parent / "state"
    assert before[:8] in places.another(root, state, trust.project_id(root))
    assert places.another(root, state, before) == ""


async def test_a_ledger_that_was_replaced_does_not_make_the_better_one_forgotten(root: Path) -> None:
    await _calls(root, 5)
    seen = places.seen(root, root.parent / "state")
    await _empty(root)
    assert places.seen(root, root.parent / "state") == seen
