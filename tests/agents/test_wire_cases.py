"""Every case of every wire: the calls that it holds and no other, whole and in any pieces."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest

from agents.case_parts import TOOLS
from agents.make_cases import HERE, WIRES, lines
from sampling import dice, fewer
from toolgate.agents import wires

NAMES = pytest.mark.parametrize("name", WIRES)
TEXT = ("xml", "manifest", "leaked")


@cache
def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def parsed(name: str, case: dict[str, Any]) -> wires.Parsed:
    if "events" not in case:
        return wires.parse(case["text"] if "text" in case else case["message"], name, TOOLS)
    return streamed(name, case["events"])


def streamed(name: str, events: list[Any]) -> wires.Parsed:
    stream = wires.stream(name, TOOLS)
    for event in events:
        stream.feed(event)
    return stream.close()


def calls_of(found: wires.Parsed) -> list[list[Any]]:
    return [[call.name, call.args] for call in found.calls]


@NAMES
def test_the_files_are_what_the_classes_make(name: str) -> None:
    assert (HERE / f"{name}.jsonl").read_text() == lines(name), "run `python -m agents.make_cases` in tests"
    assert len({case["id"] for case in cases(name)}) == len(cases(name)) >= 200


@NAMES
def test_each_case_gives_its_calls_and_no_other(name: str) -> None:
    wrong = []
    for case in cases(name):
        found = parsed(name, case)
        if calls_of(found) != case["calls"] or case["errors"] not in (None, len(found.errors)):
            wrong.append((case["id"], calls_of(found), [error.message for error in found.errors]))
    assert wrong == []


@NAMES
def test_every_error_shows_a_call_that_is_correct(name: str) -> None:
    examples = {error.example for case in cases(name) for error in parsed(name, case).errors if error.example}
    assert examples
    for example in examples:
        if name in TEXT:
            assert len(wires.parse(example, name, TOOLS).calls) == 1, example
        else:
            assert json.loads(example)["name"]


def pieces(text: str, chance: random.Random) -> list[str]:
    if chance.random() < 0.2:
        return list(text)
    cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(1, 12)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def split_events(events: list[Any], chance: random.Random) -> list[Any]:
    """The same events with every text in them in pieces."""
    made: list[Any] = []
    for event in events:
        spelled = json.dumps(event)
        for key in ("arguments", "partial_json", "delta"):
            text = _leaf(event, key)
            if isinstance(text, str) and len(text) > 1 and "done" not in str(event.get("type")):
                made += [_with_leaf(json.loads(spelled), key, part) for part in pieces(text, chance)]
                break
        else:
            made.append(event)
    return made


def _leaf(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            return value[key]
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        if (found := _leaf(item, key)) is not None:
            return found
    return None


def _with_leaf(value: Any, key: str, text: str) -> Any:
    if isinstance(value, dict):
        return {
            name: text if name == key and isinstance(item, str) else _with_leaf(item, key, text)
            for name, item in value.items()
        }
    return [_with_leaf(item, key, text) for item in value] if isinstance(value, list) else value


@NAMES
def test_pieces_of_any_size_give_what_the_whole_gives(name: str) -> None:
    chance = dice(f"pieces of {name}")
    for case in cases(name):
        whole = parsed(name, case)
        for _ in range(fewer(12, 1)):
            if "events" in case:
                found = streamed(name, split_events(case["events"], chance))
            else:
                text = case["text"] if "text" in case else json.dumps(case["message"])
                found = streamed(name, pieces(text, chance))
                found.raw = whole.raw
            assert (found.calls, found.errors, found.text, found.thinking, found.finish) == (
                whole.calls, whole.errors, whole.text, whole.thinking, whole.finish,
            ), case["id"]  # fmt: skip


@pytest.mark.parametrize("name", TEXT)
def test_any_two_cases_behind_each_other_give_the_same_in_pieces(name: str) -> None:
    """Also where the first is broken, and takes of the second what it will: never a crash, never another result."""
    chance = dice(f"pairs of {name}")
    known = {json.dumps(one) for case in cases(name) for one in case["calls"]}
    for _ in range(fewer(3000, 150)):
        between = chance.choice(["\n", "", "\n\n", " "])
        text = between.join(one["text"] for one in chance.choices(cases(name), k=3))
        whole = wires.parse(text, name, TOOLS)
        found = streamed(name, pieces(text, chance))
        assert (found.calls, found.errors, found.text) == (whole.calls, whole.errors, whole.text)
        if between == "\n\n":  # else backticks of two cases join to other ones
            assert all(json.dumps(one) in known for one in calls_of(whole)), text


@pytest.mark.parametrize("name", TEXT)
def test_noise_of_marks_never_crashes_and_never_depends_on_the_pieces(name: str) -> None:
    chance = dice(f"noise for {name}")
    bits = [
        "<tool_call>", "</tool_call>", '{"name": "code.list"}', '{"tools": [', "]}", '"', "'", "`", "```", "~~~", "\n", "\n\n", "> ",
        "<think>", "</think>", "<!--", "-->", "{", "}", "[", "]", "\\", "“", "”", " ", "    ", "- ", "&lt;tool_call&gt;", "x", ",",
        "x ```\n", "'''", " \"\n", "# ", "\ufeff", "<function=code.list>", "</function>", "<parameter=a>", "</parameter>", '<invoke name="code.list">', "</invoke>", ":", "ü", "\r\n",
        '{"phase": "x", "intent": "tool_call", "tools": [{"name": "code.list", "args": {}}]}', "<code>", "</code>", "<code", ">", "<function=code.",
        "Tool output:\n", "<note>", "</note>", "<note x", "[THINK]", "[/THINK]", "<|im_start|>tool\n", "</tool_result>", "says:\n", "Step 2 ", "<|end|>", "<|channel|>analysis",
    ]  # fmt: skip
    for _ in range(fewer(20000, 400)):
        text = "".join(chance.choices(bits, k=chance.randrange(1, 40)))
        whole = wires.parse(text, name, TOOLS)
        found = streamed(name, pieces(text, chance))
        assert (found.calls, found.errors, found.text, found.thinking) == (
            whole.calls, whole.errors, whole.text, whole.thinking,
        ), repr(text)  # fmt: skip
        assert all(call.name == "code.list" for call in whole.calls)


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic"])
def test_an_api_that_answers_garbage_gives_no_call_and_no_crash(name: str) -> None:
    chance = dice(f"garbage for {name}")
    garbage: list[Any] = [
        None,
        0,
        -1,
        True,
        "",
        "x",
        [],
        {},
        [None],
        {"type": "tool_use"},
        ["x"],
        1.5,
        {"index": {}},
    ]

    def spoiled(value: Any) -> Any:
        if chance.random() < 0.08:
            return chance.choice(garbage)
        if isinstance(value, dict):
            return {key: spoiled(item) for key, item in value.items()}
        return [spoiled(item) for item in value] if isinstance(value, list) else value

    whole = [case for case in cases(name) if "events" in case]
    known = {json.dumps(one) for case in whole for one in case["calls"]} | {'["code.list", {}]'}
    for case in chance.choices(whole, k=fewer(3000, 150)):
        found = streamed(name, [spoiled(event) for event in case["events"]])
        assert all(json.dumps(one) in known or one[0] == "free.form" for one in calls_of(found)), case["id"]
        wires.parse(spoiled(case["events"]), name, TOOLS)
