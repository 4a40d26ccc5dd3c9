"""JavaScript by Deno: its command line, what it is given on stdin, and what is read from what it leaves.

The main module is our prelude (`prelude/javascript.js`). It reads the program from stdin, so that neither the program
nor what it was given is in a command line, an environment or, but for the program's own text, in a file.
"""

from __future__ import annotations

import json
import re
import secrets
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.sandbox.job import PROXY_PORT, Broker, Job, Left, Limit, Limits

PRELUDE = Path(__file__).parent / "prelude" / "javascript.js"
PROGRAM = "program.mjs"
_WRAPPER = "export default async function(module,exports,require,__filename,__dirname){"
"""Around a CommonJS snippet: on its first line, so that the others keep their numbers."""
_ES_SYNTAX = re.compile(r"^\s*(?:import\b(?!\s*[.(])|export\b)", re.MULTILINE)
_COMMONJS_SYNTAX = re.compile(r"\bmodule\.exports\b|\bexports\.[A-Za-z_$]|\brequire\s*[.(]")
_NO_MEMORY = re.compile(
    rb"JavaScript out of memory|Fatal process out of memory|Array buffer allocation failed|memory allocation of \d+ bytes failed|"
    rb"Cannot allocate memory|Oilpan: Out of memory"
)
_LAST_WORDS = re.compile(rb"\n*<--- Last few GCs --->.*|\n*#\n# Fatal.*", re.DOTALL)
_NEVER = re.compile(rb"(error: Top-level await promise never resolved\n).*\Z", re.DOTALL)
_V8_ENDS = frozenset({signal.SIGTRAP, signal.SIGABRT, signal.SIGILL, signal.SIGSEGV})
_HEAP_SHARE = 0.75
"""Of a program's memory for V8's heap; the rest is for what is not on it: buffers, code, stacks."""
RESERVED_BYTES = 576 << 20
"""What V8 sets aside before anything runs, nearly all of it address space for machine code. It counts as data, so a
limit on data needs this much on top of the program's memory."""


def find() -> Path:
    """Deno's binary, from its wheel."""
    fix = "install it with: pip install toolgate[js]"
    try:
        from deno import find_deno_bin
    except ImportError:
        raise Unavailable("JavaScript needs Deno, which is not installed", fix) from None
    try:
        return Path(find_deno_bin()).resolve(strict=True)
    except FileNotFoundError as error:
        raise Unavailable(f"the deno package is installed without its binary ({error})", fix) from None


def command(
    deno: str, prelude: str, limits: Limits, reads: Sequence[str], writes: Sequence[str], network: bool
) -> list[str]:
    """Everything that is not named is refused by Deno: files, hosts, environment, programs, libraries, imports."""
    heap = max(int(limits.memory_bytes * _HEAP_SHARE) >> 20, 16)
    return [
        deno,
        "run",
        "--quiet",
        "--no-prompt",
        "--no-remote",
        "--no-npm",
        "--no-config",
        "--no-lock",
        "--no-code-cache",
        "--cached-only",
        "--deny-import",
        "--ignore-env",  # every variable is undefined, instead of an error in whatever looks for one
        f"--v8-flags=--max-old-space-size={heap}",
        f"--allow-read={_paths([*reads, *writes])}",
        f"--allow-write={_paths(writes)}",
        *([f"--allow-net=127.0.0.1:{PROXY_PORT}"] if network else []),
        prelude,
    ]


def _paths(paths: Sequence[str]) -> str:
    """Deno splits at commas; a path with one in it is written with two."""
    return ",".join(path.replace(",", ",,") for path in paths)


ENVIRONMENT = {
    "DENO_DIR": "/dev/null/deno",  # a place where nothing can be: its caches stay in memory
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What a program is given on stdin, and how what it leaves is told apart from its own files."""

    code: str
    secrets: Mapping[str, Mapping[str, Any]] = field(repr=False)
    network: bool
    stdin: bytes = b""
    outputs: str = field(default_factory=lambda: f".output-{secrets.token_hex(16)}")

    @classmethod
    def of(cls, job: Job, broker: Broker | None, network: bool) -> Given:
        refused = {"error": "no secret can be given here"}
        held = {
            name: broker.answer({"op": "secret", "name": name}) if broker else refused for name in job.secrets
        }
        return cls(job.code, held, network, job.stdin)

    @property
    def text(self) -> str:
        """The program as it is imported: every line where it was."""
        plain = self.code.removeprefix("\ufeff")
        if plain.startswith("#!"):
            plain = "//" + plain[2:]
        return plain.replace("import.meta.main", "(true/*  main*/)")

    def stream(self) -> bytes:
        """For stdin: the length of a JSON object in ten digits, the object, and the program's own input."""
        wrapped = _WRAPPER if is_commonjs(self.code) else ""
        body = {
            "code": self.text, "wrapped": wrapped, "secrets": self.secrets, "network": self.network, "outputs": self.outputs,
        }  # fmt: skip
        text = json.dumps(body).encode()
        return b"%010d" % len(text) + text + self.stdin

    def taken(self, left: Sequence[Left]) -> tuple[tuple[Any, ...], tuple[Left, ...], tuple[str, ...]]:
        """The values given to `output`, the files that are the program's own, and what could not be taken, in words."""
        values: list[Any] = []
        dropped: list[str] = []
        for lines in (file.content.splitlines() for file in left if file.path == self.outputs):
            for line in lines:
                try:
                    values.append(json.loads(line))
                except (ValueError, RecursionError):
                    dropped.append("a value given to output() that is not JSON")
        own = tuple(file for file in left if file.path not in (self.outputs, PROGRAM))
        return tuple(values), own, tuple(dropped)


def is_commonjs(code: str) -> bool:
    """A guess that does no harm where it is wrong: without import and export, a body runs as well as a module."""
    return bool(_COMMONJS_SYNTAX.search(code)) and not _ES_SYNTAX.search(code)


def limit_hit(stderr: bytes, exit_code: int | None, ended_by: int) -> Limit | None:
    """Deno dies of a full heap by a signal, and of a refused allocation by an error; both are the same limit."""
    died = ended_by in _V8_ENDS or exit_code not in (0, None)
    return "memory" if died and _NO_MEMORY.search(stderr) else None


def tidy(stderr: bytes) -> bytes:
    """Without V8's last words about its own heap, and without lines of the prelude."""
    cut, found = _LAST_WORDS.subn(b"", stderr)
    return cut.rstrip(b"\n") + b"\nerror: out of memory\n" if found else _NEVER.sub(rb"\1", stderr)
