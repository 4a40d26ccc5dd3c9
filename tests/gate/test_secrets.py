"""A call's own secrets: they are part of what is approved, and are repeated nowhere."""

from __future__ import annotations

import json
import logging

import pytest

from gates import KEYS
from toolgate import Tool, tool
from toolgate.core.call import call_digest

from .conftest import Open

PIN = "pin-4711"


def leaking() -> list[Tool]:
    async def shown(pin: str, token: str) -> str:
        return f"would log in with {token}"

    @tool("t.login", writes=["outside"], preview=shown)
    async def login(pin: str, token: str) -> dict[str, object]:
        """Log in."""
        return {"said": f"{token} accepted", "tried": [token, pin], token: 1}

    @tool("t.broken", writes=["outside"])
    async def broken(token: str) -> str:
        """Break."""
        raise RuntimeError(f"{token} was refused")

    return [login, broken]


ARGS = {"pin": "1", "token": PIN}


async def test_a_secret_is_in_no_result_event_error_or_log_and_what_it_is_taken_for_is_shown(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with opened("ask", tools=leaking()) as gate:
        asked = await gate.call("t.login", ARGS, wait=False)
        [question] = await gate.approvals()
        assert question.preview == f"would log in with {PIN}", "it may be anything, so a human sees it"
        assert question.args["token"] == PIN
        await gate.answer(question.id, "approve")
        done = await gate.call("t.login", ARGS, wait=False)
        assert done.data == {"said": "[masked] accepted", "tried": ["[masked]", "1"], "[masked]": 1}
        told = "".join([line async for line in gate.export()])
    async with opened(tools=leaking()) as gate:
        failed = await gate.call("t.broken", {"token": PIN})
        assert failed.error is not None
        assert "[masked] was refused" in failed.error.message
        told += "".join([line async for line in gate.export()])
    traces = "".join(getattr(record, "trace", "") for record in caplog.records)
    assert "RuntimeError: [masked] was refused" in traces
    for text in (told, traces, caplog.text, repr(asked), repr(failed)):
        assert PIN not in text


async def test_what_a_preview_raises_does_not_repeat_a_secret(opened: Open) -> None:
    async def shown(token: str) -> str:
        raise ValueError(f"{token} is not known")

    @tool("t.peek", writes=["outside"], preview=shown)
    async def look(token: str) -> str:
        """Look."""
        return ""

    async with opened("ask", tools=[look]) as gate:
        refused = await gate.call("t.peek", {"token": PIN}, wait=False)
        assert refused.error is not None
        assert "[masked] is not known" in refused.error.message
        assert PIN not in repr(refused) + "".join([line async for line in gate.export()])


async def test_the_digest_of_a_short_secret_cannot_be_guessed_from_the_ledger(opened: Open) -> None:
    async with opened("ask", tools=leaking()) as gate:
        await gate.call("t.broken", {"token": "1234"}, wait=False)
        [asked] = [row async for row in gate.export() if '"asked"' in row]
        body = json.loads(json.loads(asked)["body"])
        guess = call_digest("t.broken", body["definition"], '{"token":"1234"}', "p", None)
        assert body["digest"] != guess
        again = await gate.call("t.broken", {"token": "1234"}, wait=False)
        assert again.data["question"] == json.loads(asked)["ref"], "the same secret is the same call"
        other = await gate.call("t.broken", {"token": "1235"}, wait=False)
        assert other.data["question"] != json.loads(asked)["ref"]


def test_the_key_for_secrets_is_not_one_that_seals_rows_and_outlives_a_rotation() -> None:
    derived = KEYS.derived("secret arguments")
    assert derived not in KEYS.versions.values()
    assert derived != KEYS.derived("something else")
    assert len(derived) == 32
