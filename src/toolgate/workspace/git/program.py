"""The git program: fixed argv, an environment of its own, a time limit, an output cap, killed as a group.

Work that grows with what git printed is done in a thread when that is much.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolgate.core.errors import Failed, TimedOut, TooLarge, Unavailable
from toolgate.core.programs import find_program
from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    from toolgate.workspace.git.view import GitView

_Result = TypeVar("_Result")
LARGE_OUTPUT = 256 << 10
"""Bytes from which on the work is done in a thread; before, starting one would take longer."""


async def maybe_in_thread(size: int, work: Callable[[], _Result]) -> _Result:
    return await asyncio.to_thread(work) if size >= LARGE_OUTPUT else work()


OLDEST = (2, 31)
"""The first git that can compare merges with their first parent."""
MOST_MEMORY = 4 << 30
"""Bytes of its own: packs that git maps do not count. A small object can stand for gigabytes."""
_CHUNK = 1 << 18
_STDERR = 4096
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
}
"""All that git sees of the environment; nothing of ours is passed on, so no GIT_* of the caller leads elsewhere."""


@dataclass(frozen=True, slots=True)
class Output:
    data: bytes
    whole: bool
    """False when the cap was reached and the rest was not read."""


def find_git() -> str:
    """The program, by its absolute path. Looked for anew until it is found: it may be installed meanwhile."""
    found = find_program("git")
    if found is None:
        raise Unavailable("git is not installed", "install git, or use the tools that need no history")
    version = _version(found)
    if version < OLDEST:
        said, needed = (".".join(map(str, parts)) for parts in (version, OLDEST))
        raise Unavailable(f"git {said} is too old", f"install git {needed} or newer")
    return found


@lru_cache(maxsize=8)
def _version(program: str) -> tuple[int, ...]:
    try:
        said = subprocess.run(  # noqa: S603 - a fixed argv
            [program, "version"], env=dict(ENVIRONMENT), capture_output=True, timeout=5, check=False
        ).stdout.decode("ascii", "replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"git does not run: {error}", "repair the installation of git") from None
    found = re.search(r"(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


async def start(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, stdin: bool = False
) -> asyncio.subprocess.Process:
    """A group of its own, so that nothing it starts outlives it."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv, env={**ENVIRONMENT, **env}, cwd=cwd, stdin=pipe if stdin else null, stdout=pipe, stderr=pipe,
        start_new_session=True, limit=_CHUNK,
    )  # fmt: skip
    if process.returncode is None:
        limit_memory(process.pid)
    return process


def limit_memory(pid: int) -> None:
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):  # it is over already, or its limit is lower
            resource.prlimit(pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


async def stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    # a transport left open would complain when it is collected; the group is dead, so neither wait is long
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                while await stream.read(_CHUNK):
                    pass
    await process.wait()
    if process.stdin is not None:
        process.stdin.close()
        with contextlib.suppress(OSError):
            await process.stdin.wait_closed()


async def run(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, seconds: float, cap: int, stdin: bytes | None = None
) -> Output:  # fmt: skip
    """What git prints, up to `cap` bytes. A failure is an error with what git said about it."""
    process = await start(argv, env, cwd, stdin=stdin is not None)
    feeding = asyncio.ensure_future(_feed(process, stdin)) if stdin is not None else None
    complaint = asyncio.ensure_future(_complaint(process))
    try:
        async with asyncio.timeout(seconds):
            output = await _read(process, cap)
            if output.whole:
                code = await process.wait()
                said = await complaint
    except TimeoutError:
        raise TimedOut(
            f"git did not finish in {seconds:g} s", "ask for less: a path, a shorter range"
        ) from None
    finally:
        for task in (feeding, complaint):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (feeding, complaint) if task), return_exceptions=True)
        await asyncio.shield(stop(process))
    if output.whole and code != 0:
        raise Failed(f"git failed: {said or f'exit code {code}'}", "check the repository with `git fsck`")
    return output


