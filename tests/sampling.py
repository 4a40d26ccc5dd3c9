"""Samples of the large batteries. A seed chooses which cases run; the run prints it, and so does every failure.

`@pytest.mark.sample(3)` runs three of a test's cases; `sample(1, over="mode")` runs one mode of those that differ in the
parameter `mode` alone. `sampled` and `fewer` do the same inside a test. With TOOLGATE_ALL everything runs, and what is named by `::` always does.
"""

from __future__ import annotations

import os
import random
from collections.abc import Generator, Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

# In the environment, so that the workers of a run, and whatever they start, choose as it does.
SEED = int(os.environ.setdefault("TOOLGATE_SEED", str(random.randrange(1_000_000))))
EVERYTHING = bool(os.environ.get("TOOLGATE_ALL"))
SAID = "everything runs" if EVERYTHING else "`make test-all` runs everything"


def dice(name: str) -> random.Random:
    """Chance that the seed decides, for one purpose."""
    return random.Random(f"{SEED} {name}")


def sampled(items: Iterable[T], most: int, name: str) -> list[T]:
    """At most so many of them, in their order; `name` says what for."""
    found = list(items)
    if EVERYTHING or len(found) <= most:
        return found
    return [found[at] for at in sorted(dice(name).sample(range(len(found)), most))]


def fewer(full: int, few: int) -> int:
    """How many examples are tried."""
    return full if EVERYTHING else few


def cases(session: pytest.Session, test: str) -> list[dict[str, Any]]:
    """The parameters of a test's cases that this run has, for a test that does the work of all of them at once."""
    return [item.callspec.params for item in session.items if getattr(item, "originalname", "") == test]  # type: ignore[attr-defined]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "sample(most, over=None): a battery of which `make test` runs a sample"
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """By the run itself and not by its workers; a header would not be shown with `-q`."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.write_line(f"TOOLGATE_SEED={SEED} chooses the samples; {SAID}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any("::" in named for named in config.args):
        return
    gone = set(left_out(items))
    if gone:
        config.hook.pytest_deselected(items=[item for item in items if item in gone])
        items[:] = [item for item in items if item not in gone]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.append(("sample", f"TOOLGATE_SEED={SEED} chooses it again"))
    return report


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The cases of marked tests that the sample has not."""
    groups: dict[tuple[str, ...], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("sample")
        if mark is not None:
            groups.setdefault(_group(item, mark), []).append(item)
    gone: list[pytest.Item] = []
    for members in groups.values():
        mark = members[0].get_closest_marker("sample")
        assert mark is not None
        kept = set(sampled(members, mark.args[0], members[0].nodeid))  # the same name in every worker
        gone += [case for case in members if case not in kept]
    return gone


def _group(item: pytest.Item, mark: pytest.Mark) -> tuple[str, ...]:
    """What is sampled together: all cases of a test, or those that have everything else in common."""
    test = item.nodeid.split("[")[0]
    over, callspec = mark.kwargs.get("over"), getattr(item, "callspec", None)
    if over is None or callspec is None:
        return (test,)
    return (test, *(f"{name}={value!r}" for name, value in callspec.params.items() if name != over))
