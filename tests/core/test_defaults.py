"""Defaults of a tool's arguments: every call has its own, and callers are told what they are."""

from __future__ import annotations

from typing import Any

import pytest

from toolgate.core.tool import tool

DEFAULTS: list[Any] = [["a", "b"], [], [["deep"]], {"a": ["b"]}]


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_call_that_changes_a_default_changes_it_for_nobody_else(default: Any) -> None:
    @tool("t.defaults", reads=["project"])
    def made(values: Any = default) -> None:
        """Do nothing."""

    first = made.validate({}).values  # type: ignore[attr-defined]
    assert first == default
    for inner in (first, *(first.values() if isinstance(first, dict) else first)):
        if isinstance(inner, list):
            inner.append("changed")
    assert made.validate({}).values == default  # type: ignore[attr-defined]
    assert made.input_schema["properties"]["values"]["default"] == default
