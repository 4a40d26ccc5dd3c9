"""A result as a model reads it: plain lines, with long texts as they are instead of as JSON."""

from __future__ import annotations

from typing import Any

from toolgate.core.canonical import compact
from toolgate.core.result import Problem

_KNOWN = frozenset(
    {"rule", "problems", "near", "limit", "expires_at", "hunk", "why", "problem", "left", "match_count"}
)
"""What the message of a refusal says already, in words."""


def of_error(error: Problem, data: Any = None, told: str | None = None) -> str:
    """What went wrong and what to do about it, in two lines; then what there is to show for it all the same."""
    lines = [f"{error.code.value}: {error.message}"]
    if error.fix:
        lines.append(f"fix: {error.fix}")
    said = "\n".join(lines)
    if told is None and isinstance(data, dict):
        rest = {name: value for name, value in data.items() if name not in _KNOWN and str(value) not in said}
        told = of_data(rest) if rest else ""
    return f"{said}\n{told}" if told else said


def of_data(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return _object(data)
    if isinstance(data, list):
        return "\n".join(_one_line(item) for item in data) or "[]"
    return _one_line(data)


def _object(data: dict[str, Any]) -> str:
    """Short values first, one a line; texts of many lines and lists below, under their names."""
    short, long = [], []
    for name, value in data.items():
        if isinstance(value, str) and "\n" in value:
            long.append(f"{name}:\n{value}")
        elif isinstance(value, list) and len(value) > 1:
            long.append(f"{name}:\n" + "\n".join(map(_one_line, value)))
        else:
            short.append(f"{name}: {_one_line(value)}")
    return "\n".join(short + long)


def _one_line(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return compact(value)
    except TypeError:  # an integer beyond 64 bits
        return str(value)
