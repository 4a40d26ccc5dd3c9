"""Looking for secrets in megabytes holds nobody else up, and loses nothing when the caller goes."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.consent import works
from toolgate.core.event import Asked
from toolgate.gate.flow import LARGE, large

HEAVY = "%61" * 500_000
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute", "allow": ["t.*"]}, "eve": {"phase": "observe"}},
}


@toolgate.tool("t.send", writes=["outside"])
async def send(text: str) -> str:
    return HEAVY if text == "large" else "sent"


async def _longest_wait(work: asyncio.Task[Any]) -> float:
    """How long the event loop did not come round while this was done."""
    longest = 0.0
    while not work.done():
        begun = time.perf_counter()
        await asyncio.sleep(0.005)
        longest = max(longest, time.perf_counter() - begun)
    return longest


@pytest.mark.parametrize(("persona", "args", "code"), [
    ("eve", {"text": HEAVY}, "not_allowed"),
    ("ada", {"text": "large"}, None),
])  # fmt: skip
async def test_the_loop_goes_on_while_much_is_searched(
    tmp_path: Path, persona: str, args: dict[str, Any], code: str | None
) -> None:
    async with toolgate.open(tmp_path, CONFIG, tools=[send]) as gate:
        await gate.set_secret("TOKEN", "a-value-that-is-long-enough")
        calling = asyncio.create_task(gate.call("t.send", args, persona=persona))
        assert await _longest_wait(calling) < 0.5
        error = calling.result().error
        assert (error and error.code.value) == code


async def test_a_large_question_is_spelled_and_cut_once_and_in_no_thread_that_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[str] = []
    spell, cut = Asked.text, works.shortened

    def spelling(self: Asked) -> str:
        where.append(threading.current_thread().name)
        return spell(self)

    def cutting(*given: Any) -> Any:
        where.append(threading.current_thread().name)
        return cut(*given)

    monkeypatch.setattr(Asked, "text", spelling)
    monkeypatch.setattr(works, "shortened", cutting)
    monkeypatch.setattr("toolgate.ledger.attachments.shortened", cutting)
    config = CONFIG | {"policy": {"rules": [{"name": "r", "tools": ["t.*"], "decision": "ask"}]}}
    text = "при́вет 你好 " * 20_000
    async with toolgate.open(tmp_path, config, tools=[send]) as gate:
        result = await gate.call("t.send", {"text": text}, wait=False)
        assert result.error is not None
        assert result.error.code.value == "pending"
        assert [name.partition("_")[0] for name in where] == ["large", "large"]
        again = await gate.call("t.send", {"text": text}, wait=False)
        assert again.error is not None
        assert again.data["question"] == result.data["question"]
        (asked,) = await gate.approvals()
        assert asked.args == {"text": text}
        await gate.answer(asked.id, "approve")
        assert (await gate.call("t.send", {"text": text})).ok
        assert (await gate.verify()).ok


async def test_a_caller_who_goes_while_a_result_is_searched_finds_it_under_its_key(tmp_path: Path) -> None:
    async with toolgate.open(tmp_path, CONFIG, tools=[send]) as gate:
        await gate.set_secret("TOKEN", "a-value-that-is-long-enough")
        calling = asyncio.create_task(gate.call("t.send", {"text": "large"}, key="k"))
        while "started" not in [row.kind for row in await gate.events()]:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        again = await gate.call("t.send", {"text": "large"}, key="k")
        assert again.ok, again.error
        kinds = [row.kind for row in await gate.events()]
        assert kinds.count("started") == 1


def test_what_is_large_is_told_without_looking_at_all_of_it() -> None:
    assert large("x" * (LARGE + 1))
    assert large({"a": ["x" * LARGE, {"b": "y"}]})
    assert large(list(range(LARGE + 1)))
    assert not large({"a": ["x" * 1000], "b": None, "c": 1.5})
