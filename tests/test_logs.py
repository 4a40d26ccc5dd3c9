"""The log is for the user alone."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from toolgate.project.logs import log_to


def test_the_log_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with log_to(tmp_path / "log" / "toolgate.jsonl", str):
            logging.getLogger("toolgate").warning("something happened")
    finally:
        os.umask(before)
    file = tmp_path / "log" / "toolgate.jsonl"
    assert "something happened" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
