"""Tools are checked when they are made: options, effects, and the functions that are called later.

The lines with `type: ignore` are a test too: `make check` fails if mypy accepts them.
"""

from __future__ import annotations

import dataclasses
import traceback
from typing import Any, get_args

import pytest

import toolgate
from toolgate.core.effects import READS, WRITES, Effects, ReadWord, WriteWord
from toolgate.core.errors import CallError, Code, NotFound, SetupError
from toolgate.core.result import Problem, Result
from toolgate.core.tool import Tool, tool
from toolgate.core.tool_options import ToolOptions


def send(to: str, text: str = "") -> str:
    """Send something."""
    return to


def planned(path: toolgate.MountPath) -> toolgate.Change:
    return toolgate.Change((), "nothing")


def carried_out(change: toolgate.Change) -> str:
    return "done"


def refusal(**options: Any) -> SetupError:
    function = options.pop("function", send)
    with pytest.raises(SetupError) as caught:
        tool("mail.send", writes=["outside"], **options)(function)
    return caught.value


def test_every_option_of_a_tool_is_typed() -> None:
    made = {field.name for field in dataclasses.fields(Tool)}
    spelled = {
        "name",
        "description",
        "run",
        "model",
        "effects",
        "plan",
        "returns",
        "feature",
        "input_schema_override",
    }
    assert set(ToolOptions.__annotations__) == made - spelled
    assert get_args(ReadWord) == tuple(READS)
    assert get_args(WriteWord) == tuple(WRITES)


def test_mypy_and_the_gate_refuse_the_same_mistakes() -> None:
    with pytest.raises(SetupError, match="no option 'ristk'"):
        tool("mail.send", ristk="low")  # type: ignore[call-arg]
    with pytest.raises(SetupError, match="not an effect"):
        tool("mail.send", writes=["world"])(send)  # type: ignore[list-item]
    tool("mail.send", risk="lwo")  # type: ignore[arg-type]
    assert tool("mail.send", writes=["outside"], risk="high", timeout=3.0)(send).risk == "high"


def test_an_unknown_effect_is_answered_with_the_words_also_in_a_traceback() -> None:
    with pytest.raises(SetupError) as caught:
        tool("mail.send", writes=["projct"])(send)  # type: ignore[list-item]
    told = "".join(traceback.format_exception(caught.value))
    assert all(word in told for word in WRITES), told
    assert "fix: did you mean 'project'?" in told
    with pytest.raises(SetupError, match="is a text") as caught:
        Effects.of("project")
    assert caught.value.fix == "write reads=['project']"


@pytest.mark.parametrize("key", ["preview", "undo", "reconcile"])
def test_a_function_that_cannot_be_called_with_the_arguments_is_refused_at_once(key: str) -> None:
    def too_few(to: str) -> str:
        return to

    def too_many(to: str, text: str, subject: str) -> str:
        return to

    def nameless(to: str, text: str, /) -> str:
        return to

    error = refusal(**{key: too_few})
    assert error.message == f"mail.send: `{key}` does not take 'text'"
    assert error.fix == "it is called with the tool's arguments by name: (to, text); a Context may be added"
    assert "wants 'subject'" in refusal(**{key: too_many}).message
    assert "does not take 'to', 'text'" in refusal(**{key: nameless}).message
    assert "not a function" in refusal(**{key: "unsend"}).message


@pytest.mark.parametrize("key", ["preview", "undo", "reconcile"])
def test_a_function_may_take_a_context_defaults_or_anything(key: str) -> None:
    def with_context(to: str, text: str, ctx: toolgate.Context) -> str:
        return to

    async def with_more(to: str, text: str, *, times: int = 1) -> str:
        return to

    def anything(**given: Any) -> str:
        return ""

    functions: list[Any] = [with_context, with_more, anything]
    for function in functions:
        options: dict[str, Any] = {key: function}
        assert getattr(tool("mail.send", writes=["outside"], **options)(send), key) is function


def test_a_plan_gives_a_change_and_the_function_takes_it() -> None:
    made = tool("note.add", writes=["project"], plan=planned)(carried_out)
    assert made.plan is planned
    assert "takes to, text" in refusal(plan=planned).message
    assert "takes nothing" in refusal(plan=planned, function=lambda: None).message

    def gives_text(path: toolgate.MountPath) -> str:
        return "x"

    assert "`plan` returns str, not a Change" in refusal(plan=gives_text, function=carried_out).message


def test_unwrap_gives_the_data_or_raises_the_error_of_its_code() -> None:
    assert Result(True, "t.x", {"a": 1}).unwrap() == {"a": 1}
    for code in Code:
        lost = Result(False, "t.x", {"near": ["a"]}, Problem(code, "it is gone", "look elsewhere"))
        with pytest.raises(CallError) as caught:
            lost.unwrap()
        assert caught.value.code is code
        assert (caught.value.message, caught.value.fix, caught.value.data) == (
            "it is gone",
            "look elsewhere",
            {"near": ["a"]},
        )
    with pytest.raises(NotFound):
        Result(False, "t.x", None, Problem(Code.NOT_FOUND, "no", "")).unwrap()
