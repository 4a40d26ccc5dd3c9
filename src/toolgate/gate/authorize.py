"""Stage 3: policy says allow, ask or deny. It is asked again in `begin`, inside the transaction."""

from __future__ import annotations

from dataclasses import replace

from toolgate.core.decision import Decision, Verdict
from toolgate.core.errors import NotAllowed
from toolgate.core.paths import MountPath
from toolgate.core.ports import Facts
from toolgate.gate.flow import Flow, Services


def authorize(services: Services, flow: Flow) -> None:
    assert flow.facts is not None
    flow.rules = services.rules()
    flow.decision = flow.rules.decide(flow.facts)
    if flow.decision.verdict is Verdict.DENY:
        raise refused(flow.facts, flow.decision)


def with_paths(facts: Facts, more: tuple[str, ...]) -> Facts:
    """Facts that also cover the files a Change touches, which arguments need not name."""
    known = set(facts.paths)
    added = tuple(MountPath(path) for path in more if path not in known)
    return replace(facts, paths=facts.paths + added) if added else facts


def refused(facts: Facts, decision: Decision) -> NotAllowed:
    return NotAllowed(
        f"{facts.persona} may not call {facts.tool.name}: {decision.reason}",
        f"`toolgate policy explain {facts.tool.name} --persona {facts.persona}` shows every line that was considered",
        data={"rule": decision.rule},
    )
