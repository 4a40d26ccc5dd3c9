"""`toolgate init`: a project ready for calls, without a single question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgate import app as composition
from toolgate import config, trust
from toolgate.core.errors import SetupError
from toolgate.faces.cli import options, speech
from toolgate.ledger import keys

app = options.family()
IGNORED = f"{config.STATE}/"


@app.command(epilog="Example: toolgate init ~/code/shop")
def init(
    root: Annotated[
        Path, typer.Argument(metavar="[ROOT]", help="The project; default: this directory.")
    ] = Path("."),
    json: options.Json = False,
) -> None:
    """Set up a project: toolgate.yaml, .gitignore, key, trust. Never overwrites; can be repeated."""
    root = root.resolve()
    if not root.is_dir():
        raise SetupError(f"there is no directory {str(root)!r}", "create it first, or name another")
    before = trust.is_trusted(root, config.state_dir())
    wrote = _write_config(root)
    config.load(root)  # a file that was there and is broken is said now, before anything is trusted
    ignored = _ignore(root)
    ident = trust.trust(root, config.state_dir())
    keys.load_or_create(composition.key_path(composition.prepare(root)))
    done = {
        "root": str(root),
        "project": ident,
        "config_written": wrote,
        "gitignore_changed": ignored,
        "was_trusted": before,
    }
    if not speech.finish(done):
        _tell(root, wrote, ignored, before)


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
    try:
        text = path.read_text()
    except FileNotFoundError:
        text = ""
    if any(line.strip().rstrip("/").lstrip("/") == config.STATE for line in text.splitlines()):
        return False
    separator = "" if not text or text.endswith("\n") else "\n"
    with path.open("a") as file:
        file.write(f"{separator}{IGNORED}\n")
    return True


def _tell(root: Path, wrote: bool, ignored: bool, before: bool) -> None:
    speech.say(
        f"{'wrote' if wrote else 'kept'} {config.FILE}"
        + ("" if wrote else " (it was there; nothing is overwritten)")
    )
    if ignored:
        speech.say(f"added {IGNORED} to .gitignore")
    speech.say("this project was trusted already" if before else f"this user now trusts {root}")
    speech.say("\nnext:", "bold")
    speech.say("  toolgate tools                 what can be called")
    speech.say("  toolgate call system.ping      a first call")
    speech.say("  toolgate policy check          after editing toolgate.yaml")
    speech.say("  toolgate doctor                if something seems wrong")
