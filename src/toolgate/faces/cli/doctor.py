"""`toolgate doctor`: every check in turn; what is wrong comes with what to do about it."""

from __future__ import annotations

from typing import Any

from toolgate.faces.cli.checks import CHECKS
from toolgate.feature import everything, load
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.checkup import Check, Diagnosis, Patient
from toolgate.kits.terminal.command import command

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "bold yellow"), "bad": ("✗", "bold red")}


@command(epilog="Example: toolgate doctor --root ~/code/shop")
def doctor(root: options.Root = None, json: options.Json = False) -> None:
    """Check everything and say how to fix it; exit 1 if something is broken."""
    project.run(_doctor(root))


async def _doctor(root: Any) -> int:
    patient = Patient(project.locate(root))
    try:
        findings = [finding for check in CHECKS for finding in await _examine(check, patient)]
        findings += [finding for check in _brought(patient) for finding in await _examine(check, patient)]
    finally:
        await patient.close()
    broken = any(finding.state == "bad" for finding in findings)
    if not speech.finish([finding._asdict() for finding in findings], ok=not broken):
        _print(findings)
    return 1 if broken else 0


def _brought(patient: Patient) -> list[Check]:
    """The checks of features: also of those that the project itself brings, where its gate opens."""
    there = [each.feature for each in patient.gate.features.values()] if patient.gate else everything()
    return [check for feature in there if feature.checks for check in load(feature.checks)]


async def _examine(check: Any, patient: Patient) -> list[Diagnosis]:
    """A check that breaks is a finding, not the end of the examination."""
    try:
        return [finding async for finding in check(patient)]
    except Exception as error:
        fix = getattr(error, "fix", "") or "run `toolgate --debug doctor`"
        return [Diagnosis("bad", check.__name__.replace("_", " "), str(error), fix)]


def _print(findings: list[Diagnosis]) -> None:
    made = speech.table([" |whole", "check|whole", "finding"], [])
    for finding in findings:
        text = speech.safe(finding.found)
        if finding.fix and finding.state != "ok":
            text = text.append("\nfix: ", "bold") + speech.safe(finding.fix)
        made.add_row(speech.safe(*_MARKS[finding.state]), speech.safe(finding.what), text)
    speech.put(made)
