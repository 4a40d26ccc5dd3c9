"""The suite about itself: a sample is chosen by a seed that is told, and what a test needs is marked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PATIENCE = 300
SUITE = """\
import pytest

def a(): pass
def b(): pass

@pytest.mark.sample(5)
@pytest.mark.parametrize("n", range(40))
def test_many(n): assert n < 0

@pytest.mark.sample(1, over="mode")
@pytest.mark.parametrize("mode", [1, 2, 3])
@pytest.mark.parametrize("way", [a, b])
def test_each(way, mode): assert mode < 0

@pytest.fixture
def browser(): pass
def test_with_a_browser(browser): pass
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_of_databases(database): pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "attacks").mkdir()
    for name, text in {
        "test_suite.py": SUITE,
        "attacks/test_one.py": "def test_of_an_attack(): pass\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(suite: Path, *args: str, **env: str) -> str:
    """With nothing but the two plugins, which load fast."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("TOOLGATE_", "PYTEST_"))
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "sampling",
        "-p",
        "needs",
        "--tb=short",
        "-rf",
        *args,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=suite,
        env=clean | {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | env,
    ).stdout  # fmt: skip


def ran(said: str) -> set[str]:
    """Every case of the two batteries fails, so that all that ran are told."""
    return set(re.findall(r"^FAILED \S+?::(test_\w+\[[^]]+\])", said, re.MULTILINE))


def test_the_seed_that_is_printed_chooses_the_same_sample_again_in_every_worker(suite: Path) -> None:
    first = run(suite, "-p", "xdist.plugin", "-n2")
    seed = re.search(r"^TOOLGATE_SEED=(\d+) chooses the samples", first, re.MULTILINE)
    assert seed, first
    again = run(suite, TOOLGATE_SEED=seed[1])
    assert ran(first) == ran(again)
    assert len(ran(first)) == 7
    assert [sum(case.startswith(f"test_each[{way}-") for case in ran(first)) for way in "ab"] == [1, 1]
    assert again.count(f"TOOLGATE_SEED={seed[1]} chooses it again") == 7, "each failure tells it"


def test_everything_runs_when_asked_for_and_so_does_a_case_that_is_named(suite: Path) -> None:
    assert len(ran(run(suite, TOOLGATE_ALL="1"))) == 46
    samples = [ran(run(suite, TOOLGATE_SEED=seed)) for seed in ("1", "2")]
    assert samples[0] != samples[1]
    (left_out, *_) = {f"test_many[{n}]" for n in range(40)} - samples[0]
    assert ran(run(suite, f"test_suite.py::{left_out}", TOOLGATE_SEED="1")) == {left_out}


@pytest.mark.parametrize(
    ("chosen", "count"), [("browser", 1), ("postgres", 1), ("attack", 1), ("not (browser or postgres or attack)", 8)]
)  # fmt: skip
def test_what_a_test_needs_is_marked_by_its_place_and_by_what_it_is_given(
    suite: Path, chosen: str, count: int
) -> None:
    assert re.search(rf"^{count}/\d+ tests collected", run(suite, "--co", "-m", chosen), re.MULTILINE)


def test_whatever_starts_programs_for_node_is_marked() -> None:
    files = [path for path in TESTS.rglob("test_*.py") if path.name != "test_sampling.py"]
    using = {
        path
        for path in files
        if re.search(r"^from (node\.programs|\.suite|\.real) import", path.read_text(), re.M)
    }
    using -= {path for path in using if path.parent.name == "patch"}  # its own `real`: a repository
    assert len(using) >= 3
    assert {path for path in using if "pytestmark = pytest.mark.node" not in path.read_text()} == set()
