"""Results of programs. That one ran is success: its exit code is part of the result, as for any shell.

Only one that a limit or a signal ended has failed; what it had printed until then is kept beside the error.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypedDict

from toolgate.core.change import Change, FileChange, content_hash
from toolgate.core.errors import CallError, Failed, TimedOut, TooLarge
from toolgate.core.fitting import RESERVE, ends, size
from toolgate.core.paths import MountPath
from toolgate.sandbox.job import Language, Left, Limit, Outcome
from toolgate.workspace.confine import held
from toolgate.workspace.files import WorkspaceFiles
from toolgate.workspace.mounts import Mounts


class OutputFile(TypedDict):
    """A file that the program left in its work directory."""

    name: str
    path: str
    """Where it is now, in the scratch mount."""
    size: int
    hash: str


class ProgramResult(TypedDict):
    stdout: str
    stderr: str
    exit_code: int | None
    limit: str | None
    """The limit that it ran into, by name."""
    signal: str | None
    """The signal that killed it, by name; a shell and what it starts also have 128 and its number as exit code."""
    output: Any
    """The last value that it gave to `output(...)`."""
    outputs: list[Any]
    files: list[OutputFile]
    requests: list[dict[str, Any]]
    proposal: dict[str, Any] | None
    """What it changed in its view of the project, and what became of that."""
    warnings: list[str]
    duration_ms: float
    memory: int
    """Bytes, at most."""
    job_id: str | None
    """The job that runs it, where it was asked for in the background: `code.status` says how it stands."""


_WORDS: dict[Limit, tuple[type[CallError], str, str]] = {
    "time": (TimedOut, "did not finish in {seconds:g} s", "do less at once, or give it a longer `timeout`"),
    "cpu": (TimedOut, "used up its processor time", "do less at once, or give it a longer `timeout`"),
    "memory": (Failed, "needed more memory than it may have", "work on the data in parts"),
    "processes": (Failed, "started more processes than it may", "start fewer"),
    "files": (Failed, "opened more files at once than it may", "close those it has read"),
    "disk": (TooLarge, "wrote more than it may", "write less, or print it"),
    "inodes": (TooLarge, "made more files than it may", "make fewer"),
    "output": (TooLarge, "printed more than it may", "print less, or write it into a file"),
    "requests": (
        Failed,
        "made more requests than it may, or gave more than 256 KiB to one `output(...)`",
        "make fewer, and write large results into a file",
    ),
}


_SIGNALS: dict[signal.Signals, tuple[str, str]] = {
    signal.SIGABRT: ("it gave up by itself", "its last words are in stderr"),
    signal.SIGBUS: ("it used memory that is not there", "look for a fault in native code"),
    signal.SIGFPE: ("its arithmetic failed", "look for a division by zero in native code"),
    signal.SIGILL: ("the processor does not know an instruction of it", "look for a fault in native code"),
    signal.SIGKILL: (
        "nobody but it, a program it started or the system can have done that", "the machine may be short of memory",
    ),
    signal.SIGSEGV: ("it used memory that is not its own", "look for a fault in native code"),
    signal.SIGSYS: ("it made a system call that the sandbox forbids", "do without it"),
    signal.SIGTRAP: ("it hit a breakpoint", "run it without a debugger"),
    signal.SIGXCPU: ("it used up its processor time", "do less at once, or give it a longer `timeout`"),
    signal.SIGXFSZ: ("it wrote a file larger than it may", "write less, or print it"),
}  # fmt: skip
"""Signals that end a program which did not ask for it, what they mean, and what to do."""


def signal_of(outcome: Outcome, language: Language) -> signal.Signals | None:
    """The signal that killed it. Programs that are not Python are started by another, which tells it as shells do; of
    their exit codes only those count that no script chooses."""
    number = outcome.signal
    if not number and language != "python" and (outcome.exit_code or 0) > 128:
        number = (outcome.exit_code or 0) - 128
        if number not in _SIGNALS:
            return None
    return signal.Signals(number) if number in set(signal.Signals) else None


def ran(
    outcome: Outcome, killed: signal.Signals | None, files: list[OutputFile], warnings: Sequence[str]
) -> ProgramResult:
    outputs = list(outcome.outputs)
    return ProgramResult(
        stdout=_text(outcome.stdout), stderr=_text(outcome.stderr), exit_code=outcome.exit_code,
        limit=outcome.limit, signal=killed.name if killed else None, output=outputs[-1] if outputs else None, outputs=outputs, files=files,
        requests=[asdict(request) for request in outcome.requests], proposal=None,
        warnings=[*warnings, *outcome.dropped], duration_ms=round(outcome.duration_s * 1000, 3),
        memory=outcome.memory_bytes, job_id=None,
    )  # fmt: skip


def stopped(outcome: Outcome, language: Language, seconds: float, found: ProgramResult) -> CallError | None:
    """Why it failed, where a limit or a signal ended it. One that met a limit and came to its own good end has not."""
    killed = signal_of(outcome, language)
    if outcome.limit is not None and outcome.exit_code != 0:
        kind, words, fix = _WORDS[outcome.limit]
        message = f"the {language} program {words.format(seconds=seconds)} (limit: {outcome.limit})"
        if outcome.limit == "processes" and language != "shell":
            fix = "it may start none: `exec.shell` runs programs that start others"
        return kind(message, fix, dict(found), certain=True)
    if killed is not None:
        meaning, fix = _SIGNALS.get(killed, ("something ended it", "see what it printed until then"))
        message = f"the {language} program was killed by {killed.name}: {meaning}"
        return Failed(message, fix, dict(found), certain=True)
    return None


def fit_ran(data: dict[str, Any], room: int) -> dict[str, Any]:
    """What does not fit is taken out of the middle of what it printed. The smaller stream stays whole, if it can."""
    printed = {name: data[name] for name in ("stdout", "stderr")}
    left = room - RESERVE - size({**data, "stdout": "", "stderr": ""})
    if left < RESERVE:
        return data
    smaller, larger = sorted(printed, key=lambda name: size(printed[name]))
    printed[smaller] = ends(printed[smaller], left // 2)
    printed[larger] = ends(printed[larger], left - size(printed[smaller]))
    return {**data, **printed}


def in_words(found: Any) -> str:
    """For the journal: how it ended, and how much it said, but not what."""
    if found["job_id"]:
        return f"handed to the job {found['job_id']}"
    parts = [f"exit {found['exit_code']}"]
    parts += [f"{len(found[name]):,} characters of {name}" for name in ("stdout", "stderr") if found[name]]
    parts += [f"{len(found[name])} {name}" for name in ("files", "requests") if found[name]]
    if found["proposal"]:
        parts.append(f"{len(found['proposal']['files'])} changed")
    return ", ".join(parts)


_ENDS = re.compile(r"\r\n?")


def _text(content: bytes) -> str:
    """What is not UTF-8 is shown as what it is not; the ends of lines are made plain."""
    return _ENDS.sub("\n", content.decode("utf-8", "replace"))


# Output files: what a program left in its work directory, put where its caller can read it, one directory
# for each call. They are kept until there are too many: then those of the oldest calls go.

WHERE = "exec"
"""The directory of the scratch mount that all of them are in."""
OUTPUT_BUDGET = 256 << 20
"""Bytes, of all calls together."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def save(files: WorkspaceFiles, call: str, left: Sequence[Left]) -> tuple[list[OutputFile], list[str]]:
    """What was saved, and in words what was not and why. By the rules of the mount, as for every write."""
    kept: list[OutputFile] = []
    refused: list[str] = []
    for each in left:
        try:
            path = MountPath.parse(f"scratch:{WHERE}/{call}/{each.path}")
            _judge(files, path, each)
            parents = await files.to_make([path])
            made = FileChange(path, None, each.content, after_mode=0o644)
            await files.apply(Change((*parents, made)))
        except CallError as error:
            refused.append(f"{each.path} was not saved: {error.message}")
            continue
        digest = content_hash(each.content) or ""
        kept.append(OutputFile(name=each.path, path=str(path), size=len(each.content), hash=digest))
    await files.run(lambda: sweep(files.mounts, WHERE, call))
    return kept, refused


