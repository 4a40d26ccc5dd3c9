"""Stage 5: what a Change would write is searched for secrets, payloads and hidden characters; policy hears of it.

Every Change passes here, whoever planned it. What is found becomes part of the call's digest, so an approval is for a call
with exactly these findings. Secrets are masked in all that is recorded and shown from here on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolgate.core import diff
from toolgate.core.call import Call
from toolgate.core.change import Change
from toolgate.core.decision import Verdict
from toolgate.core.errors import BlockedContent
from toolgate.core.ports import Scan, Scanner
from toolgate.gate.authorize import refused
from toolgate.gate.flow import Flow, Services
from toolgate.secrets.mask import MASK

log = logging.getLogger("toolgate.gate")
SMALL = 16 << 10
"""Bytes that are scanned where we stand; more would hold up everybody else."""
SHORT = 8
"""Where all texts are left out: what is too short to hold a secret."""


async def scan(services: Services, flow: Flow) -> None:
    tool, call, facts = flow.tool, flow.call, flow.facts
    assert tool is not None
    assert call is not None
    assert facts is not None
    if call.change is None:
        return
    flow.scan = await _scanned(services.scanner, call.change)
    if flow.scan.findings or call.change.findings:  # a plan's own word about findings does not count
        change = replace(call.change, findings=flow.scan.findings)
        flow.call = Call.make(
            tool.name, tool.definition, call.args, flow.persona, flow.trail, flow.call_id, change
        )
    if flow.scan.findings != facts.findings:
        flow.facts = replace(facts, findings=flow.scan.findings)
        flow.rules = services.rules()
        flow.decision = flow.rules.decide(flow.facts)
        if flow.decision.verdict is Verdict.DENY:
            raise refused(flow.facts, flow.decision)
    if flow.decision is not None and flow.decision.verdict is Verdict.ASK:
        flow.preview = masked(flow.preview or diff.render(call.change), flow.scan)


async def _scanned(scanner: Scanner, change: Change) -> Scan:
    """A scanner that fails lets nothing pass."""
    size = sum(len(side) for file in change.files for side in (file.before, file.after) if side)
    try:
        return scanner.scan(change) if size <= SMALL else await asyncio.to_thread(scanner.scan, change)
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
    args = services.redactor.mask(flow.tool, flow.call.args)
    if not flow.scan.values and not flow.scan.opaque:
        return args
    return {name: _masked(value, flow.scan) for name, value in args.items()}


def _masked(value: Any, seen: Scan) -> Any:
    if isinstance(value, str):
        return masked(value, seen)
    if isinstance(value, dict):
        return {masked(key, seen): _masked(item, seen) for key, item in value.items()}
    return [_masked(item, seen) for item in value] if isinstance(value, list) else value


def masked(text: str, seen: Scan) -> str:
    """The longest first, so that one secret inside another leaves no rest. Too many, and nothing long is shown."""
    if seen.opaque:
        return MASK if len(text) > SHORT else text
    for value in sorted(seen.values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text
