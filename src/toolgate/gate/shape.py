"""Stage 10: the result within its token budget, and the truth about what was cut.

A tool that knows how to shorten its own result (`fit`) is asked first; what it leaves too large is cut by its shape.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import compact
from toolgate.core.display import encodable
from toolgate.core.errors import Code
from toolgate.core.records import replace
from toolgate.gate.flow import LARGE, Broke, Budget, Done, Flow, Services, large, whatever_comes

if TYPE_CHECKING:
    from toolgate.core.tool import Tool

log = logging.getLogger("toolgate.gate")
CHARS_A_TOKEN = 4
_TURNS = 8


def shape(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    """In a thread if there is much to be cut."""
    data = flow.data
    if data is not None and (type(data) is not str or len(data) > LARGE) and large(data):
        return whatever_comes(flow, partial(_shape, services, flow))
    _shape(services, flow)
    return None


def _shape(services: Services, flow: Flow) -> None:
    if type(flow.outcome) is not Done:
        if flow.outcome is not None:
            flow.outcome = replace(flow.outcome, message=encodable(flow.outcome.message))
        if flow.data is None:
            return
    assert flow.tool is not None
    try:
        flow.text, mended = _encode(flow.data)
        if mended or "null" in flow.text:
            flow.data = json.loads(flow.text)  # NaN became null, a broken character `?`: say the same
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(flow.outcome, Done) and not flow.effectful:
            message = f"{flow.tool.name} returned what JSON cannot hold: {error}"
            flow.outcome = Broke(Code.FAILED, message, "report this to its author")
        flow.data, flow.text = None, ""
        return
    size, budget = len(flow.text), services.budget
    small = size * 4 <= budget.bytes and size <= budget.tokens * CHARS_A_TOKEN  # whatever its characters are
    if not small and not _fits(flow.text, budget):
        flow.data, flow.text = _fitted(flow.tool, flow.data, flow.text, budget)
        flow.truncated, size = True, len(flow.text)
    elif type(flow.data) is dict and flow.data.get("truncated") is True:
        flow.truncated = (
            True  # by the tool itself: whoever looks at `meta` alone must not take it for all there is
        )
    if flow.reader is not None and type(flow.outcome) is Done:
        flow.read, size = flow.reader(flow.tool.name, flow.data, _given(flow), size)
    flow.tokens = (size + CHARS_A_TOKEN - 1) // CHARS_A_TOKEN


def _given(flow: Flow) -> dict[str, Any]:
    """The arguments that the caller gave, under their own names."""
    args, tool = flow.args, flow.tool
    if args is None or tool is None:
        return {}
    named = {tool.spellings.get(name, name) for name in tool.opened(flow.raw)}
    return {name: value for name, value in vars(args).items() if name in named}


def _fits(text: str, budget: Budget) -> bool:
    return len(text) <= budget.tokens * CHARS_A_TOKEN and len(text.encode()) <= budget.bytes


def _fitted(tool: Tool, data: Any, text: str, budget: Budget) -> tuple[Any, str]:
    """What fits, by the tool's own word or else by its shape; at the very least an ellipsis."""
    room = min(budget.tokens * CHARS_A_TOKEN, budget.bytes * len(text) // max(len(text.encode()), 1))
    if tool.fit is not None:
        data = _by_tool(tool, data, room)
        text, _ = _encode(data)
        if _fits(text, budget):
            return data, text
    for _ in range(_TURNS):
        made = cut(data, room)
        text, _ = _encode(made)
        if _fits(text, budget):
            return made, text
        room = min(room - (len(text) - room), room * 3 // 4)
    return "…", '"…"'


def _by_tool(tool: Tool, data: Any, room: int) -> Any:
    assert tool.fit is not None
    try:
        return tool.fit(data, room)
    except Exception:
        log.exception("%s could not shorten its result", tool.name)
        return data


def _encode(value: Any) -> tuple[str, bool]:
    """The value as JSON, and whether something had to be mended on the way."""
    try:
        return compact(value), False
    except TypeError:  # lone surrogates from file names, integers beyond 64 bits
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return encodable(text), True


def cut(value: Any, room: int) -> Any:
    """Shorten the longest parts first, keeping the shape; every cut says how much is missing."""
    if isinstance(value, str):
        return _cut_text(value, room)
    if isinstance(value, list):
        return _cut_list(value, room)
    if isinstance(value, dict):
        return _cut_object(value, room)
    return value


def _cut_text(value: str, room: int) -> str:
    """By what it is in JSON: a control character takes six."""
    size = len(_encode(value)[0])
    if size <= room:
        return value
    room, keep = max(room - 42, 0), value
    while keep and size > room:
        keep = keep[: min(len(keep) * room // size, len(keep) - 1)]
        size = len(_encode(keep)[0])
    return f"{keep}… [{len(value) - len(keep):,} more characters]"


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
    sizes = {key: len(_encode(item)[0]) + len(_encode(key)[0]) + 2 for key, item in value.items()}
    out: dict[str, Any] = {}
    left = room
    for count, key in zip(range(len(value), 0, -1), sorted(value, key=sizes.__getitem__), strict=True):
        share = left // count
        name = len(_encode(key)[0]) + 2
        if sizes[key] <= share:
            out[key] = value[key]
        elif share > name + 64:
            out[key] = cut(value[key], share - name)
        else:
            out["…"] = f"{count:,} more fields"
            break
        left -= min(sizes[key], share)
    return {key: out[key] for key in (*value, "…") if key in out}
