"""A result as a model reads it: plain lines, with long texts as they are instead of as JSON."""

from __future__ import annotations

from typing import Any

import orjson

from toolgate.core.result import Result


def readable(result: Result) -> str:
    """For clients that show their model only text; the structured content says the same."""
    if result.error is None:
        return of_data(result.data)
    error = result.error
    lines = [f"{error.code.value}: {error.message}"]
    if error.fix:
        lines.append(f"fix: {error.fix}")
    if result.data:
        lines.append(of_data(result.data))
    return "\n".join(lines)


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
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # an integer beyond 64 bits
        return str(value)
