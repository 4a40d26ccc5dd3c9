"""Stage 3: policy says allow, ask or deny. It is asked again in `begin`, inside the transaction."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import BlockedContent, BlockedPath, CallError, NotAllowed
from toolgate.core.finding import recorded
from toolgate.core.paths import MountPath
from toolgate.core.records import replace
from toolgate.gate.repeats import look_back, stricter
from toolgate.policy.findings import STEP as CONTENT
from toolgate.policy.hard import SHUT

if TYPE_CHECKING:
    from toolgate.core.ports import Facts
    from toolgate.gate.flow import Flow, Services


def authorize(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    assert flow.facts is not None
    if flow.facts.findings:  # of an earlier turn: what is planned now is scanned again
        flow.facts = replace(flow.facts, findings=())
    flow.rules = services.rules()
    flow.decision = flow.rules.decide(flow.facts)
    if flow.trail.run:
        return _of_a_run(services, flow)
    if flow.decision.verdict is Verdict.DENY:
        raise refused(flow, flow.facts, flow.decision)
    return None


async def _of_a_run(services: Services, flow: Flow) -> None:
    """An agent that goes round in circles: policy hears of it as of anything else about a call."""
    assert flow.facts is not None
    assert flow.decision is not None
    flow.repeats = await look_back(services, flow)
    flow.decision = stricter(flow.decision, flow.repeats)
    if flow.decision.verdict is Verdict.DENY:
        raise refused(flow, flow.facts, flow.decision)


def with_paths(facts: Facts, more: tuple[str, ...]) -> Facts:
    """Facts that also cover the files a Change touches, which arguments need not name."""
    known = set(facts.paths)
    added = tuple(MountPath(path) for path in more if path not in known)
    return replace(facts, paths=facts.paths + added) if added else facts


def refused(flow: Flow, facts: Facts, decision: Decision) -> CallError:
    if facts.findings and decision.step == CONTENT:
        return BlockedContent(
            f"{facts.persona} may not write this with {facts.tool.name}: {decision.reason}",
            "leave it out; or let policy ask or allow, by `scan:` in toolgate.yaml or a rule with "
            "`when: {findings: [...]}` (docs/scan.md)",
            data={"rule": decision.rule, "findings": recorded(facts.findings)},
        )
    kind = BlockedPath if decision.rule in SHUT else NotAllowed
    return kind(
        f"{facts.persona} may not call {facts.tool.name}: {decision.reason}",
        _way_on(flow, decision),
        data={"rule": decision.rule},
    )


def _way_on(flow: Flow, decision: Decision) -> str:
    """For whoever called: an agent has no shell, so what is done there is said to be for a human."""
    why = f"a human can see why with `toolgate policy explain {flow.call_id}`"
    if decision.fix:
        return f"{decision.fix}; {why}"
    return f"{why}; `tools.list` shows what may be called" if decision.step > 1 else why
