"""Wiring of agents to a gate."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from toolgate.feature import FeatureContext
from toolgate.features.agents.runs import Runs


def open_agents(context: FeatureContext) -> Runs:
    return Runs(context)


def go_on(context: FeatureContext) -> Coroutine[Any, Any, None] | None:
    """Beside the server, where toolgate.yaml names a model: runs that a human answered go on."""
    if not context.section("models"):
        return None
    runs: Runs = context.gate.feature("agents")
    return runs.go_on()
