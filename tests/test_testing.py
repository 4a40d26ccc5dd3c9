"""The fakes that ship with toolgate are strict."""

from __future__ import annotations

import pytest

import toolgate
from toolgate import testing
from toolgate.testing import Approve, FixedClock, Refuse, Scope, Script


@toolgate.tool("mail.send", writes=["outside"])
async def send(to: str) -> dict[str, str]:
    return {"sent": to}


POLICY = {
    "version": 1,
    "default_persona": "clerk",
    "personas": {"clerk": {"phase": "collaborate"}},
    "policy": {
        "rules": [{"name": "mail", "tools": ["mail.*"], "decision": "ask", "reason": "mail is read first"}]
    },
}


async def test_a_scripted_human_approves_and_the_call_runs() -> None:
    human = Script(Approve("mail.send"))
    async with testing.gate([send], POLICY, human=human) as gate:
        result = await gate.call("mail.send", {"to": "ada"})
    assert result.ok
    assert human.seen[0].reason == "mail is read first"


async def test_a_scripted_refusal_reaches_the_caller_with_its_reason() -> None:
    async with testing.gate([send], POLICY, human=Script(Refuse("mail.send", "not today"))) as gate:
        result = await gate.call("mail.send", {"to": "ada"})
    assert result.error is not None
    assert result.error.code == "denied"
    assert "Access denied by creator." in result.error.message
    assert "not today" in result.error.message


async def test_a_question_that_nobody_scripted_fails_the_test() -> None:
    with pytest.raises(AssertionError, match=r"nobody scripted an answer for mail\.send"):
        async with testing.gate([send], POLICY, human=Script()) as gate:
            assert not (await gate.call("mail.send", {"to": "ada"})).ok


async def test_an_answer_that_nobody_asked_for_fails_the_test() -> None:
    with pytest.raises(AssertionError, match=r"mail\.send was never asked about"):
        async with testing.gate([send], POLICY, human=Script(Approve("mail.send"))):
            pass


async def test_the_clock_moves_only_when_told_to() -> None:
    clock = FixedClock()
    human = Script(Approve("mail.send", Scope(seconds=60)))
    async with testing.gate([send], POLICY, human=human, clock=clock) as gate:
        for to in ("ada", "bob"):  # the second is covered by the grant
            assert (await gate.call("mail.send", {"to": to})).ok
        clock.advance(61)
        late = await gate.call("mail.send", {"to": "cid"}, wait=False)
    assert late.error is not None
    assert late.error.code == "pending"
