"""Results of programs. That one ran is success: its exit code is part of the result, as for any shell.

Only one that a limit or a signal ended has failed; what it had printed until then is kept beside the error.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from typing_extensions import TypedDict  # pydantic reads those of `typing` only from 3.12 on

from toolgate.core.errors import CallError, Failed, TimedOut, TooLarge
from toolgate.core.fitting import RESERVE, ends, size
from toolgate.sandbox.job import Language, Limit, Outcome


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
