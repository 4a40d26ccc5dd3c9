"""`toolgate mcp`: open the project's gate and serve one persona on stdio. Imports late: a client waits for it."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path

USAGE = 2


@dataclass
class Asked:
    root: str = ""
    persona: str = ""
    profile: str = ""


def parse(words: list[str]) -> Asked | None:
    """The plain spellings, read without a parser's cost; None sends the rest to the one with help and messages."""
    asked = Asked()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--root", "--persona", "-p", "--profile"):
            if not equals and not rest:
                return None
            setattr(asked, {"-p": "persona"}.get(name, name[2:]), value if equals else rest.pop(0))
        elif word.startswith("-") or asked.root:
            return None
        else:
            asked.root = word
    return asked


def run(asked: Asked) -> int:
    from toolgate.core.errors import ToolgateError

    gc.disable()  # nothing that is made while it starts is garbage; looking for some costs a twentieth of the start
    try:
        asyncio.run(_serve(asked, _root(asked.root)))
    except ToolgateError as error:
        # the client shows stderr to its user, if anything
        sys.stderr.write(f"toolgate mcp: {error.message}\nfix: {error.fix}\n")
        return USAGE
    finally:
        gc.enable()
    return 0


def _root(given: str) -> Path:
    from toolgate.core.errors import SetupError
    from toolgate.kits.terminal import complete

    root = Path(given).resolve() if given else complete.find_root(Path.cwd())
    if not root.is_dir():
        raise SetupError(f"there is no directory {str(root)!r}", "give the directory of a project")
    return root


async def _serve(asked: Asked, root: Path) -> None:
    from toolgate import app
    from toolgate.core.errors import NotAllowed, SetupError
    from toolgate.core.names import HUMAN
    from toolgate.faces.mcp.listing import PROFILES
    from toolgate.faces.mcp.server import Options, Server
    from toolgate.faces.mcp.stdio import Stdio

    if asked.profile and asked.profile not in PROFILES:
        raise SetupError(f"there is no profile {asked.profile!r}", f"use one of: {', '.join(PROFILES)}")
    setup = app.prepare(root)
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
    async with app.open(root) as gate:
        gc.freeze()
        gc.enable()
        server = Server(gate, Options(profile=asked.profile or None))  # type: ignore[arg-type]
        try:
            await Stdio(server, persona, *_own_pipes()).serve()
        finally:
            await server.parking.close()
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
