"""`toolgate init`: a project ready for calls, without a single question. `toolgate trust`: see what a project's toolgate.yaml would
start, and vouch for it; it runs nothing. `toolgate schema`: for editors that check the file while it is written.
"""

from __future__ import annotations

import json as codec
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from toolgate.core.errors import SetupError
from toolgate.kits.terminal import client, failures, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.project import config
from toolgate.project import trust as trusted

if TYPE_CHECKING:
    from toolgate.features.servers.config import ServerSpec
    from toolgate.project.config import Config

IGNORED = f"{config.STATE}/"
POWERS = ("contribute", "collaborate")


@command(epilog="Example: toolgate init ~/code/shop")
def init(
    root: Annotated[Path, Argument(metavar="ROOT", help="The project; default: this directory.")] = Path("."),
    at: Annotated[Path | None, Option("--root", help="The same, as an option.")] = None,
    json: options.Json = False,
) -> None:
    """Set up a project: toolgate.yaml, .gitignore, key, trust. Never overwrites; can be repeated.

    A project that was there already and is not trusted yet stays so: read it, then `toolgate trust`.
    """
    root = (at or root).resolve()
    if not root.is_dir():
        raise SetupError(f"there is no directory {str(root)!r}", "create it first, or name another")
    before = trusted.is_trusted(root, config.state_dir())
    # what somebody else may have written is vouched for by `toolgate trust` only, which shows it first
    strange = not before and any(os.path.lexists(root / name) for name in (config.FILE, config.STATE))
    wrote = _write_config(root)
    made = config.load(root)  # a file that was there and is broken is said now, before anything is trusted
    persona = made.default_persona or next(iter(made.personas), "")
    ignored = _ignore(root)
    ident = None if strange else trusted.trust(root, config.state_dir())
    if not strange:
        project.make_key(root)
    done = {
        "root": str(root),
        "project": ident,
        "trusted": not strange,
        "config_written": wrote,
        "gitignore_changed": ignored,
        "was_trusted": before,
        "client": client.snippet(root, persona),
    }
    if not speech.finish(done):
        _tell(root, wrote, ignored)
        _tell_trust(root, before, strange, wrote)
        if not strange:
            speech.say("\nfor the file of an MCP client:", "bold")
            speech.say(client.told(root, persona))
            others = [name for name in made.personas if name != persona]
            if others:
                speech.say(f"it calls as {persona}; after --persona there may also stand {', '.join(others)}")


def _write_config(root: Path) -> bool:
    try:
        with (root / config.FILE).open("x") as file:
            file.write(config.DEFAULT_YAML)
    except FileExistsError:
        return False
    return True


def _ignore(root: Path) -> bool:
    """State is not for the repository. Says whether the file had to change."""
    path = root / ".gitignore"
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        speech.note(
            f".gitignore is a link or no file at all and was left alone; add the line {IGNORED} where it belongs",
            "yellow",
        )
        return False
    try:
        with open(path, opener=_no_link) as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    if any(line.strip().rstrip("/").lstrip("/") == config.STATE for line in text.splitlines()):
        return False
    separator = "" if not text or text.endswith("\n") else "\n"
    with open(path, "a", opener=_no_link) as file:
        file.write(f"{separator}{IGNORED}\n")
    return True


