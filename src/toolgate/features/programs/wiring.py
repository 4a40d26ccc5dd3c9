"""Wiring of programs to a gate: their tools, and the traces of what was run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolgate.core.tool import Tool
from toolgate.feature import FeatureContext
from toolgate.features.programs import applying, code_execute, programs
from toolgate.features.programs.services import ProgramServices

if TYPE_CHECKING:
    from toolgate.ledger.traces import Traces


def open_traces(context: FeatureContext) -> Traces:
    """The programs that were run: `add` stores one, in redacted words."""
    from toolgate.ledger.traces import Traces
    from toolgate.storage.executions import Keep

    kept, ledger = context.section("traces"), context.services.ledger
    return Traces(ledger.backend, ledger.clock, Keep(kept.days, kept.rows), kept.text_bytes)


def tools(context: FeatureContext) -> list[Tool]:
    services = ProgramServices(context)
    return [
        *programs.toolset(services),
        *applying.toolset(services.files, services.proposals),
        *code_execute.toolset(services),
    ]
