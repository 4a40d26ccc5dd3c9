"""JavaScript by Deno: its command line, what it is given on stdin, and what is read from what it leaves.

The main module is our prelude (`prelude/javascript.js`). It reads the program from stdin, so that neither the program
nor what it was given is in a command line, an environment or, but for the program's own text, in a file.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from toolgate.core.errors import Unavailable
from toolgate.sandbox.conversation import DEPTH, OUTPUT_BYTES, OUTPUTS, deeper_than
from toolgate.sandbox.job import PROJECT, PROXY_PORT, Broker, Job, Outcome
from toolgate.sandbox.program import ProgramCommand, libraries, loaders

PRELUDE = Path(__file__).parent / "prelude" / "javascript.js"
PROGRAM = "program.mjs"
_WRAPPER = "export default async function(module,exports,require,__filename,__dirname){"
"""Around a CommonJS snippet: on its first line, so that the others keep their numbers."""
_ES_SYNTAX = re.compile(r"^[^\S\n]*(?:import\b(?!\s*[.(])|export\b)", re.MULTILINE)
_COMMONJS_SYNTAX = re.compile(r"\bmodule\.exports\b|\bexports\.[A-Za-z_$]|\brequire\s*[.(]")
_LAST_WORDS = re.compile(rb"<--- Last few GCs --->.*|#\n# Fatal.*", re.DOTALL)
_NEVER = re.compile(rb"(error: Top-level await promise never resolved\n).*\Z", re.DOTALL)
_BUILT_IN = """
assert assert/strict async_hooks buffer child_process console constants crypto dgram diagnostics_channel dns dns/promises
events fs fs/promises http http2 https module net os path path/posix perf_hooks process punycode querystring readline
readline/promises stream stream/consumers stream/promises stream/web string_decoder timers timers/promises tls tty url
util util/types v8 vm worker_threads zlib
"""
_BARE_NAMES = "data:application/json," + json.dumps(
    {"imports": {name: f"node:{name}" for name in _BUILT_IN.split()}}
)
"""Modules built into Node by their old names. Deno's own way to them is shut together with packages, by --no-npm."""
_HEAP_SHARE = 0.75
"""Of a program's memory for V8's heap; the rest is for what is not on it: buffers, code, stacks."""


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


def program(job: Job, networked: bool, broker: Broker | None) -> ProgramCommand:
    """What the sandbox executes for a job."""
    deno, given = find(), DenoInputs.of(job, broker, networked)
    return ProgramCommand(
        argv=tuple(command(str(deno), job, networked)),
        ro_paths=libraries(),
        exec_paths=(*loaders(), str(deno), str(PRELUDE.resolve())),
        env=ENVIRONMENT,
        stdin=given.stream(),
        finish=given.finish,
    )


def command(deno: str, job: Job, networked: bool) -> list[str]:
    """Everything that is not named is refused by Deno: files, hosts, environment, programs, libraries, imports."""
    heap = max(int(job.limits.memory_bytes * _HEAP_SHARE) >> 20, 16)
    reads = [".", PROJECT] if job.view else ["."]
    writes = reads if job.view and job.view.writable else ["."]
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
        f"--import-map={_BARE_NAMES}",
        f"--v8-flags=--max-old-space-size={heap}",
        f"--allow-read={','.join(reads)}",
        f"--allow-write={','.join(writes)}",
        *([f"--allow-net=127.0.0.1:{PROXY_PORT}"] if networked else []),
        str(PRELUDE.resolve()),
    ]


ENVIRONMENT = {
    "DENO_DIR": "/dev/null/deno",  # a place where nothing can be: its caches stay in memory
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "NO_PROXY": "127.0.0.1",  # the prelude speaks to the proxy itself
}


@dataclass(frozen=True, slots=True)
class DenoInputs:
    """What a program is given on stdin, and how what it leaves is told apart from its own files."""

    code: str
    secrets: Mapping[str, Mapping[str, Any]] = field(repr=False)
    network: bool
    stdin: bytes = b""
    outputs: str = field(default_factory=lambda: f".output-{secrets.token_hex(16)}")

    @classmethod
    def of(cls, job: Job, broker: Broker | None, network: bool) -> DenoInputs:
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

    def finish(self, outcome: Outcome) -> Outcome:
        """With what was given to `output`, without files and last words that are not the program's own."""
        written = b"".join(file.content for file in outcome.left if file.path == self.outputs)
        values, dropped = _values(written)
        return replace(
            outcome,
            stderr=tidy(outcome.stderr),
            outputs=tuple(values),
            left=tuple(file for file in outcome.left if file.path not in (self.outputs, PROGRAM)),
            dropped=(*outcome.dropped, *dropped),
        )


def _values(written: bytes) -> tuple[list[Any], list[str]]:
    """One JSON value on a line. What is too much or no JSON is said once, and not taken."""
    kept = written[:OUTPUT_BYTES].rpartition(b"\n")[0] if len(written) > OUTPUT_BYTES else written
    lines = [line for line in kept.split(b"\n") if line]
    values: list[Any] = []
    dropped: dict[str, None] = {}
    if kept is not written or len(lines) > OUTPUTS:
        dropped[f"outputs beyond {OUTPUTS}, or {OUTPUT_BYTES:,} bytes"] = None
    for line in lines[:OUTPUTS]:
        try:
            value = orjson.loads(line)
            if deeper_than(value, DEPTH):
                raise ValueError("too deep")
            values.append(value)
        except ValueError:
            dropped[f"a value given to output() that is not JSON, or more than {DEPTH} deep"] = None
    return values, list(dropped)


def is_commonjs(code: str) -> bool:
    """A guess that does no harm where it is wrong: without import and export, a body runs as well as a module."""
    return bool(_COMMONJS_SYNTAX.search(code)) and not _ES_SYNTAX.search(code)


def tidy(stderr: bytes) -> bytes:
    """Without V8's last words about its own heap, and without lines of the prelude."""
    cut, found = _LAST_WORDS.subn(b"", stderr)
    return cut.rstrip(b"\n") + b"\nerror: out of memory\n" if found else _NEVER.sub(rb"\1", stderr)
