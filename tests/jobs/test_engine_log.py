"""What the engine of jobs says reaches people only if it is news to them."""

from __future__ import annotations

import logging

import pytest

from toolgate.features.jobs.place import take_over_log


def test_ending_what_was_to_end_is_no_warning_and_everything_else_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    take_over_log()
    with caplog.at_level(logging.WARNING, "toolgate.jobs"):
        logging.getLogger("dbos").warning("Asyncio task cancelled for workflow or step %s", "x")
        logging.getLogger("dbos").warning("the database is gone")
    ours = [record for record in caplog.records if record.name == "toolgate.jobs"]
    assert [record.getMessage() for record in ours if record.levelno >= logging.WARNING] == [
        "the database is gone"
    ]
