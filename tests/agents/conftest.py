from __future__ import annotations

import pytest

from toolgate.core.names import Registry

OFFERED = ("ai.ask", "code.read", "fs.write", "room.post", "t.act", "t.look", "t.next")


@pytest.fixture
def few_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a model is told of: the schemas of every tool take half a second for each gate."""
    monkeypatch.setattr(
        Registry, "__iter__", lambda self: iter([self.resolve(name) for name in OFFERED if name in self])
    )
