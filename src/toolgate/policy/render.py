"""Plain-text pages for `toolgate policy explain`, `test` and `replay`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.core.clock import iso
from toolgate.policy.examples import ExampleOutcome
from toolgate.policy.explain import ExplainedStep, Explanation
from toolgate.policy.replay import KINDS, Replay, ReplayDifference

MAX_ARGS = 100


def render_explanation(explanation: Explanation) -> str:
    facts, decision = explanation.facts, explanation.decision
    lines = [
        _call(facts.persona, facts.tool.name, facts.args),
        f"  {facts.effects.words()}",
        f"{decision.verdict.upper()} by {decision.rule} (step {decision.step}): {decision.reason}",
    ]
    if decision.channels:
        lines.append(f"  the answer must come from: {', '.join(decision.channels)}")
    shown = ""
    for line in explanation.lines:
        if line.persona != shown:
            lines += ["", f"as {line.persona}"]
            shown = line.persona
        lines.append(_line(line))
    return _page(lines)


def render_examples(outcomes: Iterable[ExampleOutcome]) -> str:
    lines = []
    passed = failed = 0
    for outcome in outcomes:
        passed += outcome.passed
        failed += not outcome.passed
        lines += _outcome(outcome)
    return _page([*lines, f"{passed} passed, {failed} failed"])


def render_replay(result: Replay) -> str:
    lines = [line for difference in result.differences for line in _difference(difference)]
    totals = ", ".join(f"{result.totals[kind]} {kind}" for kind in KINDS)
    if result.left_out:
        lines.append(
            f"left out: {result.left_out:,} refused by something else than policy, such as a pause or a missing trust"
        )
    return _page([*lines, totals])


def _page(lines: Iterable[str]) -> str:
    return "".join(_shown(line) + "\n" for line in lines)


def _shown(text: str) -> str:
    """Control and bidirectional characters made visible, so that a call cannot disturb a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def _call(persona: str, tool: str, args: Mapping[str, Any]) -> str:
    spelled = json.dumps(args, sort_keys=True, default=str)
    return f"{persona}: {tool} {spelled if len(spelled) <= MAX_ARGS else spelled[:MAX_ARGS] + '…'}"


def _line(line: ExplainedStep) -> str:
    mark = ">" if line.decided else " "
    said = line.verdict or "-"
    return f"{mark} {line.step} {said:<5} {line.text}: {line.why}".rstrip(": ")


def _outcome(outcome: ExampleOutcome) -> list[str]:
    call = _call(outcome.call.persona, outcome.call.tool, outcome.call.args)
    if outcome.explanation is None:
        return [f"FAIL {outcome.where}: {call}", f"     the call cannot be made: {outcome.problem}"]
    decision = outcome.explanation.decision
    if outcome.passed:
        return [f"ok   {outcome.where}: {call} -> {decision.verdict} by {decision.rule}"]
    return [
        f"FAIL {outcome.where}: {call}",
        f"     expected {outcome.expected}, got {decision.verdict} by {decision.rule}: {decision.reason}",
    ]


def _difference(difference: ReplayDifference) -> list[str]:
    call = difference.call
    head = f"{difference.kind:<8} #{call.seq} {iso(call.at)} {_call(call.persona, call.tool, call.args)}"
    before = f"         was {call.verdict} by {call.rule}"
    if difference.decision is None:
        return [head, f"{before}, {difference.problem}"]
    now = difference.decision
    return [head, f"{before}, now {now.verdict} by {now.rule}: {now.reason}"]
