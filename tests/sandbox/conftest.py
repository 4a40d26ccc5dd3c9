from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.remote import Remote, modes


def pytest_itemcollected(item: pytest.Item) -> None:
    """In a sample each test runs in one of the modes."""
    item.add_marker(pytest.mark.sample(1, over="mode"))


@pytest.fixture(scope="session", params=modes())
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def sandbox(mode: str) -> Iterator[Remote]:
    """One in each mode, for the whole run."""
    with Remote(mode) as remote:
        yield remote


@pytest.fixture(scope="session", params=[each for each in modes() if each != "landlock"])
def roomy(request: pytest.FixtureRequest) -> Iterator[Remote]:
    """In the modes that have namespaces."""
    with Remote(str(request.param)) as remote:
        yield remote


@pytest.fixture(scope="session")
def narrow() -> Iterator[Remote]:
    """In the mode that has none."""
    with Remote("landlock") as remote:
        yield remote
