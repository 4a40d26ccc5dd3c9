"""`toolgate trust`: see what a project's toolgate.yaml would start, and vouch for it. Runs nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from toolgate.features.servers.config import ServerSpec
from toolgate.kits.terminal import failures, options, project, speech
from toolgate.kits.terminal.command import Argument, Option, command
from toolgate.kits.terminal.keyboard import forget_typed
from toolgate.project import config as configuration
from toolgate.project import record as records
from toolgate.project import trust as trusted
from toolgate.project.config import Config

POWERS = ("contribute", "collaborate")


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
        removed = trusted.distrust(place, configuration.state_dir())
        if not speech.finish({"root": str(place), "trusted": False, "changed": removed}):
            speech.say(f"{place} is no longer trusted" if removed else f"{place} was not trusted")
        return
    loaded = configuration.load(place)
    found = dict(powers(place, loaded))
    if not speech.mode.json:
        speech.say(f"toolgate.yaml of {place} says:", "bold")
        speech.put(speech.pairs((name, ", ".join(items) or "none") for name, items in found.items()))
        if not yes and options.channel() == "terminal" and not _confirmed():
            speech.say(f"\n{place} is not trusted; nothing was recorded")
            raise SystemExit(failures.REFUSED)
    before = records.another(place, configuration.state_dir(), trusted.project_id(place))
    if before:
        speech.note(f"{before}; what it recorded is not in this one", "yellow")
    ident = trusted.trust(place, configuration.state_dir())
    project.make_key(place)
    if speech.finish(
        {"root": str(place), "trusted": True, "project": ident, "powers": found, "before": before}
    ):
        return
    speech.say(f"\n{place} is now trusted by this user; `toolgate trust --remove` takes it back")


def _confirmed() -> bool:
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
