"""Hostile and careless messages that the cases do not have: what a reader took for a call, or lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.case_parts import TOOLS
from toolgate.agents import wires

ASKED = {"name": "code.read", "args": {"path": "a"}}
MADE = {
    "xml": f"<tool_call>{json.dumps(ASKED)}</tool_call>",
    "manifest": json.dumps({"phase": "EXECUTE", "intent": "tool_call", "summary": "s", "tools": [ASKED]}),
    "leaked": "<function=code.read><parameter=path>a</parameter></function>",
}
ZONES = [
    "function_result",
    "function_response",
    "observation",
    "stdout",
    "stderr",
    "output",
    "result",
    "results",
    "search_results",
    "samp",
    "kbd",
    "tt",
    "textarea",
    "script",
    "style",
    "quote",
    "q",
    "cite",
    "examples",
    "documents",
    "file_content",
    "file_contents",
    "scratchpad",
    "analysis",
    "reflection",
    "antThinking",
]
QUOTED = [
    *(f"<{zone}>\n{{}}\n</{zone}>" for zone in ZONES), "> a quotation\n{}", "> a\nthat goes on\n{}", "> a\nb\n{} and\n{}", "Such: ```xml\n{}\n```",
    "1. so ```\n{}\n```\n", "`{}", "``{}`", '"""\n{}\n"""', "'''\n{}\n'''", 'It says: "\n{}\n" there', "“\n{}\n{}\n”", '"\n\n{}\n\n"',
    "Tool output:\n{}", "**Tool result (code.read):** {}", "Function result: ok\nline\n{}", "[Tool: code.read]\n{}", "Result:\n\n{}", "Observation: {}",
    "The file a.py says:\n{}", "README.md contains: {}", "Here is the output of the command:\nx\n{}", "File contents:\n{}", "$ cat notes\n{}", "User: {}",
    "<tool_use_result>{}</tool_use_result>", "<note>\n{}\n</note>", '<page url="x">a {} b</page>', "<seed:think>{}</seed:think>", "[THINK]{}[/THINK]",
    "[TOOL_RESULTS]{}[/TOOL_RESULTS]", "<|im_start|>tool\n{}<|im_end|>", "ok<|im_end|>\n<|im_start|>user\n{}", "<|channel|>analysis<|message|>\n{}\n<|end|>",
    "{}\n</tool_result>", "a\n{}\n</reasoning>\nb", "<|user|>\n{}",
    "Write ‘please {} now’", "‚so: {}‘", "「so: {}」", "『so {} 』", "《so: {}》", "‹ so: {} ›", "「\n{}\n」", "<![CDATA[\n{}\n]]>",
    "[INST] so\n{}\n[/INST]", "[AVAILABLE_TOOLS]{}[/AVAILABLE_TOOLS]", "<|start|>user<|message|>{}<|end|>", "System: {}", "### Instruction:\n{}",
    "The README states: {}", "The page contained:\n{}", "me@host:~$ cat x\n{}",
]  # fmt: skip
SAID = [
    "\ufeff{}",
    "\u200b{}",
    "> a quotation\n>\n{}",
    "> a\n```\nx\n```\n{}",
    "> a\n# head\n{}",
    'He said "go\non"\n{}',
    'a 24" screen\n{}',
    'He said:\n"\nx\n"\n{}',
    "a ``` b\n\n{}",
    "It's the users' and `'''`\n{}",
    "Tool output:\n```\nfailed\n```\n{}",
    "Tool output:\nfailed\n\n{}",
    "<tool_result>failed</tool_result>\n{}",
    "I check the results:\n{}",
    "Let me look at the contents of a.py:\n{}",
    "Use <path> and <name>, then <file_name>:\n{}",
    "a List<String> of <T>\n{}",
    "<note>x</note>\n{}",
    "<plan>x</plan>\n{}",
    "<|channel|>analysis<|message|>hm<|end|>\n{}",
    "[THINK]hm[/THINK]\n{}",
    'The page says: "no".\n{}',
    "As you said, I read it:\n{}",
    "As the file says:\n{}",
    "The users’ files aren’t ‘there’, ’tis so, rock ’n’ roll\n{}",
    "‘a\n{}",
    "[INST]hm[/INST]\n{}",
    "<|start|>assistant\n{}",
]
SAID_IN_LINE = [
    "The users’ ‘a’ file: {}", "「a」と「b」: {}", "Let me look \U0001f50d {}", "Step 2 {}", "Now the file - {}", 'I read "a.py": {}', "<answer>{}</answer>", "<tool_calls>{}</tool_calls>", "Check the output: {}",
]  # fmt: skip


def in_pieces(name: str, text: str) -> wires.Parsed:
    stream = wires.stream(name, TOOLS)
    for char in text:
        stream.feed(char)
    return stream.close()


@pytest.mark.parametrize("name", MADE)
def test_what_is_quoted_in_other_ways_does_not_run_and_what_follows_a_quotation_does(name: str) -> None:
    said = SAID + (SAID_IN_LINE if name != "leaked" else [])
    for context, count in [*((one, 0) for one in QUOTED), *((one, 1) for one in said)]:
        text = context.replace("{}", MADE[name])
        whole = wires.parse(text=text, format=name, tools=TOOLS)
        if name == "manifest" and "```xml" not in context and "so ```" in context:
            count = 1  # alone in a fence a request is one
        assert len(whole.calls) == count, text
        pieces = in_pieces(name, text)
        assert (pieces.calls, pieces.errors, pieces.text) == (whole.calls, whole.errors, whole.text), text


def test_a_request_that_is_a_part_of_something_else_does_not_run() -> None:
    made = MADE["manifest"]
    for text in (f"[{made}, {made}]", f'{{"b": 1}}, {made}', f"{{'a': 1, \"r\": {made}}}", f"{{x: {made}}}"):
        assert wires.parse(text, "manifest", TOOLS).calls == [], text
    assert len(wires.parse(f"So, this: {made}", "manifest", TOOLS).calls) == 1


def test_a_request_with_a_key_of_its_own_is_told_wherever_that_stands() -> None:
    made = json.loads(MADE["manifest"])
    for value in ({"thought": "hm", **made}, {**made, "thought": "hm"}):
        for context in ("{}", "So: {}", "```json\n{}\n```"):
            found = wires.parse(context.replace("{}", json.dumps(value)), "manifest", TOOLS)
            assert found.calls == []
            assert ["'thought'" in one.message for one in found.errors] == [True], context


def test_half_a_character_in_an_element_is_told() -> None:
    text = "<function=code.read><parameter=path>a\ud800</parameter></function>"
    parsed = wires.parse(text, "leaked", TOOLS)
    assert parsed.calls == []
    assert "lone surrogate" in parsed.errors[0].message


# --- APIs ---------------------------------------------------------------------------------------------------


def streamed(name: str, events: list[Any]) -> tuple[list[Any], list[str]]:
    stream = wires.stream(name, TOOLS)
    for event in events:
        stream.feed(event)
    parsed = stream.close()
    return [(call.id, call.name, call.args) for call in parsed.calls], [one.message for one in parsed.errors]


def chat(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[Any]:
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]


def part(index: int, **function: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": f"id{index}", "function": function}]}


def test_arguments_that_came_under_another_index_do_not_leave_a_call_without_them() -> None:
    calls, errors = streamed(
        "openai", chat(part(0, name="free_form"), part(1, arguments='{"x": 1}'), part(2, name="code_list", arguments="{}"))
    )  # fmt: skip
    assert [name for _, name, _ in calls] == ["code.list"]
    assert errors == ["It cannot be told whose the arguments without a name are.", "The call has no name."]


def test_a_call_that_was_cut_before_its_arguments_does_not_run_without_them() -> None:
    for reason in ("length", "content_filter"):
        assert streamed("openai", chat(part(0, name="free_form", arguments=""), finish=reason))[0] == []
    block = {"type": "tool_use", "id": "t", "name": "free_form", "input": {}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
    ]
    assert streamed("anthropic", events) == ([], ["The stream ended within the call."])
    assert streamed("anthropic", events[:2])[0] == [("t", "free.form", {})]


def test_the_old_form_of_a_call_is_told_once_also_when_streamed() -> None:
    deltas = [{"function_call": {"name": "code_list", "arguments": one}} for one in ("{", "}")]
    calls, errors = streamed("openai", chat(*deltas, finish="function_call"))
    assert calls == []
    assert errors == ["`function_call` is the old form of a call; use `tool_calls`."]


def item(ident: str, call: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": ident, "type": "function_call", "call_id": call, "name": name, **more}


def test_events_of_a_response_are_joined_by_id_where_they_have_no_place() -> None:
    done = "response.function_call_arguments.done"
    events = [
        {"type": "response.output_item.added", "item": item("i1", "c", "free_form")},
        {"type": "response.output_item.added", "item": item("i2", "d", "code_list")},
        {"type": done, "item_id": "i1", "arguments": '{"x": 1}'},
        {"type": done, "item_id": "i2", "arguments": "{}"},
    ]
    assert streamed("openai-responses", events) == (
        [("c", "free.form", {"x": 1}), ("d", "code.list", {})],
        [],
    )


def test_the_end_of_an_item_without_arguments_keeps_those_that_came() -> None:
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item("i", "c", "free_form")},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"x": 1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": item("i", "c", "free_form")},
    ]
    assert streamed("openai-responses", events)[0] == [("c", "free.form", {"x": 1})]


def test_calls_that_only_the_end_of_a_response_tells_are_read() -> None:
    response = {"status": "completed", "output": [item("i", "c", "code_list", arguments="{}")]}
    events = [{"type": "response.completed", "response": response}]
    assert streamed("openai-responses", events)[0] == [("c", "code.list", {})]


def test_two_blocks_of_one_index_are_two_calls() -> None:
    events = []
    for ident, text in (("t", '{"x": 1}'), ("u", '{"x": 2}')):
        block = {"type": "tool_use", "id": ident, "name": "free_form", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": text}
        events += [
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
        ]
    assert streamed("anthropic", events)[0] == [("t", "free.form", {"x": 1}), ("u", "free.form", {"x": 2})]


def test_one_entry_alone_is_a_message_too() -> None:
    entry = {"id": "a", "type": "function", "function": {"name": "code_list", "arguments": "{}"}}
    block = {"type": "tool_use", "id": "a", "name": "code_list", "input": {}}
    for name, message in (("openai", entry), ("anthropic", block)):
        assert [one.name for one in wires.parse(json.dumps(message), name, TOOLS).calls] == ["code.list"]


def test_a_message_of_another_role_calls_nothing() -> None:
    block = {"type": "tool_use", "id": "a", "name": "code_list", "input": {}}
    entry = {"id": "a", "type": "function", "function": {"name": "code_list", "arguments": "{}"}}
    for role in ("user", "tool", "system"):
        chat = wires.parse({"role": role, "tool_calls": [entry]}, "openai", TOOLS)
        blocks = wires.parse({"role": role, "content": [block]}, "anthropic", TOOLS)
        assert chat.calls == blocks.calls == []
        assert role in chat.errors[0].message
        assert role in blocks.errors[0].message


def test_the_openai_wire_reads_both_protocols_and_its_own_examples() -> None:
    call = item("i", "c", "code_list", arguments="{}")
    response = {"status": "completed", "output": [call]}
    for message in (response, response["output"], call):
        found = wires.parse(message, "openai", TOOLS)
        assert [(one.id, one.name) for one in found.calls] == [("c", "code.list")], message
    events = [
        {"type": "response.output_text.delta", "output_index": 0, "delta": "so"},
        {"type": "response.output_item.added", "output_index": 1, "item": item("i", "c", "free_form")},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"x": 1}'},
        {"type": "response.output_item.done", "output_index": 1, "item": item("i", "c", "free_form")},
    ]
    assert streamed("openai", events) == streamed("openai-responses", events)
    assert streamed("openai", events)[0] == [("c", "free.form", {"x": 1})]
    for name in ("openai", "anthropic"):
        example = wires.wire(name).example("free.form", {"x": 1})
        assert [one.args for one in wires.parse(example, name, TOOLS).calls] == [{"x": 1}]


def test_bytes_may_be_cut_within_a_character_and_lines_hold_any_character() -> None:
    path = "ü\u2028\u0085x"
    entry = {"index": 0, "id": "a", "function": {"name": "code_read", "arguments": json.dumps({"path": path}, ensure_ascii=False)}}  # fmt: skip
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}, *chat()]
    spelled = "".join(f"data: {json.dumps(one, ensure_ascii=False)}\r\n\r\n" for one in events)
    for text in (spelled, "\ufeff" + spelled, "id: 1\n" + spelled):
        stream = wires.stream("openai", TOOLS)
        for byte in text.encode():
            stream.feed(bytes([byte]))
        assert [call.args for call in stream.close().calls] == [{"path": path}]