def _no_link(path: str, flags: int) -> int:
    """Also if the name is swapped after it was looked at: a link would lead the write out of the project."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def _tell(root: Path, wrote: bool, ignored: bool) -> None:
    speech.say(
        f"{'wrote' if wrote else 'kept'} {config.FILE}"
        + ("" if wrote else " (it was there; nothing is overwritten)")
    )
    if ignored:
        speech.say(f"added {IGNORED} to .gitignore")


def _tell_trust(root: Path, before: bool, strange: bool, wrote: bool) -> None:
    if strange:
        there = IGNORED if wrote else config.FILE
        speech.say(f"{there} was there already and {root} is not trusted: nothing of it runs", "yellow")
        speech.say("\nnext:", "bold")
        if not wrote:
            speech.say(f"  read {config.FILE}             it may come from somebody else")
        whose = f"if {IGNORED} is of a program of yours; " if wrote else ""
        speech.say(f"  toolgate trust                 {whose}shows what it would start, then trusts it")
        return
    speech.say("this project was trusted already" if before else f"this user now trusts {root}")
    speech.say("\nnext:", "bold")
    speech.say("  toolgate tools                 what can be called")
    speech.say("  toolgate call system.ping      a first call")
    speech.say("  toolgate mcp                   what an assistant starts, as below; docs/mcp.md has more")
    speech.say("  toolgate up                    the console, the HTTP API and MCP in one server")
    speech.say("  toolgate policy check          after editing toolgate.yaml")
    speech.say("  toolgate doctor                if something seems wrong")


@command(epilog="Example: toolgate trust ~/code/from-a-stranger")
def trust(
    root: Annotated[
        Path | None, Argument(metavar="ROOT", help="The project; default: the nearest one.")
    ] = None,
    at: Annotated[Path | None, Option("--root", help="The same, as an option.")] = None,
    remove: Annotated[bool, Option("--remove", help="Take the trust back.")] = False,
    yes: Annotated[bool, Option("--yes", help="Do not ask at a terminal.")] = False,
    json: options.Json = False,
) -> None:
    """Show what a project would start, then record that you trust it. Nothing of it is run."""
    place = project.locate(at or root)
    if remove:
        removed = trusted.distrust(place, config.state_dir())
        if not speech.finish({"root": str(place), "trusted": False, "changed": removed}):
            speech.say(f"{place} is no longer trusted" if removed else f"{place} was not trusted")
        return
    loaded = config.load(place)
    found = dict(powers(place, loaded))
    if not speech.mode.json:
        speech.say(f"toolgate.yaml of {place} says:", "bold")
        speech.put(speech.pairs((name, ", ".join(items) or "none") for name, items in found.items()))
        if not yes and options.channel() == "terminal" and not _confirmed():
            speech.say(f"\n{place} is not trusted; nothing was recorded")
            raise SystemExit(failures.REFUSED)
    from toolgate.project import record as records

    before = records.another(place, config.state_dir(), trusted.project_id(place))
    if before:
        speech.note(f"{before}; what it recorded is not in this one", "yellow")
    ident = trusted.trust(place, config.state_dir())
    project.make_key(place)
    if speech.finish(
        {"root": str(place), "trusted": True, "project": ident, "powers": found, "before": before}
    ):
        return
    speech.say(f"\n{place} is now trusted by this user; `toolgate trust --remove` takes it back")


def _confirmed() -> bool:
    from toolgate.kits.terminal.prompt import forget_typed

    forget_typed(sys.stdin.fileno())
    sys.stderr.write("\ntrust it? [y/N] > ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def powers(root: Path, loaded: Config) -> Iterator[tuple[str, list[str]]]:
    """What trusting it lets happen."""
    yield "plugins", list(loaded.plugins)
    yield "servers", [_server(name, spec) for name, spec in loaded.servers.items()]
    yield (
        "mounts outside",
        [f"{name}: {mount.path}" for name, mount in loaded.mounts.items() if _outside(root, mount.path)],
    )
    strong = {
        name: [
            *([spec.phase] if spec.phase in POWERS else []),
            *(f"allow {glob}" for glob in spec.allow or ()),
        ]
        for name, spec in loaded.personas.items()
    }
    yield "personas with powers", [f"{name} ({', '.join(what)})" for name, what in strong.items() if what]
    rules = [rule for rule in loaded.policy_spec.rules if rule.decision == "allow"]
    yield "allow rules", [f"{len(rules)}"] if rules else []
    yield "webhook", [loaded.consent.notify.webhook] if loaded.consent.notify.webhook else []
    yield "database", [loaded.ledger.database.rpartition("@")[2]] if loaded.ledger.database else []
    yield "key file", [loaded.ledger.key_file] if loaded.ledger.key_file else []


def _server(name: str, spec: ServerSpec) -> str:
    names = [*spec.given, *(f"the secret {each}" for each in spec.secrets)]
    given = f" (given {', '.join(names)})" if names else ""
    return f"{name}: {spec.shown}{given}"


def _outside(root: Path, path: str) -> bool:
    return not (root / path).resolve().is_relative_to(root)


@command(epilog="Example: toolgate schema > toolgate.schema.json")
def schema(json: options.Json = False) -> None:
    """Print the JSON Schema of toolgate.yaml."""
    if not speech.finish(config.schema()):
        sys.stdout.write(codec.dumps(config.schema(), indent=2) + "\n")
