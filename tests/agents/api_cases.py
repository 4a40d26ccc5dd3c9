"""Cases of the wires of APIs: whole messages and their events, as three protocols spell them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

from agents.case_parts import CALLS, FORGERY, Call, case

Spelled = tuple[str, str, str]
"""Id, name and arguments as a text."""
BROKEN_ARGUMENTS = {
    "trailing comma": '{"path": "a",}', "single quotes": "{'path': 'a'}", "smart quotes": "{“path”: “a”}", "nan": '{"path": NaN}',
    "huge": '{"path": 1e999}', "huge integer": '{"start_line": 99999999999999999999, "path": "a"}', "duplicate": '{"path": "a", "path": "b"}',
    "cut": '{"path": "a', "cut after a brace": '{"path": {"a": "b"}', "list": '["a"]', "text": '"a"', "null": "null", "words": "path=a",
    "twice": '{"path": "a"}{"path": "a"}', "missing": "{}", "unexpected": '{"path": "a", "b": 1}', "type": '{"path": 3}',
    "enum": '{"path": "a", "mode": "x"}', "nested": '{"path": "a", "options": {}}', "item": '{"path": "a", "lines": ["1"]}',
    "surrogate": '{"path": "\\udfff"}', "python": '{"path": None}', "comment": '{"path": "a" // x\n}', "raw line": '{"path": "a\nb"}',
}  # fmt: skip


def chat(calls: list[Spelled], text: str = "") -> dict[str, Any]:
    listed = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
    message = {"role": "assistant", "content": text or None} | ({"tool_calls": listed} if listed else {})
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def chat_events(
    calls: list[Spelled], text: str = "", finish: str | None = "tool_calls"
) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}]
    for at, (ident, name, _) in enumerate(calls):
        deltas.append(
            {"tool_calls": [{"index": at, "id": ident, "function": {"name": name, "arguments": ""}}]}
        )
    for at, (_, _, args) in reversed(list(enumerate(calls))):
        deltas.append({"tool_calls": [{"index": at, "function": {"arguments": args}}]})
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return events + ([{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}] if finish else [])


def responses(calls: list[Spelled], text: str = "") -> dict[str, Any]:
    said = [{"type": "message", "content": [{"type": "output_text", "text": text}]}] if text else []
    listed = [
        {"type": "function_call", "id": "fc" + i, "call_id": i, "name": n, "arguments": a}
        for i, n, a in calls
    ]
    return {"status": "completed", "output": said + listed}


def responses_events(
    calls: list[Spelled], text: str = "", finish: str | None = "completed"
) -> list[dict[str, Any]]:
    kind = "response.function_call_arguments"
    events: list[dict[str, Any]] = [{"type": "response.output_text.delta", "output_index": 0, "delta": text}]
    for at, (ident, name, _) in enumerate(calls):
        item = {"type": "function_call", "call_id": ident, "name": name, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": at + 1, "item": item})
    for at, (_, _, args) in reversed(list(enumerate(calls))):
        events.append({"type": f"{kind}.delta", "output_index": at + 1, "delta": args})
    if finish:
        events += [
            {"type": f"{kind}.done", "output_index": at + 1, "arguments": args}
            for at, (_, _, args) in enumerate(calls)
        ]
        events.append({"type": "response.completed", "response": {"status": finish}})
    return events


def blocks(calls: list[Spelled], text: str = "") -> dict[str, Any]:
    said = [{"type": "text", "text": text}] if text else []
    listed = [{"type": "tool_use", "id": i, "name": n, "input": json.loads(a)} for i, n, a in calls]
    return {"role": "assistant", "stop_reason": "tool_use", "content": said + listed}


def block_events(
    calls: list[Spelled], text: str = "", finish: str | None = "tool_use"
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    ]
    for at, (ident, name, _) in enumerate(calls):
        block = {"type": "tool_use", "id": ident, "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": at + 1, "content_block": block})
    for at, (_, _, args) in reversed(list(enumerate(calls))):
        delta = {"type": "input_json_delta", "partial_json": args}
        events.append({"type": "content_block_delta", "index": at + 1, "delta": delta})
        if finish:
            events.append({"type": "content_block_stop", "index": at + 1})
    return events + ([{"type": "message_delta", "delta": {"stop_reason": finish}}] if finish else [])


def spelled(calls: list[Call]) -> list[Spelled]:
    return [(f"id{at}", name.replace(".", "_"), json.dumps(args)) for at, (name, args) in enumerate(calls)]


def api_cases(whole: Any, events: Any) -> Iterator[dict[str, Any]]:
    for (at, one), (index, two) in product(enumerate(CALLS), enumerate(CALLS)):
        if (at + index) % 2:
            yield case(f"two-{at}-{index}", whole(spelled([one, two]), "Text"), [one, two], 0, "message")
            yield case(f"streamed-{at}-{index}", events(spelled([one, two]), "Text"), [one, two], 0, "events")
    for at, one in enumerate(CALLS):
        yield case(f"one-{at}", whole(spelled([one])), [one], 0, "message")
        yield case(f"one streamed-{at}", events(spelled([one])), [one], 0, "events")
        unended = [] if events is block_events or not one[1] else [one]
        yield (
            case(
                f"stream without an end-{at}",
                events(spelled([one]), finish=None),
                unended,
                1 - len(unended),
                "events",
            )
            if one[1]
            else case(
                f"stream cut before the arguments-{at}",
                events([("a", "code_list", "")], finish=None),
                [],
                1,
                "events",
            )
        )
    good = ("good", "code_list", "{}")
    for name, text in BROKEN_ARGUMENTS.items():
        broken = ("bad", "code_read", text)
        yield case(f"broken {name}", events([broken]), [], 1, "events")
        for order in ([broken, good], [good, broken]):
            yield case(f"broken {name}, sibling {order[0] is good}", events(order), [CALLS[0]], 1, "events")
            if whole is not blocks:
                yield case(
                    f"broken {name}, whole, sibling {order[0] is good}",
                    whole(order),
                    [CALLS[0]],
                    1,
                    "message",
                )
    odd = {
        "unknown tool": ([("a", "os_system", "{}"), good], [CALLS[0]], 1), "no name": ([("a", "", "{}"), good], [CALLS[0]], 1),
        "no id": ([("", "code_list", "{}"), ("", "code_list", "{}")], [CALLS[0], CALLS[0]], 0),
        "one id twice": ([("a", "code_list", "{}"), ("a", "code_list", "{}")], [CALLS[0]], 1), "text only": ([], [], 0),
        "dotted name": ([("a", "code.list", "{}")], [CALLS[0]], 0), "without arguments": ([("a", "code_list", "")], [CALLS[0]], 0),
    }  # fmt: skip
    for name, (listed, calls, errors) in odd.items():
        yield case(name, events(listed, f"no call: {FORGERY}"), calls, errors, "events")
