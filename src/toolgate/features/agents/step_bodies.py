"""Bodies of steps: what of a reply and of a result is kept in the table of runs, and what they used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.agents.budget import RunSpending
from toolgate.agents.models import ModelReply
from toolgate.agents.wires import Parsed, WireCall, WireError
from toolgate.core.errors import Code, by_policy
from toolgate.core.result import Result
from toolgate.gate.authorize import RULE

_STOPS = frozenset({Code.DENIED, Code.EXPIRED, Code.UNKNOWN_TOOL})
"""What stops the rest of a reply's calls, as a refusal by policy does: they were meant to follow it."""


def spent_on(reply: ModelReply, seconds: float) -> RunSpending:
    usd = reply.usage.usd
    return RunSpending(
        reply.usage.tokens, usd or 0.0, seconds, 0, 1, reply.usage.tokens if usd is None else 0
    )


def parsed_reply(body: Mapping[str, Any]) -> Parsed:
    calls = [WireCall(**call) for call in body["calls"]]
    return Parsed(calls, [WireError(**error) for error in body["errors"]], body["text"])


def result_body(number: int, index: int, result: Result, text: str, rule: str) -> dict[str, Any]:
    error, data = result.error, result.data
    return {
        "round": number, "index": index, "tool": result.tool, "ok": result.ok, "text": text,
        "code": error.code.value if error is not None else "", "rule": rule, "note": result.note,
        "stop": f"it went round in circles: {error.message}" if error is not None and rule.startswith(RULE) else "",
        "refused": error is not None and (error.code in _STOPS or by_policy(error.code, data)),
        "call": result.meta.call_id, "event": result.meta.event_id, "ms": round(result.meta.duration_ms, 3),
        "tokens": result.meta.tokens,
    }  # fmt: skip


def not_run(number: int, index: int, tool: str, why: str) -> dict[str, Any]:
    return {
        "round": number, "index": index, "tool": tool, "ok": False, "text": f"cancelled: not run: {why}",
        "code": Code.CANCELLED.value, "rule": "", "note": "", "stop": "", "refused": False, "call": "",
        "event": None, "ms": 0.0, "tokens": 0,
    }  # fmt: skip


def recorded_spending(step: Mapping[str, Any]) -> RunSpending:
    body = step["body"]
    if step["kind"] == "reply":
        tokens, usd = body["input"] + body["output"], body["usd"]
        return RunSpending(tokens, usd or 0.0, body["seconds"], 0, 1, tokens if usd is None else 0)
    if step["kind"] == "result":
        spent = RunSpending(0, 0.0, body["ms"] / 1000, 1 if body["call"] else 0)
        if told := body.get("summary"):
            tokens, usd = told["input"] + told["output"], told["usd"]
            spent.add(RunSpending(tokens, usd or 0.0, told["seconds"], 0, 1, tokens if usd is None else 0))
        return spent
    return RunSpending()
