"""Tools that run programs in the sandbox, and `code.*`, which speaks of them as the documents do."""

from __future__ import annotations

from toolgate.core.tool import Tool
from toolgate.features.programs import applying, code_execute, programs
from toolgate.features.programs.services import Grant, Means
from toolgate.ledger.ledger import Ledger

__all__ = ["Grant", "Means", "toolset"]


def toolset(means: Means, ledger: Ledger) -> list[Tool]:
    return [
        *programs.toolset(means),
        *applying.toolset(means.files, means.kept),
        *code_execute.toolset(means, ledger),
    ]
