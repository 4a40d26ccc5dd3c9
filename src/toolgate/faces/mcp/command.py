"""`toolgate mcp`: serve one persona of a project on stdio.

A client waits for the first answer, so `initialize` is answered before the gate is loaded and opened; whatever else the
client sends waits for that. If the gate does not open, it is told why, and so is stderr. Imports late.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgate.faces.mcp.greeting import Greeting

USAGE = 2
FILE = "toolgate.yaml"
_WORDS = {"--root": "root", "--persona": "persona", "-p": "persona", "--profile": "profile"}


class McpArguments:
    """What the command line says."""

    def __init__(self, root: str = "", persona: str = "", profile: str = "") -> None:
        self.root, self.persona, self.profile = root, persona, profile

    def __eq__(self, other: object) -> bool:
        return isinstance(other, McpArguments) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def parse(words: list[str]) -> McpArguments | None:
    """The plain spellings, read without a parser's cost; None sends the rest to the one with help and messages."""
    asked = McpArguments()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in _WORDS:
            if not equals and not rest:
                return None
            setattr(asked, _WORDS[name], value if equals else rest.pop(0))
        elif word.startswith("-") or asked.root:
            return None
        else:
            asked.root = word
    return asked


def run(asked: McpArguments) -> int:
    from toolgate.faces.mcp.greeting import Greeting

    root = _root(asked.root)
    greeting = Greeting(0, 1, _may_have_servers(root))
    if not os.path.isdir(root):
        return _told(greeting, f"there is no directory {root!r}", "give the directory of a project")
    greeting.look()
    return _run(asked, root, greeting)


def _run(asked: McpArguments, root: str, greeting: Greeting) -> int:
    import asyncio
    import gc

    from toolgate.core.errors import ToolgateError

    gc.disable()  # nothing that is made while it starts is garbage; looking for some costs a twentieth of the start
    try:
        asyncio.run(_serve(asked, root, greeting))
    except ToolgateError as error:
        return _told(greeting, error.message, error.fix)
    finally:
        gc.enable()
    return 0


def _told(greeting: Greeting, message: str, fix: str) -> int:
    greeting.refuse(f"toolgate does not serve this project: {message}; fix: {fix}")
    # the client shows stderr to its user, if anything
    sys.stderr.write(f"toolgate mcp: {message}\nfix: {fix}\n")
    return USAGE


def _root(given: str) -> str:
    """The project: what is given, else the nearest directory upwards that has a toolgate.yaml, else where we are."""
    here = place = os.path.realpath(given or os.curdir)
    while not given and not os.path.exists(os.path.join(place, FILE)):
        above = os.path.dirname(place)
        if above == place:
            return here
        place = above
    return place


def _may_have_servers(root: str) -> bool:
    """Whether toolgate.yaml could name other servers: what is said of them beforehand holds even if it does not."""
    try:
        with open(os.path.join(root, FILE), "rb") as file:
            return b"servers" in file.read()
    except OSError:
        return False


async def _serve(asked: McpArguments, root: str, greeting: Greeting) -> None:
    import asyncio
    import gc
    from pathlib import Path

    from toolgate import app
    from toolgate.core.errors import NotAllowed, SetupError
    from toolgate.core.names import HUMAN
    from toolgate.faces.mcp.listing import PROFILES
    from toolgate.faces.mcp.server import McpServer, Options
    from toolgate.faces.mcp.stdio import Stdio
    from toolgate.feature import beside

    greeting.look()  # the client may have been slower than we were
    if asked.profile and asked.profile not in PROFILES:
        raise SetupError(f"there is no profile {asked.profile!r}", f"use one of: {', '.join(PROFILES)}")
    setup = app.prepare(Path(root))
    if not setup.trusted:
        raise NotAllowed(
            f"{root} is not trusted by this user, so nothing of it is served",
            "`toolgate init` sets up a project of your own; for one from elsewhere read its toolgate.yaml, "
            "then `toolgate trust`",
        )
    persona = asked.persona or setup.config.default_persona
    if persona == HUMAN or persona not in setup.config.personas:
        known = ", ".join(setup.config.personas) or "none"
        what = f"there is no persona {persona!r} for an agent" if persona else "no persona was named"
        raise SetupError(what, f"use --persona with one of: {known}")
    greeting.source, greeting.target = _own_pipes()  # before plugins are loaded
    async with app.open(setup) as gate:
        gc.freeze()
        gc.enable()
        options = Options(profile=asked.profile or None, servers=greeting.answered and greeting.servers)
        server = McpServer(gate, options)
        tasks = [asyncio.create_task(work) for work in beside(gate.features.values(), "watch")]
        try:
            await Stdio(server, persona, greeting.source, greeting.target, greeting).serve()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.suspended.close()
            server.close()


def _own_pipes() -> tuple[int, int]:
    """The client's two pipes under numbers that nobody else knows. What a tool or a program it starts prints goes to
    stderr, and what it reads is empty: neither can speak to the client in our name."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, target
