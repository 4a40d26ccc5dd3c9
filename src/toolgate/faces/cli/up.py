"""`toolgate up`: the console, the HTTP API and MCP in one process, until Ctrl-C or SIGTERM; on a sample project if that is asked
for, with one call that waits: the first approval, for somebody who has just arrived. `toolgate token`: the words by which the
server knows the human and each persona.

The server's libraries are imported by `_serve` alone: no other command pays for them.
"""

from __future__ import annotations

import ipaddress
import os
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from toolgate.core.errors import CallError, InvalidArgs, SetupError
from toolgate.core.names import HUMAN
from toolgate.feature import beside
from toolgate.kits.terminal import complete, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.web.tokens import Tokens, path_for
from toolgate.project import trust
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.core.result import Result
    from toolgate.facade import Gate
    from toolgate.project.config import Config
    from toolgate.project.opening import Setup

SUMS_EVERY = 60.0
SAMPLE_SETTINGS = """\
version: 1
default_persona: builder
personas:
  reviewer: {phase: observe}
  builder: {phase: contribute}
policy:
  rules:
    - {name: people-decide, persona: builder, tools: ["fs.*"], effects: {writes: [project]}, decision: ask,
       reason: every change of the shop is put to a human}
models:
  demo: {kind: scripted, script: says.yaml}   # says what the file has; no model is asked
"""
SAMPLE_SAYS = """\
- {text: I look it up., calls: [{tool: code.read, args: {path: hours.md}}]}
- {text: "hours.md has the opening hours.", expect: hours}
"""
SAMPLE_HOURS = "# Opening hours\n\n- Monday to Friday: 9 to 17\n"


@dataclass(frozen=True)
class Asked:
    root: Path
    host: str
    port: int | None
    hosts: tuple[str, ...]
    proxy: str
    persona: str
    console: bool


