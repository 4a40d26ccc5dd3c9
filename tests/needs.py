"""What a test needs, as markers: `pytest -m "not browser and not node"` runs whatever does without.

They are set by where a test is and what it is given; `node` is written in the few files that start programs for Node.
"""

from __future__ import annotations

import pytest

NEEDS = {
    "postgres": "needs a real PostgreSQL, which the run starts",
    "browser": "drives a real Chromium",
    "node": "starts other people's programs for Node, which `make test` installs",
    "crash": "kills processes of its own, again and again",
    "attack": "attacks the gate, the sandbox or the files",
}
_GIVEN = {"postgres_server": "postgres", "browser": "browser"}
_PLACES = {
    "attacks": "attack",
    "crash": "crash",
    "test_kill.py": "crash",
    "test_killing.py": "crash",
    "test_crash.py": "crash",
}


def pytest_configure(config: pytest.Config) -> None:
    for name, what in NEEDS.items():
        config.addinivalue_line("markers", f"{name}: {what}")


def pytest_itemcollected(item: pytest.Item) -> None:
    for name in needs_of(item):
        item.add_marker(name)


def needs_of(item: pytest.Item) -> set[str]:
    given = {_GIVEN[name] for name in getattr(item, "fixturenames", ()) if name in _GIVEN}
    places = {_PLACES[part] for part in item.path.parts if part in _PLACES}
    return given | places | _chosen(item)


def _chosen(item: pytest.Item) -> set[str]:
    """A test that runs on each database needs a server only where its parameter says so."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec is not None else ()
    return {"postgres"} if any(isinstance(value, str) and value == "postgres" for value in values) else set()
