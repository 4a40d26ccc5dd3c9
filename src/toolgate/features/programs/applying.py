"""`fs.apply`: what a program changed in its view of the project becomes real, as any other write.

Planned from the kept proposal, so what is shown, scanned, approved and written is what the program left. It is called by
itself after a program that changed something; its state is told in that program's result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads those of `typing` only from 3.12 on

from toolgate.core.change import Change
from toolgate.core.context import Context
from toolgate.core.errors import Code, Conflict
from toolgate.core.follow import Follow
from toolgate.core.result import Result
from toolgate.core.tool import Tool, tool
from toolgate.features.programs.proposal_store import Proposals
from toolgate.workspace.files import WorkspaceFiles

NAME = "fs.apply"
Ident = Annotated[
    str, Field(max_length=34, pattern=r"^x_[0-9a-f]{32}$", description="`proposal.execution` of a result.")
]


class AppliedFile(TypedDict):
    path: str
    op: str
    before_hash: str | None
    after_hash: str | None
    size: int | None


class ProposalApplied(TypedDict):
    execution: str
    files: list[AppliedFile]


def toolset(files: WorkspaceFiles, kept: Proposals) -> list[Tool]:
    async def plan(context: Context, execution: Ident) -> Change:
        """Apply what a program changed in its copy-on-write view of the project: all of it, or nothing."""
        change = await kept.load(execution, context.persona)
        parts = [part for part in change.files if part.kind == "file"]
        for part, now in zip(parts, await files.hashes([part.path for part in parts]), strict=True):
            if now != part.before_hash and not _becomes(change, part.path):
                raise Conflict(
                    f"{part.path.shown!r} is not as it was when the program started",
                    "run the program again",
                    data={"path": part.path.shown},
                )
        count = len(parts)
        summary = f"apply {count} file{'s' * (count != 1)} that a program changed"
        return Change(change.files, summary, report={"execution": execution})

    @tool(
        NAME, reads=["project"], writes=["project"], plan=plan, risk="medium", phase="contribute",
        timeout=120.0, summarize=_in_words,
    )  # fmt: skip
    async def apply(change: Change) -> ProposalApplied:
        await files.apply(change)
        return ProposalApplied(
            execution=change.report["execution"],
            files=[
                AppliedFile(path=part.path.shown, op=part.op, before_hash=part.before_hash, after_hash=part.after_hash,
                            size=None if part.after is None else len(part.after))
                for part in change.files
            ],
        )  # fmt: skip

    return [apply]


def _becomes(change: Change, path: str) -> bool:
    """A directory stands there that is another part of the change; whoever applies it looks at both."""
    return any(part.path == path and part.kind == "directory" for part in change.files)


def _in_words(found: Any) -> str:
    return f"{len(found['files'])} changed by {found['execution']}"


_STATES = {Code.PENDING: "pending", Code.CONFLICT: "conflict", Code.UNKNOWN_OUTCOME: "unknown"}


def _next(data: Any) -> tuple[str, Mapping[str, Any]] | None:
    proposal = data.get("proposal") if isinstance(data, dict) else None
    if not isinstance(proposal, dict) or not proposal.get("execution"):
        return None
    return NAME, {"execution": proposal["execution"]}


def _told(data: Any, result: Result) -> Any:
    error = result.error
    state = "applied" if error is None else _STATES.get(error.code, "refused")
    told: dict[str, Any] = {"state": state, "event_id": result.meta.event_id}
    if error is not None:
        told["error"] = {"code": error.code.value, "message": error.message, "fix": error.fix}
    if error is not None and error.code is Code.PENDING and isinstance(result.data, dict):
        told["question"] = result.data.get("question")
        told["error"]["fix"] = (
            f"once a human has approved it, call {NAME} with execution {data['proposal']['execution']}"
        )
    return data | {"proposal": data["proposal"] | told}


FOLLOW = Follow(_next, _told)
