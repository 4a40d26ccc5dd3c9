from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.workspace.mounts import Mounts
from toolgate.workspace.outline.outline import Outliner
from toolgate.workspace.search import program, ripgrep, search

from .planted import Script, Told, stand_in


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def mounts(project: Path) -> Iterator[Mounts]:
    with Mounts({"project": project}) as opened:
        yield opened


@pytest.fixture(scope="session")
def outliner() -> Iterator[Outliner]:
    with Outliner() as made:
        yield made


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are learned again without a pause."""
    monkeypatch.setattr(search, "AGAIN_S", 0.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What rg was started with, each time."""
    said: Told = []
    real = ripgrep.run_quietly

    def run(args: list[str], *more: Any) -> bool:
        said.append(list(args))
        return real(args, *more)

    monkeypatch.setattr(ripgrep, "run_quietly", run)
    return said


@pytest.fixture
def rg_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Puts a script in rg's place; `$RG` is the real one."""

    def put(script: str) -> None:
        place = tmp_path / "rg"
        place.write_text(f"#!/bin/sh\nRG={program.find_rg()}\n{script}")
        place.chmod(0o755)
        stand_in(monkeypatch, place)

    return put
