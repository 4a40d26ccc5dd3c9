"""`code.execute`, `code.status`, and both in one as `code {action}`: how the documents speak of running code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.context import Context
from toolgate.core.effects import FILE_WORDS, Effects
from toolgate.core.errors import InvalidArgs, NotFound, Unavailable
from toolgate.core.paths import MountPath
from toolgate.core.tool import Tool, tool
from toolgate.features.programs.arguments import MARGIN, MOST_SECONDS, Code, ProgramRequest, preview
from toolgate.features.programs.results import ProgramResult
from toolgate.features.programs.running import run_program
from toolgate.features.programs.services import ProgramServices
from toolgate.secrets.advice import advise
from toolgate.storage.port import Filter

Script = Annotated[Literal["javascript", "python"], Field(description="What the program is written in.")]
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
_STATES = {"started": "running", "committed": "done", "failed": "failed", "unknown": "unknown"}


class CodeAnswer(TypedDict):
    success: bool
    result: Any
    """The last `output(...)`, else what was printed; of a status, the state."""
    error: str | None
    job_id: str | None


_SHOWN = 32


def toolset(services: ProgramServices) -> list[Tool]:
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
        language: Script = "javascript",
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
        language: Script = "javascript",
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
    states = [_STATES[row.kind] for row in rows if row.kind in _STATES and row.persona == context.persona]
    if not states:
        raise NotFound(f"there is no run {job_id!r}", "use the `job_id` of a result", certain=True)
    state = states[-1]
    error = None if state in ("running", "done") else f"it is {state}"
    return CodeAnswer(success=error is None, result={"state": state}, error=error, job_id=job_id)


def _told(error: Any) -> str | None:
    return None if error is None else str(error["message"] if isinstance(error, Mapping) else error)
