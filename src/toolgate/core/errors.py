"""Every error toolgate raises, with its closed set of codes.

ToolgateError
├── CallError                 becomes `error` of a Result; one subclass per code
│   ├── UnknownTool           unknown_tool
│   ├── InvalidArgs           invalid_args
│   ├── NotAllowed            not_allowed
│   ├── Pending               pending
│   ├── Denied                denied
│   ├── Expired               expired
│   ├── RateLimited           rate_limited
│   ├── OutsideMount          outside_mount
│   ├── BlockedPath           blocked_path
│   ├── BlockedContent        blocked_content
│   ├── NotFound              not_found
│   ├── NotText               not_text
│   ├── TooLarge              too_large
│   ├── Conflict              conflict
│   ├── TimedOut              timeout
│   ├── Cancelled             cancelled
│   ├── Unavailable           unavailable
│   │   └── LedgerBroken      unavailable; the record was tampered with or is damaged
│   ├── Failed                failed
│   └── UnknownOutcome        unknown_outcome
└── SetupError                raised before any call can be made
    ├── ConfigError           a configuration file is wrong: file, line, fix
    └── DuplicateName         two tools claim one name

A message says what happened and with which value; `fix` says what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar


class Code(StrEnum):
    """The closed set of error codes, the same in every face."""

    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGS = "invalid_args"
    NOT_ALLOWED = "not_allowed"
    PENDING = "pending"
    DENIED = "denied"
    EXPIRED = "expired"
    RATE_LIMITED = "rate_limited"
    OUTSIDE_MOUNT = "outside_mount"
    BLOCKED_PATH = "blocked_path"
    BLOCKED_CONTENT = "blocked_content"
    NOT_FOUND = "not_found"
    NOT_TEXT = "not_text"
    TOO_LARGE = "too_large"
    CONFLICT = "conflict"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"
    UNKNOWN_OUTCOME = "unknown_outcome"


def by_policy(code: Code, data: Any) -> bool:
    """Whether policy refused it. A path is also blocked for what is there; then no rule is named."""
    if code is Code.BLOCKED_PATH:
        return isinstance(data, Mapping) and "rule" in data
    return code in (Code.NOT_ALLOWED, Code.BLOCKED_CONTENT)


class ToolgateError(Exception):
    """Something in toolgate went wrong."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class CallError(ToolgateError):
    """A call could not be carried out; its code says why."""

    code: ClassVar[Code] = Code.FAILED

    def __init__(
        self, message: str, fix: str = "", data: Mapping[str, Any] | None = None, *, certain: bool = False
    ) -> None:
        super().__init__(message, fix)
        self.data = data
        """What a program needs to go on: the question's id, the seconds to wait, the failing fields."""
        self.certain = certain
        """The tool knows how it ended: there is nothing to find out, whatever its effects are."""

    @staticmethod
    def of(code: Code, message: str, fix: str = "", data: Mapping[str, Any] | None = None) -> CallError:
        """The error of a code."""
        kinds = (kind for kind in CallError.__subclasses__() if kind.code is code)  # ours come first
        return next(kinds, CallError)(message, fix, data)


class UnknownTool(CallError):
    """No tool has this name."""

    code = Code.UNKNOWN_TOOL


class InvalidArgs(CallError):
    """The arguments do not fit the tool."""

    code = Code.INVALID_ARGS


class NotAllowed(CallError):
    """Policy refuses this call."""

    code = Code.NOT_ALLOWED


class Pending(CallError):
    """A human has been asked and has not answered yet."""

    code = Code.PENDING


class Denied(CallError):
    """A human refused this call."""

    code = Code.DENIED


class Expired(CallError):
    """The question was not answered in time."""

    code = Code.EXPIRED


class RateLimited(CallError):
    """Too many calls in a window of time."""

    code = Code.RATE_LIMITED


class OutsideMount(CallError):
    """The path leads out of its mount."""

    code = Code.OUTSIDE_MOUNT


class BlockedPath(CallError):
    """The path is blocked by its mount's rules."""

    code = Code.BLOCKED_PATH


class BlockedContent(CallError):
    """The content may not be written."""

    code = Code.BLOCKED_CONTENT


class NotFound(CallError):
    """There is no such thing."""

    code = Code.NOT_FOUND


class NotText(CallError):
    """The file is not text."""

    code = Code.NOT_TEXT


class TooLarge(CallError):
    """It is larger than the limit."""

    code = Code.TOO_LARGE


class Conflict(CallError):
    """The world is not as the call assumed."""

    code = Code.CONFLICT


class TimedOut(CallError):
    """The tool did not finish in time."""

    code = Code.TIMEOUT


class Cancelled(CallError):
    """The call was cancelled."""

    code = Code.CANCELLED


class Unavailable(CallError):
    """Something the call needs cannot be reached."""

    code = Code.UNAVAILABLE


class LedgerBroken(Unavailable):
    """The ledger does not verify; nothing runs on top of it."""


class Failed(CallError):
    """The tool failed."""

    code = Code.FAILED


class UnknownOutcome(CallError):
    """Whether the effect happened cannot be proven."""

    code = Code.UNKNOWN_OUTCOME


class SetupError(ToolgateError):
    """toolgate cannot start as it is set up."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message, fix)
        if fix:
            self.add_note(f"fix: {fix}")  # whoever writes a tool sees a traceback


class ConfigError(SetupError):
    """A configuration file is wrong."""

    def __init__(self, message: str, fix: str = "", file: str = "", line: int = 0) -> None:
        where = f"{file}:{line}: " if line else (f"{file}: " if file else "")
        super().__init__(where + message, fix)
        self.file = file
        self.line = line


class DuplicateName(SetupError):
    """Two tools claim one name."""
