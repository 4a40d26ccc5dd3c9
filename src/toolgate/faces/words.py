"""What every face says in the same words: a length of time, and what a grant covers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolgate.core.clock import SECOND, iso


def span(micros: int) -> str:
    """A length of time, roughly: 14 min, 3 h."""
    seconds = max(0, micros) / SECOND
    for limit, unit, size in ((90, "s", 1), (5400, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def grant_in_words(persona: str, tool: str, body: Mapping[str, Any], expires: int) -> str:
    """What a grant covers; `body` has the fields of a `granted` event."""
    limits = []
    if body.get("paths"):
        limits.append("on paths that match " + " or ".join(body["paths"]))
    if body.get("args"):
        limits.append(
            "where " + ", ".join(f"{name} is {_condition(spec)}" for name, spec in body["args"].items())
        )
    if body.get("only_conversation"):
        limits.append(f"in the conversation {body['only_conversation']}")
    if body.get("max_uses"):
        limits.append(f"at most {body['max_uses']} times")
    scope = ", ".join(limits) or "with any arguments"
    return f"{persona} may call {tool} without being asked, {scope}, until {iso(expires)}"


def _condition(spec: Any) -> str:
    if isinstance(spec, Mapping) and set(spec) == {"equals"}:
        spec = spec["equals"]
    return json.dumps(spec, ensure_ascii=False, default=str)
