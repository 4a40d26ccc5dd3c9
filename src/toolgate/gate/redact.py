"""Stage 8: secrets out of whatever leaves the gate, whether it goes to the model, the journal or a log."""

from __future__ import annotations

from dataclasses import replace

from toolgate.gate.flow import Broke, Done, Flow, Lost, Services


def redact(services: Services, flow: Flow) -> None:
    match flow.outcome:
        case Done(value):
            flow.data = services.redactor.redact(value)
        case Broke() | Lost():
            flow.outcome = replace(flow.outcome, message=str(services.redactor.redact(flow.outcome.message)))
