"""The scripted model server speaks to the real SDK clients, and the wires read what they hand over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from agents.model_server import Answer, ModelServer, model_server
from toolgate.agents import wires

TOOLS = ["code.read", "code.list"]
BOTH = Answer(
    text="Looking.", calls=[("code_read", {"path": "ä.py"}), ("code_list", {})], thinking="hm", piece=3
)
ASKED = [{"role": "user", "content": "hi"}]


def chat(server: ModelServer, stream: bool, retries: int = 0) -> wires.Parsed:
    client = openai.OpenAI(base_url=server.openai, api_key="none", max_retries=retries, timeout=10)
    with client:
        answer: Any = client.chat.completions.create(model="m", messages=ASKED, stream=stream)  # type: ignore[call-overload]
        return read("openai", answer, stream)


def responses(server: ModelServer, stream: bool, retries: int = 0) -> wires.Parsed:
    client = openai.OpenAI(base_url=server.openai, api_key="none", max_retries=retries, timeout=10)
    with client:
        answer: Any = client.responses.create(model="m", input="hi", stream=stream)  # type: ignore[call-overload]
        return read("openai-responses", answer, stream)


def messages(server: ModelServer, stream: bool, retries: int = 0) -> wires.Parsed:
    client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=retries, timeout=10)
    with client:
        answer: Any = client.messages.create(model="m", max_tokens=99, messages=ASKED, stream=stream)  # type: ignore[call-overload]
        return read("anthropic", answer, stream)


def read(name: str, answer: Any, stream: bool) -> wires.Parsed:
    if not stream:
        return wires.parse(answer, name, TOOLS)
    reader = wires.stream(name, TOOLS)
    try:
        for event in answer:
            reader.feed(event)
    except Exception:
        CAUGHT.append(reader.close())
        raise
    return reader.close()


CAUGHT: list[wires.Parsed] = []
"""What the wires made of streams that broke."""


@pytest.fixture
def caught() -> list[wires.Parsed]:
    CAUGHT.clear()
    return CAUGHT


CLIENTS = pytest.mark.parametrize("ask", [chat, responses, messages])
Ask = Callable[..., wires.Parsed]


@CLIENTS
@pytest.mark.parametrize("stream", [False, True])
def test_calls_reach_the_wire_through_the_real_client(ask: Ask, stream: bool) -> None:
    with model_server(BOTH) as server:
        parsed = ask(server, stream)
    assert [(one.id, one.name, one.args) for one in parsed.calls] == [
        ("call_0", "code.read", {"path": "ä.py"}),
        ("call_1", "code.list", {}),
    ]
    assert parsed.errors == []
    assert parsed.text == "Looking."
    assert parsed.finish in ("tool_calls", "completed", "tool_use")


@CLIENTS
def test_an_error_is_raised_by_the_client_and_the_next_answer_comes(ask: Ask) -> None:
    with model_server(Answer(status=429, headers={"retry-after": "0"}), Answer(text="later")) as server:
        assert ask(server, False, retries=1).text == "later"
        assert len(server.requests) == 2


@CLIENTS
@pytest.mark.parametrize("drop", range(0, 14, 2))
def test_a_dropped_stream_gives_no_call_that_was_not_complete(
    ask: Ask, drop: int, caught: list[wires.Parsed]
) -> None:
    answer = Answer(calls=[("code_list", {}), ("code_read", {"path": "a-long-name.py"})], piece=2, drop=drop)
    with model_server(answer) as server, pytest.raises(Exception, match="onnection"):
        ask(server, True)
    for parsed in caught:
        assert all(one.args in ({}, {"path": "a-long-name.py"}) for one in parsed.calls)
        assert not any(one.name == "code.read" and one.args == {} for one in parsed.calls)


def test_a_stalled_answer_ends_with_the_clients_own_time_out() -> None:
    from threading import Event

    released = Event()
    with model_server(Answer(text="never", stall=released)) as server:
        client = openai.OpenAI(base_url=server.openai, api_key="none", max_retries=0, timeout=0.2)
        with client, pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(model="m", messages=ASKED)  # type: ignore[arg-type]
        released.set()


def test_a_script_that_is_over_says_so() -> None:
    with model_server() as server, pytest.raises(openai.BadRequestError, match="the script is over"):
        chat(server, False)
