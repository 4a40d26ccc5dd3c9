"""Stage 10: the result within its token budget, and the truth about what was cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson

from toolgate.core.display import encodable
from toolgate.core.errors import Code
from toolgate.gate.flow import Broke, Done, Flow, Services

CHARS_A_TOKEN = 4


def shape(services: Services, flow: Flow) -> None:
    if not isinstance(flow.outcome, Done):
        if flow.outcome is not None:
            flow.outcome = replace(flow.outcome, message=encodable(flow.outcome.message))
        return
    try:
        flow.text, mended = _encode(flow.data)
        if mended or "null" in flow.text:
            flow.data = json.loads(flow.text)  # NaN became null, a broken character `?`: say the same
    except (TypeError, ValueError, RecursionError) as error:
        assert flow.tool is not None
        if not flow.effectful:
            message = f"{flow.tool.name} returned what JSON cannot hold: {error}"
            flow.outcome = Broke(Code.FAILED, message, "report this to its author")
        flow.data, flow.text = None, ""
        return
    room = min(services.budget.tokens * CHARS_A_TOKEN, services.budget.bytes)
    if len(flow.text) > room:
        flow.data = cut(flow.data, room)
        flow.text, _ = _encode(flow.data)
        flow.truncated = True


def _encode(value: Any) -> tuple[str, bool]:
    """The value as JSON, and whether something had to be mended on the way."""
    try:
        return orjson.dumps(value).decode(), False
    except orjson.JSONEncodeError:  # lone surrogates from file names, integers beyond 64 bits
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return encodable(text), True


def cut(value: Any, room: int) -> Any:
    """Shorten the longest parts first, keeping the shape; every cut says how much is missing."""
    if isinstance(value, str):
        if len(value) <= room:
            return value
        keep = max(room - 40, 0)
        return f"{value[:keep]}… [{len(value) - keep:,} more characters]"
    if isinstance(value, list):
        return _cut_list(value, room)
    if isinstance(value, dict):
        return _cut_object(value, room)
    return value


def _cut_list(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    for index, item in enumerate(items):
        size = len(_encode(item)[0]) + 1
        if size > room - 40:
            if not kept and room > 80:
                kept.append(cut(item, room - 60))
                index += 1
            kept.append(f"… [{len(items) - index:,} more items]")
            break
        room -= size
        kept.append(item)
    return kept


def _cut_object(value: dict[str, Any], room: int) -> dict[str, Any]:
    """Small fields whole, then the large ones share what is left."""
    sizes = {key: len(_encode(item)[0]) + len(key) + 4 for key, item in value.items()}
    out: dict[str, Any] = {}
    left = room
    for count, key in zip(range(len(value), 0, -1), sorted(value, key=sizes.__getitem__), strict=True):
        share = left // count
        if sizes[key] <= share:
            out[key] = value[key]
        elif share > len(key) + 64:
            out[key] = cut(value[key], share - len(key) - 4)
        else:
            out["…"] = f"{count:,} more fields"
            break
        left -= min(sizes[key], share)
    return {key: out[key] for key in (*value, "…") if key in out}
