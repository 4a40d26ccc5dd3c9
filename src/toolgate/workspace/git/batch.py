"""One long-lived `git cat-file --batch`: verifies revisions and reads objects without starting a program each time.

A revision goes in on a line of its own, never as an argument, so it cannot become an option.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from toolgate.core.errors import Failed, TimedOut, TooLarge
from toolgate.workspace.git.program import start, stop
from toolgate.workspace.git.view import GitView

ANSWER_SECONDS = 5.0
OBJECT_CAP = 16 << 20
_CHUNK = 1 << 18


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
