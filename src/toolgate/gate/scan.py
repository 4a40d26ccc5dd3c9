"""Stage 5: what a Change would write is searched for secrets, payloads and hidden characters; policy hears of it.

Every Change passes here, whoever planned it. What is found becomes part of the call's digest, so an approval is for a call
with exactly these findings. Secrets are masked in all that is recorded and shown from here on.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from toolgate.core import diff
from toolgate.core.call import Call
from toolgate.core.change import Change
from toolgate.core.decision import Verdict
from toolgate.core.errors import BlockedContent
from toolgate.core.ports import Scan, Scanner
from toolgate.gate.authorize import refused
from toolgate.gate.flow import Flow, Services, aside
from toolgate.gate.markers import check_args, check_change
from toolgate.gate.redact import clean_change
from toolgate.secrets.mask import MASK

log = logging.getLogger("toolgate.gate")
SHORT = 8
"""Where all texts are left out: what is too short to hold a secret."""


def scan(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    assert flow.call is not None
    if flow.call.change is not None:
        return _scan(services, flow, flow.call, flow.call.change)
    if flow.effectful:
        check_args(flow.call.args_json)
    return None


async def _scan(services: Services, flow: Flow, call: Call, change: Change) -> None:
    tool, facts = flow.tool, flow.facts
    assert tool is not None
    assert facts is not None
    await aside(change, lambda: check_change(services.redactor, change))
    found = flow.scan = await aside(change, lambda: _scanned(services.scanner, change))
    if found.findings or change.findings:  # a plan's own word about findings does not count
        change = replace(change, findings=found.findings)
        flow.call = call.planned(change)
    args = await aside(change, lambda: services.redactor.mask(tool, call.args))
    flow.masked = await aside(change, lambda: masked(args, found)) if found.values or found.opaque else None
    if found.findings != facts.findings:
        flow.facts = replace(facts, findings=found.findings)
        flow.rules = services.rules()
        flow.decision = flow.rules.decide(flow.facts)
        if flow.decision.verdict is Verdict.DENY:
            raise refused(flow, flow.facts, flow.decision)
    if flow.decision is not None and flow.decision.verdict is Verdict.ASK:

        def work() -> str:
            shown = flow.preview or diff.render(clean_change(services.redactor, change, flow.hidden))
            return str(masked(services.redactor.redact(shown, flow.hidden), found))

        flow.preview = await aside(change, work)


def _scanned(scanner: Scanner, change: Change) -> Scan:
    """A scanner that fails lets nothing pass."""
    try:
        return scanner.scan(change)
    except Exception as error:
        # neither message nor trace: they may hold what was scanned
        log.error("the content scan failed with %s", type(error).__name__)
        raise BlockedContent(
            f"what would be written could not be scanned ({type(error).__name__}), so nothing was written",
            "report it; write other content, or the same in smaller parts",
            data={"rule": "scan:failed"},
        ) from None


def recorded_args(services: Services, flow: Flow) -> Mapping[str, Any]:
    """The arguments as the journal and a question hold them; the very same mapping where nothing is masked."""
    assert flow.tool is not None
    assert flow.call is not None
    if flow.masked is not None:
        return flow.masked
    return services.redactor.mask(flow.tool, flow.call.args) if flow.call.sealed_json else flow.call.args


def masked(value: Any, seen: Scan) -> Any:
    """Every text in it without the secrets that were seen: the longest first, so that one inside another leaves no
    rest. Where there are too many, no text that could hold one is left."""
    if isinstance(value, str):
        if seen.opaque:
            return MASK if len(value) > SHORT else value
        for secret in sorted(seen.values, key=len, reverse=True):
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, Mapping):
        return {str(masked(key, seen)): masked(item, seen) for key, item in value.items()}
    return [masked(item, seen) for item in value] if isinstance(value, list) else value
