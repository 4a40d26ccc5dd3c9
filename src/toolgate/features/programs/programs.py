"""Tools `exec.python`, `exec.javascript` and `exec.shell`: programs that can hurt nobody, at once or as jobs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from toolgate.core.context import Context
from toolgate.core.errors import CallError, NotFound, RateLimited
from toolgate.core.tool import Handler, Risk, Tool, tool
from toolgate.features.programs.applying import FOLLOW
from toolgate.features.programs.arguments import (
    DEFAULT_SECONDS,
    MARGIN,
    MOST_SECONDS,
    Background,
    Code,
    Milliseconds,
    Names,
    Packages,
    ProgramRequest,
    Project,
    Reach,
    Seconds,
    Stdin,
    Texts,
    effects_of,
    preview,
    shell_effects_of,
)
from toolgate.features.programs.results import ProgramResult, fit_ran, in_words
from toolgate.features.programs.running import run_program
from toolgate.features.programs.services import ProgramServices
from toolgate.sandbox.job import Language
from toolgate.secrets.advice import advise

if TYPE_CHECKING:
    from toolgate.features.jobs.jobs import Jobs

_SAYS = {
    "python": "Run a Python program in the sandbox: no network, no files and no secrets unless asked for. "
    "`output(value)` gives a JSON value back; files left in the work directory come back too.",
    "javascript": "Run a JavaScript program in the sandbox: an ES module with top-level await, or CommonJS. No network, "
    "no files and no secrets unless asked for. `output(value)` gives a JSON value back; files left behind come back too.",
    "shell": "Run a command (`argv`) or a shell script in the sandbox, with nothing of the machine but its programs: "
    "no network, no files and no secrets unless asked for. With `project: read` it starts in /project and has the "
    "project's own environment: {argv: [pytest, tests/test_x.py], project: read}.",
}
MOST_OPEN_JOBS = 32
"""Jobs that one persona may have waiting or running: what is submitted is kept, and others want to be run too."""
_LATER = "\nit is handed to a job, whose call passes the gate once more"
Argv = Annotated[
    Annotated[list[Annotated[str, Field(max_length=128 << 10)]], Field(min_length=1, max_length=1000)] | None,
    Field(description="A program and its arguments; no shell reads them."),
]
Script = Annotated[str, Field(max_length=1 << 20, description="A script for `/bin/sh`, instead of `argv`.")]


def toolset(services: ProgramServices) -> list[Tool]:
    return [_python(services), _javascript(services), _shell(services)]


def shared(services: ProgramServices, language: Language) -> dict[str, Any]:
    """What the tools of every language have in common."""

    def show(**given: Any) -> str:
        wanted = ProgramRequest.of(language, given)
        environment = services.check_runs(wanted)
        shown = preview(wanted, advise(wanted.language, wanted.code), environment)
        return shown + _LATER if given.get("background") else shown

    async def reconcile(context: Context, background: bool = False, **given: Any) -> tuple[str, str]:
        """What a program does within the walls is gone with it. Only what it may have told a host, or a secret it may
        have used, outlives it, and nobody can tell whether it came to that: then the outcome stays unknown."""
        if background:
            return await _submitted(services.jobs, context)
        if ProgramRequest.of(language, given).closed:
            return "not", "it had no way out of the sandbox, and what it did there ended with it"
        return "unknown", "it could reach the network or use secrets before it ended"

    return {
        "writes": ["process"], "effects_of": effects_of, "preview": show, "reconcile": reconcile,
        "phase": "experiment", "timeout": MOST_SECONDS + MARGIN, "summarize": in_words, "fit": fit_ran,
        "follow": FOLLOW, "plain": ("secrets",), "repeats": ("code", "script"), "listed": sys.platform == "linux",
    }  # fmt: skip


def _python(services: ProgramServices) -> Tool:
    async def run(
        context: Context,
        code: Code,
        stdin: Stdin = "",
        timeout: Seconds = DEFAULT_SECONDS,  # noqa: ASYNC109 - the program's own time, counted outside this process
        timeout_ms: Milliseconds = None,
        network: Reach = None,
        secrets: Names = None,
        project: Project = "none",
        files: Texts = None,
        packages: Packages = None,
        background: Background = False,
    ) -> ProgramResult:
        given = {"code": code, "stdin": stdin, "timeout": timeout, "timeout_ms": timeout_ms, "network": network,
                 "secrets": secrets, "project": project, "files": files, "packages": packages}  # fmt: skip
        if background:
            return await _submit(services.jobs, context, given)
        return await run_program(services, ProgramRequest.of("python", given), context)

    return _made(services, "python", "medium", run)


def _javascript(services: ProgramServices) -> Tool:
    async def run(
        context: Context,
        code: Code,
        stdin: Stdin = "",
        timeout: Seconds = DEFAULT_SECONDS,  # noqa: ASYNC109 - the program's own time, counted outside this process
        timeout_ms: Milliseconds = None,
        network: Reach = None,
        secrets: Names = None,
        project: Project = "none",
        files: Texts = None,
        background: Background = False,
    ) -> ProgramResult:
        given = {"code": code, "stdin": stdin, "timeout": timeout, "timeout_ms": timeout_ms, "network": network,
                 "secrets": secrets, "project": project, "files": files}  # fmt: skip
        if background:
            return await _submit(services.jobs, context, given)
        return await run_program(services, ProgramRequest.of("javascript", given), context)

    return _made(services, "javascript", "medium", run)


def _shell(services: ProgramServices) -> Tool:
    async def run(
        context: Context,
        argv: Argv = None,
        script: Script = "",
        stdin: Stdin = "",
        timeout: Seconds = DEFAULT_SECONDS,  # noqa: ASYNC109 - the program's own time, counted outside this process
        timeout_ms: Milliseconds = None,
        network: Reach = None,
        secrets: Names = None,
        project: Project = "none",
        files: Texts = None,
        packages: Packages = None,
        background: Background = False,
    ) -> ProgramResult:
        given = {"argv": argv, "script": script, "stdin": stdin, "timeout": timeout, "timeout_ms": timeout_ms,
                 "network": network, "secrets": secrets, "project": project, "files": files,
                 "packages": packages}  # fmt: skip
        if background:
            return await _submit(services.jobs, context, given)
        return await run_program(services, ProgramRequest.of("shell", given), context)

    return _made(services, "shell", "high", run)


def _made(services: ProgramServices, language: Language, risk: Risk, run: Handler) -> Tool:
    options = shared(services, language)
    if language == "shell":
        options["effects_of"] = shell_effects_of
    aliases = (f"code/execute/{language}",)
    # what other shells of coding assistants call it, which models are used to
    also = {"script": "command"} if language == "shell" else {}
    return tool(
        f"exec.{language}", description=_SAYS[language], risk=risk, aliases=aliases, also=also, **options
    )(run)


async def _submit(jobs: Jobs, context: Context, given: Mapping[str, Any]) -> ProgramResult:
    """The job makes the same call in the foreground, which passes the gate then: policy, consent, limits, ledger."""
    args = {name: _plain(value) for name, value in given.items() if value is not None}
    try:
        await _check_room(jobs, context.persona)
    except CallError as error:
        error.certain = True  # nothing was submitted
        raise
    job = await jobs.submit(
        "call", {"tool": context.tool, "args": args}, context.persona, context.conversation, reason=context.reason,
        ident=_job(context),
    )  # fmt: skip
    return ProgramResult(
        stdout="", stderr="", exit_code=None, limit=None, signal=None, output=None, outputs=[], files=[], requests=[],
        proposal=None, warnings=[], duration_ms=0.0, memory=0, job_id=job,
    )  # fmt: skip


async def _check_room(jobs: Jobs, persona: str) -> None:
    if len(await jobs.find(persona, MOST_OPEN_JOBS, open_only=True)) >= MOST_OPEN_JOBS:
        raise RateLimited(
            f"{persona} has {MOST_OPEN_JOBS} jobs that have not ended", "wait for them: `jobs.list`"
        )


async def _submitted(jobs: Jobs, context: Context) -> tuple[str, str]:
    """Whether a call that was interrupted had handed its program over: then the job runs it, and nobody else may."""
    ident = _job(context)
    try:
        await jobs.get(ident)
    except NotFound:
        return "not", "no job was submitted"
    except CallError as error:
        return "unknown", error.message
    return "happened", f"it was handed to the job {ident}"


def _job(context: Context) -> str:
    """By the call's own id, so that it can be found again."""
    return "j_" + context.call_id.removeprefix("c_")


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value
