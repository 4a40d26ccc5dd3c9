"""What kind of error ended a program: one word, from the limit it hit and from what it wrote to stderr.

Tables, not guesses: a limit is known for sure; an interpreter names its error in a fixed form, and the last one named
is the one that ended the program; a shell is known by its phrases and exit codes.
"""

from __future__ import annotations

import re
from typing import Literal

Category = Literal[
    "syntax", "import", "type", "reference", "timeout", "network", "memory", "output", "limit", "permission",
    "runtime", "unknown",
]  # fmt: skip

_LIMITS: dict[str, Category] = {
    "time": "timeout", "cpu": "timeout", "memory": "memory", "output": "output", "processes": "limit",
    "files": "limit", "disk": "limit", "inodes": "limit", "requests": "limit",
}  # fmt: skip

_TAIL = 16_384
_NETWORK = (
    "Connection refused", "Connection reset", "Connection timed out", "Name or service not known",
    "Temporary failure in name resolution", "Network is unreachable", "No route to host", "urlopen error",
    "error sending request", "fetch failed", "ECONNREFUSED", "ENOTFOUND", "Could not resolve", "dns error",
    "this program has no network", "this program may not reach", "which programs may not reach",
)  # fmt: skip

# Phrases that say more than the name of the error, in this order, looked for in the message of the last error named.
_PHRASES: tuple[tuple[Category, tuple[str, ...]], ...] = (
    ("network", _NETWORK),
    ("memory", ("out of memory", "Cannot allocate memory", "Array buffer allocation failed", "ENOMEM")),
    ("limit", ("No space left on device", "Disk quota exceeded", "Too many open files", "Resource temporarily unavailable")),
    ("permission", ("Permission denied", "Operation not permitted", "Read-only file system", "Requires ")),
)  # fmt: skip

_NAMED: dict[str, Category] = {
    "SyntaxError": "syntax", "IndentationError": "syntax", "TabError": "syntax",
    "ImportError": "import", "ModuleNotFoundError": "import",
    "TypeError": "type", "AttributeError": "type",
    "NameError": "reference", "UnboundLocalError": "reference", "ReferenceError": "reference",
    "TimeoutError": "timeout", "TimedOut": "timeout",
    "URLError": "network", "HTTPError": "network", "gaierror": "network", "herror": "network", "SSLError": "network",
    "ConnectionError": "network", "ConnectionRefusedError": "network", "ConnectionResetError": "network",
    "ConnectionAbortedError": "network", "BrokenPipeError": "network", "ConnectionRefused": "network",
    "ConnectionReset": "network",
    "MemoryError": "memory",
    "PermissionError": "permission", "PermissionDenied": "permission", "NotCapable": "permission",
}  # fmt: skip

# `module.Error: message` at the start of a line ends a Python traceback; a traceback's frames are indented.
_PYTHON = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*|gaierror|herror)(?::[ \t](.*))?$", re.MULTILINE)
# Deno: `error: Uncaught (in promise) TypeError: message`, and `Caused by:` lines below it.
_DENO = re.compile(r"^error: (?:Uncaught )?(?:\(in promise\) )?(?:([A-Z]\w*): )?(.*)$", re.MULTILINE)
_MODULES = (
    "Module not found",
    "No such built-in module",
    "Cannot find module",
    "Unsupported scheme",
    "Relative import path",
    "Import ",
)
_PARSING = (
    "The module's source code could not be parsed",
    "SyntaxError",
    "Expression expected",
    "Unexpected token",
)

_SHELL: tuple[tuple[Category, tuple[str, ...]], ...] = (
    ("syntax", ("Syntax error", "syntax error", "unexpected EOF", "Unterminated quoted string", "bad substitution")),
    ("reference", (": not found", "command not found", "parameter not set", "unbound variable")),
)  # fmt: skip


def categorize(language: str, stderr: str, exit_code: int | None = None, limit: str = "") -> Category:
    """For a program that did not succeed."""
    if limit:
        return _LIMITS.get(limit, "limit")
    tail = stderr[-_TAIL:].strip()
    if language == "python":
        found = _python(tail)
    elif language == "javascript":
        found = _javascript(tail)
    else:
        found = _shell(tail, exit_code)
    if found is not None:
        return found
    return "runtime" if tail else "unknown"


def error_line(stderr: str) -> str:
    """The line that names the error: Deno's stands above its frames, every other one at the end."""
    text = stderr.strip()
    found = _DENO.search(text)
    return found.group() if found is not None else text.rsplit("\n", 1)[-1]


def _python(text: str) -> Category | None:
    named = _PYTHON.findall(text)
    if not named:
        return _phrase(text.rsplit("\n", 1)[-1])
    name, message = named[-1]
    return _NAMED.get(name) if name in ("SyntaxError", "TypeError") else _phrase(message) or _NAMED.get(name)


def _javascript(text: str) -> Category | None:
    if "Fatal JavaScript out of memory" in text:
        return "memory"
    found = _DENO.search(text)
    if found is None:
        return _phrase(text)
    name, message = found.group(1) or "", found.group(2)
    causes = "\n".join(line for line in text.splitlines() if line.startswith("Caused by:"))
    if any(phrase in message for phrase in _PARSING):
        return "syntax"
    if not name and message.startswith(_MODULES):
        return "import"
    # fetch reports what happened to the connection as a TypeError
    return _phrase(f"{message}\n{causes}") or _NAMED.get(name)


def _shell(text: str, exit_code: int | None) -> Category | None:
    last = text.rsplit("\n", 1)[-1]
    for category, phrases in _SHELL:
        if any(phrase in last for phrase in phrases):
            return category
    if exit_code == 127:
        return "reference"
    return _phrase(last) or ("permission" if exit_code == 126 else None)


def _phrase(text: str) -> Category | None:
    for category, phrases in _PHRASES:
        if any(phrase in text for phrase in phrases):
            return category
    return None
