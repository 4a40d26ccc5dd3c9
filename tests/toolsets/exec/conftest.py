from __future__ import annotations

from pathlib import Path

import pytest

from toolgate.sandbox import probe

from . import running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    (place / "src" / "deep").mkdir(parents=True)
    (place / "a.txt").write_text("one\ntwo\n")
    (place / "b.txt").write_text("bee\n")
    (place / "src" / "app.py").write_text("print('app')\n")
    (place / "src" / "deep" / "data.bin").write_bytes(bytes(range(256)))
    (place / ".env").write_text("TOKEN=do-not-read-me-1\n")
    (place / "src" / "server.key").write_text("do-not-read-me-2\n")
    (place / ".git").mkdir()
    (place / ".git" / "config").write_text("do-not-read-me-3\n")
    return place


def pytest_itemcollected(item: pytest.Item) -> None:
    """In a sample each test runs in one of the modes."""
    item.add_marker(pytest.mark.sample(1, over="mode"))


@pytest.fixture(params=["root", "userns", "landlock"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the ways to wall a program in, as far as this machine and user have it."""
    refused = probe.look(request.param).refused
    if refused:
        pytest.skip(f"no sandbox of this kind here: {refused}")
    monkeypatch.setitem(running.SANDBOX, "mode", request.param)
    return str(request.param)
