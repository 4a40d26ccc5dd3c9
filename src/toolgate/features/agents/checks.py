"""Checks of agents for `toolgate doctor`: models that can be reached, budgets that count, runs that are stuck.

No model is asked anything. A server that toolgate.yaml names itself is connected to, for a bounded time; the providers'
own addresses are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolgate.agents.models import INSTALL, ModelSettings, ModelUsage, priced
from toolgate.core.errors import ToolgateError
from toolgate.features.agents.config import AgentsSpec, ModelSpec
from toolgate.kits.terminal.checkup import Diagnosis, Patient

if TYPE_CHECKING:
    from toolgate.features.agents.runs import Runs

CONNECT_S = 3.0
_PORTS = {"http": 80, "https": 443}


async def models(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Silent for those who have none."""
    if patient.gate is None:
        return
    named: dict[str, ModelSpec] = patient.gate.config.section("models")
    spec: AgentsSpec = patient.gate.config.section("agents")
    for finding in _references(named, spec, patient.gate.policy.personas):
        yield finding
    reached = await asyncio.gather(*(_unreachable(one) for one in named.values()))
    for (name, one), silent in zip(named.items(), reached, strict=True):
        wrong = list(_problems(patient.gate.feature("agents"), name, one, silent))
        for finding in wrong:
            yield finding
        if not any(finding.state == "bad" for finding in wrong):
            where = f" at {one.base_url}, which answers" if one.base_url else ""
            yield Diagnosis("ok", f"model {name}", f"{one.kind} {one.model or name}{where}")
        budget = spec.budget
        if one.kind != "scripted" and budget.usd and not budget.tokens and _price(name, one) is None:
            yield Diagnosis(
                "warn", f"model {name}", f"its price is not known, so the limit of {budget.usd:g} USD does not count it",
                "say `usd_per_million: [input, output]`, or bound `agents: {budget: {tokens: …}}`",
            )  # fmt: skip


def _references(
    named: dict[str, ModelSpec], spec: AgentsSpec, personas: Collection[str]
) -> Iterator[Diagnosis]:
    wanted = {
        "agents.model": spec.model,
        "agents.summary.model": spec.summary.model if spec.summary else None,
    }
    wanted |= {f"agents.personas.{persona}": model for persona, model in spec.personas.items()}
    known = ", ".join(named) or "none"
    for where, model in wanted.items():
        if model is not None and model not in named:
            yield Diagnosis("bad", "agents", f"{where} names the model {model!r}, which there is not", f"`models:` has: {known}")  # fmt: skip
    for persona in spec.personas:
        if persona not in personas:
            yield Diagnosis("warn", "agents", f"agents.personas names {persona!r}, who is no persona", "see `personas:`")  # fmt: skip
    budget = spec.budget
    if named and not (budget.usd or budget.tokens or budget.calls or budget.seconds):
        fix = "set at least one, such as `agents: {budget: {usd: 1}}`"
        yield Diagnosis("warn", "agents", "a run has no budget at all", fix)


def _problems(runs: Runs, name: str, spec: ModelSpec, silent: str) -> Iterator[Diagnosis]:
    what = f"model {name}"
    if spec.kind != "scripted" and find_spec(spec.kind) is None:
        yield Diagnosis("bad", what, f"the package {spec.kind} is not installed", INSTALL)
    try:
        runs.models.ready(name)
    except ToolgateError as error:
        yield Diagnosis("bad", what, str(error.message), error.fix)
    if silent:
        yield Diagnosis("bad", what, silent, "start that server, or correct `base_url`")


async def _unreachable(spec: ModelSpec) -> str:
    """Why the server that `base_url` names does not answer; empty where it does, or none is named."""
    if not spec.base_url:
        return ""
    address = urlsplit(spec.base_url)
    try:
        port = address.port or _PORTS[address.scheme]
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(address.hostname, port)
        writer.close()
    except TimeoutError:
        return f"{spec.base_url} did not answer in {CONNECT_S:g} s"
    except (OSError, ValueError) as error:
        return f"{spec.base_url} does not answer: {error}"
    return ""


def _price(name: str, spec: ModelSpec) -> float | None:
    settings = ModelSettings(spec.model or name, usd_per_million=spec.usd_per_million)
    return priced(spec.kind, settings, ModelUsage(1000, 1000))


async def agent_runs(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Those that nobody goes on with: answered, or left by a process that is gone."""
    if patient.gate is None or not patient.gate.config.section("models"):
        return
    found: Runs = patient.gate.feature("agents")
    open_runs = [run for run in await found.store.newest(200, open_only=True) if not run.parent]
    if not open_runs:
        return
    due = [run for run in open_runs if await found.is_due(run)]
    halted = [run for run in open_runs if run.state == "waiting" and not run.waiting]
    asked = len(open_runs) - len(due) - len(halted)
    if due:
        fix = f"`toolgate up` goes on with them, or `toolgate runs resume {due[0].id}`"
        yield Diagnosis("warn", "runs", f"{len(due)} could go on, and nobody does", fix)
    if halted:
        fix = f"`toolgate runs resume {halted[0].id}`, or `toolgate runs cancel {halted[0].id}`"
        yield Diagnosis("warn", "runs", f"{len(halted)} were interrupted", fix)
    if asked:
        yield Diagnosis("ok", "runs", f"{asked} are under way or wait for your answer")


CHECKS = (models, agent_runs)
