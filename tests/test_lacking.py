"""The suite about itself: in CI, what is missing is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolgate
from lacking import ACCEPTED

TESTS = Path(__file__).parent
SUITE = """\
import pytest

@pytest.fixture
def wall():
    pytest.skip("no sandbox of this kind here: too old")

def test_behind_a_wall(wall): pass

@pytest.mark.skipif(True, reason="only root can give files away")
def test_of_root(): pass

def test_that_looks_first(): pytest.skip("no /proc here")

@pytest.mark.parametrize("reason", {accepted})
def test_that_may_be_skipped(reason): pytest.skip(reason + ", so what")
"""


@pytest.mark.parametrize(("ci", "failed"), [("1", 3), ("", 0)])
def test_a_skip_is_a_failure_in_ci_unless_its_reason_is_accepted(
    tmp_path: Path, ci: str, failed: int
) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE.format(accepted=list(ACCEPTED)))
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    own = os.pathsep.join([str(Path(toolgate.__file__).parents[1]), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, timeout=60, cwd=tmp_path, env=os.environ | {"PYTHONPATH": own, "CI": ci},
    )  # fmt: skip
    said = [line for line in done.stdout.splitlines() if line.startswith("in CI nothing may be missing")]
    assert (len(said), done.returncode) == (failed, int(failed > 0)), done.stdout
