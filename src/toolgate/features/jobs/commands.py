"""Commands of jobs, `toolgate jobs`: listing is reading, everything else is a human's decision; and what
`toolgate doctor` says of them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs, NotFound, Unavailable
from toolgate.features.jobs.job import Job, Retry
from toolgate.features.jobs.place import installed
from toolgate.kits.terminal import arguments, options, project, speech
from toolgate.kits.terminal.checkup import Diagnosis, Patient
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.kits.words import ago
from toolgate.project.trust import STATE

if TYPE_CHECKING:
    from toolgate.facade import Gate

app = CommandGroup("Long work and schedules.")
Ident = Annotated[str, Argument(metavar="ID", help="The job; its beginning or end is enough.")]
Tool = Annotated[str, Argument(metavar="TOOL", help="The tool to call.")]
Args = Annotated[str, Argument(metavar="JSON", help="Its arguments: JSON, @file, or - for stdin.")]
Attempts = Annotated[int, Option("--attempts", help="How often a failure is tried.", min=1, max=100)]
Delay = Annotated[float, Option("--delay", help="Seconds before the second attempt; doubles each time.")]
Timeout = Annotated[float | None, Option("--timeout", help="Seconds from its start to its end.")]
Conversation = Annotated[str, Option("--conversation", help="Which conversation it is part of.")]
_STYLES = {
    "done": "green",
    "failed": "red",
    "unknown": "bold red",
    "waiting": "bold yellow",
    "running": "cyan",
}
NEARLY_FULL = 0.9
"""Of jobs.db, from which on `toolgate doctor` warns."""


@app.without_command(epilog='Example: toolgate jobs submit code.search \'{"pattern": "x"}\'')
def newest(
    open_only: Annotated[bool, Option("--open", help="Only those that have not ended.")] = False,
    persona: options.Persona = "",
    limit: Annotated[int, Option("--limit", help="How many.", min=1, max=1000)] = 30,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Long work and schedules: without a subcommand, the newest jobs."""
    project.run(_list(persona, limit, open_only, root))


@app.command(epilog="Example: toolgate jobs show j_1a2b3c")
def show(ident: Ident, root: options.Root = None, json: options.Json = False) -> None:
    """Everything about one job: arguments, progress, result or error."""
    project.run(_show(ident, root))