@command(epilog="Example: toolgate up ~/code/shop --port 9000")
def up(
    root: Annotated[Path | None, Argument(metavar="ROOT", help="The project.")] = None,
    port: Annotated[
        int | None, Option("--port", help="Default: 8721, or any free one.", min=0, max=65535)
    ] = None,
    host: Annotated[str, Option("--host", help="The address to listen on.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None, Option("--allow-host", help="A name by which browsers reach it. Repeatable.")
    ] = None,
    proxy: Annotated[str, Option("--proxy", help="Believe X-Forwarded-* headers from this address.")] = "",
    persona: options.Persona = "",
    no_console: Annotated[bool, Option("--no-console", help="Only the API and MCP.")] = False,
    sample_in: Annotated[
        Path | None,
        Option("--sample", help="Make a sample project there, with a first call to approve."),
    ] = None,
    at: options.Root = None,
    json: options.Json = False,
) -> None:
    """Start the console, the HTTP API and MCP; print their addresses with the tokens they need.

    The first address is for the human: whoever has it can approve. The persona's token only makes calls. Ends on Ctrl-C.
    """
    guide: Guide | None = None
    if sample_in is not None:
        guide = prepare_sample(sample_in)
        root = guide.root
    place = _place(root or at)
    asked = Asked(place, host, port, tuple(allow_host or ()), proxy, persona, not no_console)
    _check(asked)
    project.run(_serve(asked, guide))


def _place(root: Path | None) -> Path:
    place = project.locate(root)
    if not (place / trust.FILE).exists():
        raise SetupError(f"there is no {trust.FILE} in {place}", "run `toolgate init` there first")
    return place


def _check(asked: Asked) -> None:
    if is_loopback(asked.host):
        return
    if not asked.hosts:
        raise InvalidArgs(
            f"--host {asked.host} opens the server to other machines",
            "also say by which names they reach it, with --allow-host NAME; and put TLS before it (docs/http.md)",
        )
    speech.note(
        f"warning: {asked.host} is open to other machines, and HTTP carries the tokens in the clear; put TLS before it",
        "yellow",
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(asked: Asked, guide: Guide | None) -> None:
    import asyncio

    from toolgate.faces.http.app import create_app
    from toolgate.faces.http.serve import listen, serve
    from toolgate.faces.http.site import ServerSite

    setup = project.trusted(asked.root)
    tokens = of_project(setup)
    persona = _persona(asked, setup.config)
    sock = listen(asked.host, asked.port)
    with sock:
        async with project.gate(asked.root) as gate:
            gate.load_tools()  # now, where nobody waits: later one caller's first call would hold up all others
            where = _address(asked, sock.getsockname()[1])
            site = ServerSite(gate, tokens, asked.hosts, f"{where}/" if asked.console else "")
            application = create_app(gate, tokens, console=asked.console, site=site)
            guiding: list[asyncio.Task[None]] = [asyncio.create_task(_keep_sums(gate))]
            guiding += map(asyncio.create_task, beside(gate.features.values(), "background", "watch"))

            def ready() -> None:
                _tell(_words(where, tokens, persona, asked.console))
                if guide is not None:
                    guiding.append(asyncio.create_task(guide.waits(gate)))

            try:
                await serve(application, site, sock, proxy=asked.proxy, ready=ready)
            finally:
                for task in guiding:
                    task.cancel()
                await asyncio.gather(*guiding, return_exceptions=True)
    speech.note("stopped")


async def _keep_sums(gate: Gate) -> None:
    """So that `stats` finds all but the last events summed up."""
    import asyncio

    while True:
        await asyncio.sleep(SUMS_EVERY)
        with suppress(CallError):
            await gate.stats("all")


def _persona(asked: Asked, settings: Config) -> str:
    if asked.persona and asked.persona not in settings.personas:
        raise InvalidArgs(
            f"there is no persona {asked.persona!r}", f"use one of: {', '.join(settings.personas) or 'none'}"
        )
    return asked.persona or settings.default_persona or next(iter(settings.personas), "")


def _address(asked: Asked, port: int) -> str:
    host = asked.host if is_loopback(asked.host) else asked.hosts[0]
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _words(where: str, tokens: Tokens, persona: str, console: bool) -> dict[str, str | None]:
    return {
        "console": f"{where}/?token={tokens.of(HUMAN)}" if console else None,
        "mcp": f"{where}/mcp",
        "api": f"{where}/api/v1",
        "persona": persona or None,
        "token": tokens.of(persona) if persona else None,
    }


def _tell(words: dict[str, str | None]) -> None:
    if speech.mode.json:
        speech.finish(words)
    else:
        bearer = f"  Bearer {words['token']}  (persona {words['persona']})" if words["token"] else ""
        if words["console"]:
            speech.say(f"console  {words['console']}")
        speech.say(f"MCP      {words['mcp']}{bearer}")
        speech.say(f"API      {words['api']}{bearer}")
        speech.say("The console's address is yours alone: whoever has it can approve. Ctrl-C ends.", "dim")
    sys.stdout.flush()


@command(epilog="Example: toolgate token builder")
def token(
    persona: Annotated[
        str, Argument(help="Whose; default: the human's.", complete=complete.personas)
    ] = HUMAN,
    new: Annotated[bool, Option("--new", help="Replace it: the old one stops working at once.")] = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Print a token. The human's approves and logs in to the console; a persona's only makes calls."""
    setup = project.trusted(root)
    if persona != HUMAN and persona not in setup.config.personas:
        known = ", ".join((HUMAN, *setup.config.personas))
        raise InvalidArgs(f"there is no persona {persona!r}", f"use one of: {known}")
    tokens = of_project(setup)
    found = tokens.renew(persona) if new else tokens.of(persona)
    if not speech.finish({"persona": persona, "token": found}):
        sys.stdout.write(found + "\n")


def of_project(setup: Setup) -> Tokens:
    return Tokens(path_for(trust.state_dir(), trust.make_project_id(setup.root)))


@dataclass(frozen=True)
class Guide:
    """Of somebody who has just arrived, through the sample project."""

    root: Path
    state: Path

    async def waits(self, gate: Gate) -> None:
        """One call that asks, made in builder's name, and what became of it."""
        speech.say("\nA call is waiting for you: builder wants to add a line to hours.md.", "bold")
        speech.say("  in the browser   open the console's address, read the change, approve or refuse it")
        speech.say(f"  in a terminal    {self._command('approvals')}")
        speech.say(
            f"An agent, scripted so that no model is asked: {self._command('run', 'when are we open?')}"
        )
        sys.stdout.flush()
        line = {"path": "hours.md", "text": f"- Saturday: 10 to {14 + await self._answered(gate) % 8}\n"}
        result = await gate.call("fs.append", line, persona="builder", reason="customers ask for Saturdays")
        self._tell(result)
        sys.stdout.flush()

    async def _answered(self, gate: Gate) -> int:
        """The next call differs from those that were answered, and is the same as one that still waits."""
        return len(await gate.events(Filter(tool="fs.append", kinds=("committed", "refused"))))

    def _tell(self, result: Result) -> None:
        if result.error is None:
            event = str(result.meta.event_id)
            speech.say(f"\nYou approved it and it ran: event {event}, exactly the change you saw.", "green")
            speech.say(f"  take it back     {self._command('undo', event)}")
            speech.say(f"  see its life     {self._command('ledger', 'show', event)}")
            speech.say(f"  prove it         {self._command('ledger', 'verify')}")
        else:
            speech.say(f"\nIt did not run ({result.error.code.value}): {result.error.message}", "yellow")

    def _command(self, *words: str) -> str:
        program = sys.argv[0] if Path(sys.argv[0]).name == "toolgate" else "toolgate"
        shown = [
            f"TOOLGATE_STATE_DIR={self.state}",
            _nearby(program),
            *words,
            "--root",
            _nearby(str(self.root)),
        ]
        return " ".join(map(shlex.quote, shown))


def _nearby(path: str) -> str:
    """As somebody would type it here."""
    with suppress(ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def prepare_sample(directory: Path) -> Guide:
    """Everything is below this directory, keys and tokens too; what is there already is kept."""
    directory = directory.resolve()
    guide = Guide(directory / "shop", directory / "state")
    guide.root.mkdir(parents=True, exist_ok=True)
    for name, text in (
        (trust.FILE, SAMPLE_SETTINGS),
        ("hours.md", SAMPLE_HOURS),
        ("says.yaml", SAMPLE_SAYS),
    ):
        with suppress(FileExistsError), (guide.root / name).open("x") as file:
            file.write(text)
    os.environ["TOOLGATE_STATE_DIR"] = str(guide.state)
    trust.trust(guide.root, trust.state_dir())
    project.make_key(guide.root)
    return guide
