"""Commands of the programs: `failures` shows the last that failed, `stats --code` how they went in a period; and for
`toolgate doctor` which walls of the sandbox stand, why not stronger ones, and what is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.core.clock import iso
from toolgate.kits.terminal import options, project, speech
from toolgate.kits.terminal.checkup import Diagnosis, Patient
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.ledger.traces import as_execution, days_of
from toolgate.storage.executions import ExecutionRow

if TYPE_CHECKING:
    from toolgate.features.programs.config import SandboxSpec
    from toolgate.policy.model import MountSpec
    from toolgate.sandbox.job import Environment

CODE, ERROR = 500, 300
_WALLS = {
    "root": "root: namespaces, a user for each program, Landlock, seccomp",
    "userns": "userns: namespaces made by this user, Landlock, seccomp",
    "landlock": "landlock: Landlock and seccomp only; programs start no others, have no network and no project view",
}


@command(epilog="Example: toolgate failures 3 --conversation talk-17")
def failures(
    number: Annotated[int, Argument(metavar="N", help="How many.", min=1, max=1000)] = 5,
    conversation: Annotated[str, Option("--conversation", help="Only of this conversation.")] = "",
    persona: options.Persona = "",
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Show the last programs that failed, newest first; --json has all of code and output."""
    project.run(_failures(number, conversation, persona, root))


async def _failures(number: int, conversation: str, persona: str, root: Any) -> None:
    async with project.record(root) as record:
        rows = await record.traces.failures(conversation or None, number, persona)
    if speech.finish([as_execution(row) for row in rows]):
        return
    if not rows:
        speech.say("no program failed")
    for row in rows:
        _show(row)


def _show(row: ExecutionRow) -> None:
    ended = f"limit {row.limit_hit}" if row.limit_hit else f"exit {row.exit_code}"
    head = f"  {row.tool} by {row.persona}, {iso(row.created_at)}, {ended}, {row.duration_ms:.0f} ms"
    speech.say(
        speech.safe(row.id, "bold") + speech.safe(f"  {row.error_category}", "yellow") + speech.safe(head)
    )
    _block("code", _head(row.code, CODE))
    _block("error", _tail(row.stderr.strip(), ERROR))


def _block(title: str, text: str) -> None:
    speech.say(speech.safe(f"  {title}:", "dim"))
    for line in (text or "(none)").split("\n"):
        speech.say(speech.safe(f"    {line}"))


def _head(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _tail(text: str, most: int) -> str:
    """An error is told at the end."""
    return text if len(text) <= most else "…" + text[-most:]


async def summary(period: str, persona: str, root: Any) -> None:
    days = days_of(period)
    async with project.record(root) as record:
        found = {"period": period} | await record.traces.summary(days, persona)
    if speech.finish(found):
        return
    speech.say(f"{period} since {found['since']}", "dim")
    if not found["total"]:
        speech.say("no program was run")
        return
    speech.say(
        f"{found['total']} programs: {found['successful']} succeeded ({found['success_rate']:.1%}), "
        f"{found['failed']} failed, {found['avg_ms']:.1f} ms on average"
    )
    for kind in found["errors"]:
        speech.say(speech.safe(f"  {kind['count']} × {kind['category']}", "yellow"))
        for example in kind["examples"]:
            speech.say(speech.safe(f"      {example['error'] or '(nothing on stderr)'}", "dim"))


def sandbox_findings(spec: SandboxSpec) -> Iterator[Diagnosis]:
    from toolgate.sandbox import packages, probe

    standing = probe.look(spec.mode)
    reasons = "; ".join(f"not {mode}: {why}" for mode, why in standing.refused.items())
    if standing.mode is None:
        yield Diagnosis("warn", "sandbox", f"no program can run ({reasons})", probe.fix())
        return
    found = _WALLS[standing.mode] + (f" ({reasons})" if reasons else "")
    weak = standing.mode == "landlock" and spec.mode == "auto"
    yield Diagnosis("warn" if weak else "ok", "sandbox", found, probe.fix())
    if not standing.landlock:
        fix = "boot a kernel with Landlock (lsm=landlock,…): it is one wall more"
        yield Diagnosis("warn", "landlock", "the kernel has none; the other walls stand", fix)
    missing = packages.find(spec.packages).missing
    if missing:
        fix = f"pip install {' '.join(missing)}, or take them out of sandbox.packages"
        yield Diagnosis("warn", "sandbox packages", f"not installed: {', '.join(missing)}", fix)
    elif spec.packages:
        yield Diagnosis("ok", "sandbox packages", ", ".join(spec.packages))


def environment_findings(spec: SandboxSpec, root: Path, mount: MountSpec) -> Iterator[Diagnosis]:
    from toolgate.features.programs.environments import find
    from toolgate.policy.hard import MountRules

    found = find(root / mount.path, MountRules.of("project", mount), spec.python, spec.node, [root])
    fix = "set `sandbox: {python: .venv}` (or `node: …`) in toolgate.yaml, or false for none"
    for problem in found.problems:
        yield Diagnosis("warn", "project environment", problem, fix)
    if found.environment is not None:
        yield Diagnosis("ok", "project environment", _described(found.environment))
    elif not found.problems:
        yield Diagnosis(
            "ok", "project environment", "none found: programs have the system's Python and packages"
        )


def _described(found: Environment) -> str:
    parts = [
        f"Python {found.version} of {found.python}" + (f" (made from {found.base})" if found.base else "")
    ]
    parts = (parts if found.python else []) + ([found.node] if found.node else [])
    return f"{', '.join(parts)}: `exec.shell` with `project: read` runs its programs, in /project"


async def environment(patient: Patient) -> AsyncIterator[Diagnosis]:
    """What programs of the project would be run with; nothing of it is run here."""
    config = patient.setup.config if patient.setup is not None else None
    if config is not None and "project" in config.mounts:
        project = config.mounts["project"]
        for finding in environment_findings(config.sandbox, patient.root, project):
            yield finding


async def sandbox(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Every mode is tried, with a process that does nothing."""
    import asyncio

    from toolgate.features.programs.config import SandboxSpec

    spec = patient.setup.config.sandbox if patient.setup is not None else SandboxSpec()
    for finding in await asyncio.to_thread(lambda: list(sandbox_findings(spec))):
        yield finding


CHECKS = (sandbox, environment)
