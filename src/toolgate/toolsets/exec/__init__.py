"""Tools that run programs in the sandbox, and `code.*`, which speaks of them as the documents do."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.ledger.ledger import Ledger
from toolgate.toolsets.exec import applying, facade, programs
from toolgate.toolsets.exec.means import Grant, Means

__all__ = ["Grant", "Means", "toolset"]


def toolset(means: Means, ledger: Ledger) -> list[Tool]:
    return [
        *programs.toolset(means),
        *applying.toolset(means.files, means.kept),
        *facade.toolset(means, ledger),
    ]
