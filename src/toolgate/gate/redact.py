"""Stage 9: secrets out of whatever leaves the gate, whether it goes to the model, the journal or a log."""

from __future__ import annotations

from dataclasses import replace

from toolgate.gate.flow import Broke, Done, Flow, Services


def redact(services: Services, flow: Flow) -> None:
    outcome = flow.outcome
    if isinstance(outcome, Done):
        flow.data = services.redactor.redact(outcome.value, flow.hidden)
    elif outcome is not None:
        flow.outcome = replace(outcome, message=str(services.redactor.redact(outcome.message, flow.hidden)))
        if isinstance(flow.outcome, Broke) and flow.outcome.data is not None:
            flow.data = services.redactor.redact(flow.outcome.data, flow.hidden)
