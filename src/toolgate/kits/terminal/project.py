"""From a command line to an open project: where it is, whether it is trusted, a gate or only its record."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import toolgate
from toolgate.core import loops
from toolgate.core.errors import NotAllowed, SetupError, ToolgateError
from toolgate.kits.terminal import complete, speech
from toolgate.project import opening, trust

if TYPE_CHECKING:
    from toolgate.consent.desk import Desk
    from toolgate.core.ports import Channel
    from toolgate.facade import Gate
    from toolgate.project.opening import Setup
    from toolgate.project.record import Record

INTERRUPTED = 130
FEW_TOOLS = "this project is not trusted, so most tools are not there: `toolgate trust`"


def run(work: Coroutine[Any, Any, int | None]) -> None:
    """Do it, and end with the exit code it gives."""
    _end(_in_loop(work))


def control(work: Coroutine[Any, Any, int | None]) -> None:
    """The same for work that opens the ledger and no gate: without an event loop where the ledger is a file."""
    _end(loops.run(work, _in_loop))


def _end(code: int | None) -> None:
    if code:
        raise SystemExit(code)


def _in_loop(work: Coroutine[Any, Any, int | None]) -> int | None:
    import asyncio

    from toolgate.kits.terminal import logs

    logs.setup(speech.mode.verbose, speech.mode.debug)
    return asyncio.run(_interruptible(work))


async def _interruptible(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Ctrl-C cancels the work between two steps of the loop, where asyncio's own handler may strike within one
    and leave a traceback. A second Ctrl-C does not wait for the work to clean up."""
    import asyncio
    import signal

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    struck = False

    def strike() -> None:
        nonlocal struck
        struck = True
        loop.remove_signal_handler(signal.SIGINT)
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, strike)
    try:
        return await work
    except asyncio.CancelledError:
        if struck:
            return INTERRUPTED
        raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def locate(root: Path | None) -> Path:
    if root is None:
        return complete.find_root(Path.cwd())
    if not root.is_dir():
        raise SetupError(f"there is no directory {str(root)!r}", "give --root the directory of a project")
    return root.resolve()


def prepare(root: Path | None) -> Setup:
    return opening.prepare(locate(root))


def trusted(root: Path | None) -> Setup:
    """For commands that make no sense without the project's own record."""
    return _trusted(prepare(root))


def recorded(root: Path | None) -> Setup:
    """For commands that need the record and not the policy: where toolgate.yaml is broken they say so and go on."""
    setup = _trusted(opening.prepare_ledger(locate(root)))
    if setup.problem is not None:
        speech.note(
            f"warning: the policy is broken, and every call is refused: {setup.problem.message}", "yellow"
        )
    elif not setup.written:
        speech.note(f"warning: there is no {trust.FILE} in {setup.root}", "yellow")
    if setup.problem is not None or not setup.written:
        speech.note(f"this is about the ledger in {setup.place}", "yellow")
    return setup


def _trusted(setup: Setup) -> Setup:
    _set_up(setup)
    if not setup.trusted:
        raise distrusted(setup.root, "nothing of it is opened")
    return setup


def distrusted(root: Path, consequence: str) -> NotAllowed:
    return NotAllowed(
        f"{root} is not trusted by this user, so {consequence}",
        "`toolgate init` sets up a project of your own; for one from elsewhere read its toolgate.yaml, "
        "then `toolgate trust`",
    )


def unknown(root: Path, tool: str) -> NotAllowed:
    """Instead of `unknown_tool`: of an untrusted project hardly any tool is there, so that would mislead."""
    return distrusted(root, f"its tools, plugins and servers are not loaded and {tool!r} is not known")


def _set_up(setup: Setup) -> None:
    """A newcomer's first command: there is nothing to trust yet, and no persona to blame."""
    if not setup.trusted and not os.path.lexists(setup.root / trust.FILE):
        raise SetupError(f"there is no {trust.FILE} in {setup.root} or above it", "run `toolgate init`")


def make_key(root: Path) -> None:
    """With a new project. That an old ledger lacks its key is said here, and keeps nobody from going on."""
    setup = opening.prepare(root)
    opening.key_path(setup)  # a place that no key may be in is refused
    try:
        loops.run(opening.make_key(setup))
    except ToolgateError as error:
        speech.note(f"warning: {error.message}", "yellow")
        speech.note(f"fix: {error.fix}", "yellow")


@asynccontextmanager
async def any_gate(root: Path | None, channels: Sequence[Channel] = ()) -> AsyncIterator[Gate]:
    """Also of an untrusted project: there everything is denied, and the denial says why."""
    setup = prepare(root)
    _set_up(setup)
    async with toolgate.open(setup.root, channels=channels) as gate:
        if setup.trusted:
            with contextlib.suppress(OSError):
                complete.remember_tools(setup.local, gate.tool_names())
        yield gate


@asynccontextmanager
async def gate(root: Path | None, channels: Sequence[Channel] = ()) -> AsyncIterator[Gate]:
    async with any_gate(trusted(root).root, channels) as opened:
        yield opened


@asynccontextmanager
async def record(root: Path | None) -> AsyncIterator[Record]:
    """The ledger to read and check, even where no gate would open on it."""
    async with opening.open_record(recorded(root)) as opened:
        yield opened


@asynccontextmanager
async def desk(root: Path | None) -> AsyncIterator[Desk]:
    """The ledger to answer, revoke, pause and resume in, even where no policy, plugin or mount is as it should be."""
    async with opening.open_desk(recorded(root)) as opened:
        yield opened
