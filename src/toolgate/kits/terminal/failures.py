"""How a command that could not do its work ends: message, fix, exit code. A traceback only with --debug."""

from __future__ import annotations

import traceback

from toolgate.core.errors import CallError, Code, ConfigError, ToolgateError
from toolgate.kits.terminal import speech

OK, FAILED, USAGE, REFUSED = 0, 1, 2, 3
_USAGE = frozenset({Code.UNKNOWN_TOOL, Code.INVALID_ARGS})
_REFUSED = frozenset(
    {
        Code.NOT_ALLOWED, Code.DENIED, Code.EXPIRED, Code.PENDING, Code.RATE_LIMITED, Code.BLOCKED_PATH,
        Code.BLOCKED_CONTENT, Code.OUTSIDE_MOUNT,
    }
)  # fmt: skip


def exit_code(code: Code) -> int:
    return USAGE if code in _USAGE else REFUSED if code in _REFUSED else FAILED


def report(error: Exception) -> int:
    """Say what happened and what to do; give the exit code."""
    if speech.mode.debug:
        traceback.print_exception(error)
    if isinstance(error, CallError):
        tell(error.code.value, error.message, error.fix, dict(error.data) if error.data else None)
        return exit_code(error.code)
    if isinstance(error, ToolgateError):
        tell("setup", error.message, error.fix)
        return USAGE
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        tell("failed", f"{error.strerror or error}{where}", "check the path, its permissions and the disk")
        return FAILED
    tell(
        "failed",
        f"toolgate itself failed: {type(error).__name__}: {error}",
        "run it again with `toolgate --debug …` and report it",
    )
    return FAILED


def report_all(errors: list[ConfigError]) -> int:
    """Everything that is wrong with a file; a program finds the first as the error and all of them in the data."""
    if speech.mode.json:
        data = [{"file": e.file, "line": e.line, "message": e.message, "fix": e.fix} for e in errors]
        tell("setup", errors[0].message, errors[0].fix, {"problems": data})
    else:
        for error in errors:
            tell("setup", error.message, error.fix)
    return USAGE


def tell(code: str, message: str, fix: str, data: object = None) -> None:
    if speech.mode.json:
        known = code if code in set(Code) else Code.UNAVAILABLE.value
        problem = {"code": known, "message": message, "fix": fix}
        speech.write_json(
            {
                "ok": False,
                "tool": speech.mode.command,
                "data": data,
                "error": problem,
                "meta": speech.no_meta(),
            }
        )
        return
    speech.put_err(
        speech.safe("error ", "bold red")
        + speech.safe(f"{code}: ", "bold")
        + speech.safe(message, lines=True)
    )
    if fix:
        speech.put_err(speech.safe("fix: ", "bold") + speech.safe(fix, lines=True))
