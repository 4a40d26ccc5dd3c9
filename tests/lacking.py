"""What this machine lacks: a test that is skipped for it is a failure in CI, where everything must be there."""

from __future__ import annotations

import os

import pytest

ACCEPTED = (
    "this kernel has no openat2",  # the walk, which is then used, is tested in its place
    "this machine has only one control group",  # hiding the others could not be told from there being none
    "swaps names with renameat2",  # another system than Linux
)
"""How the reasons begin that count in CI too."""


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def judge(report: pytest.TestReport) -> None:
    """Make a skip for lack of something a failure, if this is CI."""
    if not (in_ci() and report.skipped) or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(ACCEPTED):
        report.outcome = "failed"
        report.longrepr = f"in CI nothing may be missing, and this test was skipped: {reason}"
