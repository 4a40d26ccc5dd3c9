"""`fs.apply`: what a program changed in its view of the project becomes real, as any other write.

Planned from the kept proposal, so what is shown, scanned, approved and written is what the program left. It is called by
itself after a program that changed something; its state is told in that program's result.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

from toolgate.core.annotations import Field
from toolgate.core.canonical import digest
from toolgate.core.change import Change
from toolgate.core.clock import SECOND
from toolgate.core.context import Context
from toolgate.core.errors import Code, Conflict, Failed, NotFound
from toolgate.core.result import Follow, Result
from toolgate.core.tool import Tool, tool
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.holdings import SCRATCH

# Proposals that are kept until they are applied or forgotten. The contents are images, by hash; what is
# here is a small manifest for each, named by its own hash. So what was shown is what is applied, or nothing
# is: a manifest or an image that is not what its name says is refused.

IDENT = re.compile(r"x_[0-9a-f]{32}")
MOST_PROPOSALS = 100
KEPT_HOURS = 24


class Proposals:
    """A directory for each persona: nobody's push out another's."""

    def __init__(self, directory: Path, files: WorkspaceFiles, now: Callable[[], int]) -> None:
        self._directory, self._files, self._now = directory, files, now

    async def keep(self, change: Change, persona: str) -> str:
        """Its id, which stands for exactly this change by this persona. Refuses what its persona has no room to keep."""
        manifest = [dict(entry) for entry in change.manifest]
        ident = _ident(manifest, persona)
        until = self._now() + KEPT_HOURS * 3600 * SECOND
        body = {"persona": persona, "until": until, "manifest": manifest}

        def work() -> None:
            place = self._directory / persona
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sweep(place)
            _write(place / f"{ident}.json", json.dumps(body))

        await self._files.hold(ident, persona, SCRATCH, change, until)
        await self._files.run(work)
        return ident

    async def load(self, ident: str, persona: str) -> Change:
        body = await self._files.run(lambda: self._read(ident, persona))
        if body is None or body["until"] < self._now():
            raise NotFound(
                f"there is no proposal {ident} of {persona}'s any more",
                f"run the program again; proposals are kept for {KEPT_HOURS} hours, a persona's last {MOST_PROPOSALS}",
            )
        return await self._files.load(body["manifest"])

    def _read(self, ident: str, persona: str) -> Mapping[str, Any] | None:
        if not IDENT.fullmatch(ident):
            return None
        try:
            body: dict[str, Any] = json.loads((self._directory / persona / f"{ident}.json").read_bytes())
            if _ident(body["manifest"], persona) == ident and isinstance(body["until"], int):
                return body
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            pass
        raise Failed(f"the kept proposal {ident} is damaged", "run the program again")


def _sweep(place: Path) -> None:
    """Make room for one: the oldest go, whether or not their time has come."""
    aged = []
    for file in place.glob("x_*.json"):
        with suppress(FileNotFoundError):
            aged.append((file.stat().st_mtime_ns, file))
    aged.sort()
    for _, file in aged[: max(len(aged) - MOST_PROPOSALS + 1, 0)]:
        file.unlink(missing_ok=True)


def _ident(manifest: list[dict[str, Any]], persona: str) -> str:
    return "x_" + digest({"manifest": manifest, "persona": persona}).rpartition(":")[2][:32]


def _write(file: Path, text: str) -> None:
    """Whole or not at all; losing one to a power cut only means to run the program again."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
    os.replace(temporary, file)


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