def _judge(files: WorkspaceFiles, path: MountPath, each: Left) -> None:
    rules = files.mounts.rules(path)
    refusal = rules.refuse(path, written=True)
    if refusal is not None:
        raise CallError(refusal.reason)
    held = rules.held.find(path)
    if held is not None:  # nobody is asked about what a program leaves
        raise CallError(f"toolgate runs it outside the sandbox, as {held.by}")
    if len(each.content) > rules.max_bytes:
        raise CallError(f"it has {len(each.content):,} bytes, the limit is {rules.max_bytes:,}")


def sweep(mounts: Mounts, where: str, newest: str, budget: int = OUTPUT_BUDGET) -> int:
    """Remove the directories of the oldest calls, but not the newest one's, until the rest fits; how many went.

    The ids of calls begin with the time, so their names say which is older. Everything is done by handles, and no link
    is followed.
    """
    with suppress(CallError, OSError), mounts.parent(MountPath.parse(f"scratch:{where}/x")) as (above, _):
        calls = sorted(name for name in os.listdir(above) if name.startswith("c_") and name != newest)
        sizes = {name: _size(above, name) for name in [*calls, newest]}
        total, gone = sum(sizes.values()), 0
        for name in calls:
            if total <= budget:
                break
            shutil.rmtree(name, ignore_errors=True, dir_fd=above)
            total -= sizes[name]
            gone += 1
        return gone
    return 0


def _size(above: int, name: str) -> int:
    with suppress(OSError), held(os.open(name, _DIRECTORY, dir_fd=above)) as handle:
        return sum(
            os.stat(file, dir_fd=place, follow_symlinks=False).st_blocks * 512
            for _, _, files, place in os.fwalk(dir_fd=handle)
            for file in files
        )
    return 0