@app.command(epilog='Example: toolgate jobs submit code.search \'{"pattern": "TODO"}\' --persona reviewer')
def submit(
    tool: Tool,
    args: Args = "",
    persona: options.Persona = "",
    conversation: Conversation = "",
    reason: options.Reason = "",
    attempts: Attempts = 1,
    delay: Delay = 2.0,
    timeout: Timeout = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Put a call on record as a job; a runner makes it, through the gate, as that persona."""
    more = {"reason": reason, "retry": _retry(attempts, delay), "timeout_s": timeout}
    project.run(_submit(tool, args, persona, conversation, more, root))


@app.command(epilog="Example: toolgate jobs cancel j_1a2b3c")
def cancel(ident: Ident, root: options.Root = None, json: options.Json = False) -> None:
    """Cancel a job, and the call it is making."""
    project.run(_cancel(ident, root))


@app.command(epilog="Example: toolgate jobs retry j_1a2b3c")
def retry(ident: Ident, root: options.Root = None, json: options.Json = False) -> None:
    """Try a job again that failed or was cancelled. What it did already is not done again."""
    project.run(_again(ident, root))


@app.command(
    epilog="Example: toolgate jobs schedule nightly '0 3 * * *' code.search '{\"pattern\": \"TODO\"}'"
)
def schedule(
    name: Annotated[str, Argument(metavar="NAME", help="The schedule's name.")],
    cron: Annotated[str, Argument(metavar="CRON", help="When, in UTC: minute hour day month weekday.")],
    tool: Tool,
    args: Args = "",
    persona: options.Persona = "",
    conversation: Conversation = "",
    reason: options.Reason = "",
    attempts: Attempts = 1,
    delay: Delay = 2.0,
    timeout: Timeout = None,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Submit a job again and again, at the times of a cron expression."""
    more = {"reason": reason, "retry": _retry(attempts, delay), "timeout_s": timeout}
    project.run(_schedule(name, cron, (tool, args), persona, conversation, more, root))


@app.command(epilog="Example: toolgate jobs schedules --json")
def schedules(root: options.Root = None, json: options.Json = False) -> None:
    """List the schedules."""
    project.run(_schedules(root))


@app.command(epilog="Example: toolgate jobs unschedule nightly")
def unschedule(
    name: Annotated[str, Argument(metavar="NAME", help="The schedule to remove.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Remove a schedule; jobs it has submitted stay."""
    project.run(_unschedule(name, root))


@app.command(epilog="Example: toolgate jobs run --root ~/code/shop")
def run(root: options.Root = None, json: options.Json = False) -> None:
    """Run the project's jobs in this process until Ctrl-C. One process does; `toolgate up` can do it too."""
    project.run(_run(root))


def _retry(attempts: int, delay: float) -> Retry:
    return Retry(attempts, delay, most_s=max(300.0, delay))


async def _list(persona: str, limit: int, open_only: bool, root: Any) -> None:
    async with project.gate(root) as gate:
        found = await gate.jobs.find(persona, limit, open_only)
        alone = any(not job.ended for job in found) and not await gate.jobs.attended()
    if speech.finish([job.shown(whole=False) for job in found]):
        return
    if not found:
        speech.say("there are no jobs")
        return
    columns = ["job|whole", "what|cut", "persona", "state", "progress|right", "age|right"]
    speech.put(speech.table(columns, [_row(job) for job in found]))
    if alone:
        _nobody()


def _row(job: Job) -> list[object]:
    going = "" if job.progress is None or job.ended else f"{job.progress:.0%}"
    words = f"{job.spec.what} {job.message}" if job.message and not job.ended else job.spec.what
    age = ago(job.created_at / SECOND)
    return [job.id, words, job.spec.persona, speech.safe(job.state, _STYLES.get(job.state, "")), going, age]


async def _show(ident: str, root: Any) -> None:
    async with project.gate(root) as gate:
        job = await gate.jobs.get(await _whole(gate, ident))
    if speech.finish(job.shown()):
        return
    shown = {name: value for name, value in job.shown().items() if value not in (None, "", {}, 0)}
    result, error = shown.pop("result", None), shown.pop("error", None)
    speech.put(speech.pairs((name, _words(value)) for name, value in shown.items()))
    if error:
        speech.say(speech.safe(f"{error['code']}: ", "bold red") + speech.safe(error["message"], lines=True))
        speech.say(speech.safe("fix: ", "bold") + speech.safe(error.get("fix", ""), lines=True))
    speech.show(result)
    if job.question:
        speech.note(f"it waits: `toolgate approvals {job.question} approve`", "yellow")


def _words(value: object) -> object:
    return speech.pretty(value) if isinstance(value, dict | list) else value


async def _submit(
    tool: str, args: str, persona: str, conversation: str, more: dict[str, Any], root: Any
) -> None:
    given = arguments.read(args).fit()
    async with project.gate(root) as gate:
        who = _persona(gate, persona)
        ident = await gate.jobs.submit("call", {"tool": tool, "args": given}, who, conversation, **more)
        attended = await gate.jobs.attended()
    if not speech.finish({"job": ident, "attended": attended}):
        speech.say(ident)
        if not attended:
            _nobody()


async def _cancel(ident: str, root: Any) -> None:
    async with project.gate(root) as gate:
        job = await gate.jobs.cancel(await _whole(gate, ident))
    if not speech.finish(job.shown(whole=False)):
        speech.say(f"{job.id} is cancelled; `toolgate jobs show` says how its call was settled")


async def _again(ident: str, root: Any) -> None:
    async with project.gate(root) as gate:
        old = await _whole(gate, ident)
        new = await gate.jobs.retry(old)
    if not speech.finish({"job": new, "repeats": old}):
        speech.say(f"{new} goes on where {old} ended")


async def _schedule(
    name: str, cron: str, call: tuple[str, str], persona: str, conversation: str, more: dict[str, Any], root: Any
) -> None:  # fmt: skip
    what = {"tool": call[0], "args": arguments.read(call[1]).fit()}
    async with project.gate(root) as gate:
        who = _persona(gate, persona)
        await gate.jobs.schedule(name, cron, "call", what, who, conversation, **more)
        attended = await gate.jobs.attended()
    if not speech.finish({"name": name, "cron": cron, "attended": attended}):
        speech.say(f"{name} calls {call[0]} as {who} at {cron} (UTC)")
        if not attended:
            _nobody()


async def _schedules(root: Any) -> None:
    async with project.gate(root) as gate:
        found = await gate.jobs.schedules()
    if speech.finish([one.shown() for one in found]):
        return
    if not found:
        speech.say("there are no schedules")
        return
    rows = [[one.name, one.cron, one.spec.what, one.spec.persona, one.last] for one in found]
    speech.put(speech.table(["schedule|whole", "cron", "what|cut", "persona", "last"], rows))


async def _unschedule(name: str, root: Any) -> None:
    async with project.gate(root) as gate:
        await gate.jobs.unschedule(name)
    if not speech.finish({"name": name, "removed": True}):
        speech.say(f"{name} is removed")


async def _run(root: Any) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with project.gate(root) as gate, gate.jobs.running() as lost:
        if not speech.finish({"running": True}):
            speech.note("jobs are run here; Ctrl-C ends")
        stop = asyncio.create_task(ended.wait())
        try:
            await asyncio.wait((stop, lost), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
        if lost.done():
            raise Unavailable(
                "the database no longer knows this process as the one that runs jobs", "start it again"
            )
    speech.note("stopped")


async def _whole(gate: Gate, ident: str) -> str:
    """Ids of schedules' jobs are said as they are."""
    if ident.startswith("sched-"):
        return ident
    among = [job.id for job in await gate.jobs.find(limit=1000) if job.id.startswith("j_")]
    found = await options.whole_id(_nothing, ident, "j", among)
    if found not in among and not found.startswith("j_"):
        raise NotFound(f"there is no job {ident[:80]}", "`toolgate jobs` lists them")
    return found


async def _nothing(wanted: Any) -> list[Any]:
    return []


def _persona(gate: Gate, persona: str) -> str:
    found = persona or gate.config.default_persona
    if not found:
        raise InvalidArgs("whose job is it?", "name its persona with --persona")
    return found


def _nobody() -> None:
    speech.note(
        "no process runs jobs here: `toolgate jobs run`, or `jobs: {run: true}` in toolgate.yaml and `toolgate up`",
        "yellow",
    )


async def jobs(patient: Patient) -> AsyncIterator[Diagnosis]:
    """Silent for those who have none."""
    if patient.setup is None or patient.gate is None:
        return
    wanted = patient.setup.config.jobs.run
    kept = (patient.root / STATE / "jobs.db").exists()
    if not wanted and not kept:
        return
    if not installed():
        what = "`jobs: {run: true}` is set" if wanted else "there are jobs"
        yield Diagnosis(
            "bad", "jobs", f"{what}, and the package dbos is not installed", "pip install 'toolgate[jobs]'"
        )
        return
    waiting = await patient.gate.jobs.find(limit=1000, open_only=True)
    used, most = await patient.gate.jobs.room()
    if used > NEARLY_FULL * most:
        fix = "cancel jobs that are not wanted, or raise `jobs: {max_bytes: …}`; without room no job is taken"
        yield Diagnosis("warn", "jobs", f"jobs.db holds {_megabytes(used)} of {_megabytes(most)}", fix)
    if waiting and not await patient.gate.jobs.attended():
        fix = "`toolgate jobs run`, or `jobs: {run: true}` in toolgate.yaml and `toolgate up`"
        yield Diagnosis("warn", "jobs", f"{len(waiting)} not ended, and no process runs them", fix)
    else:
        room = f", {_megabytes(used)} of {_megabytes(most)}" if used else ""
        yield Diagnosis("ok", "jobs", f"{len(waiting)} not ended{room}")


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


CHECKS = (jobs,)
