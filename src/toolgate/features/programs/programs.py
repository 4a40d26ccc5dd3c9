"""Tools that run programs, which can hurt nobody: `exec.python`, `exec.javascript` and `exec.shell`, at once or as jobs; and
`code.execute`, `code.status` and both in one as `code {action}`, which is how the documents speak of running code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from toolgate.core.context import Context
from toolgate.core.effects import FILE_WORDS, Effects
from toolgate.core.errors import CallError, InvalidArgs, NotFound, RateLimited, Unavailable
from toolgate.core.paths import MountPath
from toolgate.core.tool import Handler, Tool, tool
from toolgate.feature import FeatureContext
from toolgate.features.programs import applying
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
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.features.jobs.jobs import Jobs
    from toolgate.ledger.traces import Traces

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


def open_traces(context: FeatureContext) -> Traces:
    """The programs that were run: `add` stores one, in redacted words."""
    from toolgate.ledger.traces import Traces
    from toolgate.storage.executions import Keep

    kept, ledger = context.section("traces"), context.services.ledger
    return Traces(ledger.backend, ledger.clock, Keep(kept.days, kept.rows), kept.text_bytes)


def tools(context: FeatureContext) -> list[Tool]:
    services = ProgramServices(context)
    return [
        *(_python(services), _javascript(services), _shell(services)),
        *applying.toolset(services.files, services.proposals),
        *_code_tools(services),
    ]


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
        return await _run(services, "python", context, given, background)

    return _made(services, "python", run)


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
        return await _run(services, "javascript", context, given, background)

    return _made(services, "javascript", run)


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
        return await _run(services, "shell", context, given, background)

    return _made(services, "shell", run)


def _made(services: ProgramServices, language: Language, run: Handler) -> Tool:
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
            return _reconcile()
        return "unknown", "it could reach the network or use secrets before it ended"

    of_shell = language == "shell"
    return tool(
        f"exec.{language}", description=_SAYS[language], writes=["process"], preview=show, reconcile=reconcile,
        effects_of=shell_effects_of if of_shell else effects_of, risk="high" if of_shell else "medium",
        phase="experiment", timeout=MOST_SECONDS + MARGIN, summarize=in_words, fit=fit_ran, follow=FOLLOW,
        plain=("secrets",), repeats=("code", "script"), listed=sys.platform == "linux",
        aliases=(f"code/execute/{language}",),
        # what other shells of coding assistants call it, which models are used to
        also={"script": "command"} if of_shell else {},
    )(run)  # fmt: skip


async def _run(
    services: ProgramServices,
    language: Language,
    context: Context,
    given: Mapping[str, Any],
    background: bool,
) -> ProgramResult:
    if background:
        return await _submit(services.jobs, context, given)
    return await run_program(services, ProgramRequest.of(language, given), context)


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


# `code.*`

CodeLanguage = Annotated[
    Literal["javascript", "python"], Field(description="What the program is written in.")
]
Time = Annotated[
    int, Field(gt=0, le=int(MOST_SECONDS * 1000), description="Milliseconds until it is stopped.")
]
Stored = Annotated[
    MountPath | None, Field(description="A stored script to run instead, such as `scratch:job.js`.")
]
Ident = Annotated[str, Field(max_length=128, description="`job_id` of the run, as its result had it.")]
Action = Annotated[
    Literal["generate", "execute", "status"],
    Field(description="Run code, ask how a run stands, or have code written."),
]
Task = Annotated[str, Field(max_length=64 << 10, description="For `generate`: what the code is to do.")]
About = Annotated[str, Field(max_length=64 << 10, description="For `generate`: what its author should know.")]
_CALL_STATES = {"started": "running", "committed": "done", "failed": "failed", "unknown": "unknown"}
_SHOWN = 32
"""Questions about stored scripts that are remembered."""


class CodeAnswer(TypedDict):
    success: bool
    result: Any
    """The last `output(...)`, else what was printed; of a status, the state."""
    error: str | None
    job_id: str | None


def _code_tools(services: ProgramServices) -> list[Tool]:
    shown: dict[str, str] = {}
    """Stored scripts as humans were asked about them, by call: they run as they were shown, whatever the file says now."""

    async def wanted_of(given: Mapping[str, Any], call: Context) -> ProgramRequest:
        text = given.get("code") or ""
        if given.get("script") is not None:
            kept = shown.pop(call.call_id, None)
            text = await _stored(services, given["script"]) if kept is None else kept
        spelled = {"code": text, "timeout_ms": given["timeout_ms"]}
        return ProgramRequest.of(given["language"], spelled)

    async def show(call: Context, **given: Any) -> str:
        if given.get("action", "execute") != "execute":
            return ""
        shown.pop(call.call_id, None)
        wanted = await wanted_of(given, call)
        if given.get("script") is not None:
            shown[call.call_id] = wanted.code
            for old in list(shown)[:-_SHOWN]:  # of questions that nobody answered
                del shown[old]
        return preview(wanted, advise(wanted.language, wanted.code))

    async def execute(
        context: Context,
        code: Code = "",
        language: CodeLanguage = "javascript",
        timeout_ms: Time = 30_000,
        script: Stored = None,
    ) -> CodeAnswer:
        """Run code in the sandbox, without network, secrets or files: an ES module, or Python."""
        given = {"code": code, "language": language, "timeout_ms": timeout_ms, "script": script}
        wanted = await wanted_of(given, context)
        services.check_owner_allows(context, language, wanted.code, given)
        return _answer(await run_program(services, wanted, context), context)

    async def status(context: Context, job_id: Ident) -> CodeAnswer:
        """How a run stands, by the `job_id` that it gave."""
        return await _status(services, context, job_id)

    async def both(
        call: Context,
        action: Action,
        task: Task = "",
        context: About = "",
        code: Code = "",
        language: CodeLanguage = "javascript",
        timeout_ms: Time = 30_000,
        script: Stored = None,
        job_id: Ident = "",
    ) -> CodeAnswer:
        """Run code (`execute`), or ask how a run stands (`status`)."""
        if action == "generate":
            raise Unavailable(
                "no coding agent is set up to write code",
                "write the program yourself and use action `execute`",
                certain=True,
            )
        if action == "status":
            return await _status(services, call, job_id)
        return await execute(call, code, language, timeout_ms, script)

    running: dict[str, Any] = {
        "writes": ["process"], "effects_of": _effects_of, "preview": show, "reconcile": _reconcile,
        "phase": "experiment", "risk": "medium", "timeout": MOST_SECONDS + MARGIN, "listed": sys.platform == "linux",
    }  # fmt: skip
    return [
        tool("code.execute", **running)(execute),
        tool("code.status", reads=["ledger"])(status),
        tool("code.action", aliases=("code",), **running | {"phase": "observe", "listed": False})(both),
    ]


async def _stored(services: ProgramServices, script: MountPath) -> str:
    found = await services.files.read(script)
    if found is None:
        raise NotFound(f"there is no script {script.shown!r}", "check the path", certain=True)
    return found.decode("utf-8", "replace")


def _effects_of(args: Mapping[str, Any]) -> Effects:
    action = args.get("action", "execute")
    if action == "status":
        return Effects.of(("ledger",))
    if action == "execute" and bool(args.get("code")) == bool(args.get("script")):
        raise InvalidArgs("give either `code` or `script`", "pass {code: ...} or {script: path}")
    mount = str(args["script"]).partition(":")[0] if args.get("script") else ""
    reads = (mount if mount in FILE_WORDS else "project",) if mount else ()
    return Effects.of(reads, ("process",))


def _reconcile(**given: Any) -> tuple[str, str]:
    """It never has a way out, so nothing of one that was interrupted can have lasted."""
    return "not", "it had no way out of the sandbox, and what it did there ended with it"


def _answer(found: ProgramResult, context: Context) -> CodeAnswer:
    good = found["exit_code"] == 0
    result = found["output"] if found["outputs"] else found["stdout"]
    said = found["stderr"].strip() or f"it ended with exit code {found['exit_code']}"
    return CodeAnswer(success=good, result=result, error=None if good else said, job_id=context.call_id)


async def _status(services: ProgramServices, context: Context, job_id: str) -> CodeAnswer:
    """Whoever started it may ask; to others it does not exist."""
    if job_id.startswith("j_"):
        job = (await services.jobs.get(job_id, context.persona)).shown()
        return CodeAnswer(success=job["error"] is None, result=job, error=_told(job["error"]), job_id=job_id)
    rows = await services.ledger.backend.rows(Filter(call=job_id)) if job_id else []
    states = [
        _CALL_STATES[row.kind] for row in rows if row.kind in _CALL_STATES and row.persona == context.persona
    ]
    if not states:
        raise NotFound(f"there is no run {job_id!r}", "use the `job_id` of a result", certain=True)
    state = states[-1]
    error = None if state in ("running", "done") else f"it is {state}"
    return CodeAnswer(success=error is None, result={"state": state}, error=error, job_id=job_id)


def _told(error: Any) -> str | None:
    return None if error is None else str(error["message"] if isinstance(error, Mapping) else error)