async def _read(process: asyncio.subprocess.Process, cap: int) -> Output:
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    while chunk := await process.stdout.read(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > cap:
            return Output(b"".join(parts)[:cap], False)
    return Output(b"".join(parts), True)


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


async def _complaint(process: asyncio.subprocess.Process) -> str:
    """The start of what git says on stderr; the rest is read too, so that git never waits for us."""
    assert process.stderr is not None
    said = b""
    while chunk := await process.stderr.read(_STDERR):
        said = (said + chunk)[:_STDERR]
    lines = said.decode("utf-8", "replace").splitlines()
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "")[
        :300
    ]


# One long-lived `git cat-file --batch`: verifies revisions and reads objects without starting a program
# each time. A revision goes in on a line of its own, never as an argument, so it cannot become an option.

ANSWER_SECONDS = 5.0
OBJECT_CAP = 16 << 20


@dataclass(frozen=True, slots=True)
class GitObject:
    id: str
    kind: str
    content: bytes


@dataclass(slots=True)
class Batch:
    view: GitView
    _process: asyncio.subprocess.Process | None = None
    _form: tuple[str, bytes] = ("", b"")
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _silence: asyncio.Task[None] | None = None

    async def ask(self, *names: str, cap: int = OBJECT_CAP, keep: int = OBJECT_CAP) -> list[GitObject | None]:
        """The objects of these names, in their order; None where there is none. All are asked for at once.

        Of each, the first `keep` bytes are held in memory.
        """
        if any("\n" in name or "\0" in name for name in names):
            raise Failed("a name of an object has a line break", "report this")
        async with self._turn:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._ask(names, cap, keep)
            except TimeoutError:
                await self._stop()
                raise TimedOut(
                    f"git did not answer in {ANSWER_SECONDS:g} s", "name the revision by its hash"
                ) from None
            except BaseException:
                await self._stop()  # half an answer may be in the pipe: the next question starts afresh
                raise

    async def close(self) -> None:
        async with self._turn:
            await self._stop()

    async def _ask(self, names: tuple[str, ...], cap: int, keep: int) -> list[GitObject | None]:
        process = await self._running()
        assert process.stdin is not None
        lines = "".join(name + "\n" for name in names)
        process.stdin.write(lines.encode("utf-8", "surrogateescape"))
        answers = [await self._answer(process, name, cap, keep) for name in names]
        await process.stdin.drain()
        return answers

    async def _running(self) -> asyncio.subprocess.Process:
        """Of the kind of hash, and of where a shallow clone ends, git reads once."""
        form = (self.view.refs.hash_name, self.view.refs.shallow)
        if self._process is not None and (self._process.returncode is not None or self._form != form):
            await self._stop()
        if self._process is None:
            argv = (self.view.program, "--no-pager", "cat-file", "--batch")
            self._process = await start(argv, self.view.env(), self.view.cwd, stdin=True)
            self._form = form
            self._silence = asyncio.ensure_future(_drain(self._process))
        return self._process

    async def _answer(
        self, process: asyncio.subprocess.Process, name: str, cap: int, keep: int
    ) -> GitObject | None:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise Failed("git stopped in the middle of an answer", "check the repository with `git fsck`")
        asked = name.encode("utf-8", "surrogateescape")
        if line.startswith(asked) and line[len(asked) :] in (b" missing\n", b" ambiguous\n"):
            return None
        words = line.split()
        if len(words) != 3 or not words[2].isdigit():
            return None  # `loop`, `notdir` and their like
        size = int(words[2])
        if size > cap:
            raise TooLarge(f"an object of {size:,} bytes is larger than {cap:,}", "ask for a smaller one")
        try:
            content = await process.stdout.readexactly(min(size, keep))
            for left in range(size + 1 - len(content), 0, -_CHUNK):
                await process.stdout.readexactly(min(left, _CHUNK))
        except asyncio.IncompleteReadError:
            raise Failed(
                "git stopped in the middle of an object", "check the repository with `git fsck`"
            ) from None
        return GitObject(words[0].decode(), words[1].decode(), content)

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if self._silence is not None:
            self._silence.cancel()
            await asyncio.gather(self._silence, return_exceptions=True)
            self._silence = None
        if process is not None:
            await asyncio.shield(stop(process))


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Warnings are read and forgotten, so that git never waits for us to read them."""
    assert process.stderr is not None
    while await process.stderr.read(4096):
        pass
