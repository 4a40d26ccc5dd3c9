"""`toolgate secrets`: the vault. A value comes from stdin or a hidden prompt, and is shown nowhere."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from toolgate.core.errors import Failed, InvalidArgs
from toolgate.kits.terminal import complete, options, project, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option
from toolgate.kits.terminal.prompt import unseen
from toolgate.project.vault_api import vault_of
from toolgate.secrets.spelled import shown_forms
from toolgate.secrets.vault import LONGEST, Secret, check_name

app = CommandGroup("Keep secrets by name; their values are masked everywhere.")
Name = Annotated[
    str,
    Argument(metavar="NAME", help="Capital letters, digits and _.", complete=complete.secrets),
]


@app.command(
    "set",
    epilog="Example: toolgate secrets set GITHUB_TOKEN --host api.github.com < token.txt",
)
def set_(
    name: Name,
    host: Annotated[
        list[str] | None,
        Option("--host", help="Where the egress proxy may send it: a name, *.name, name:port. Repeatable."),
    ] = None,
    reveal: Annotated[
        bool, Option("--reveal", help="Let programs hold the value itself, not a placeholder.")
    ] = False,
    root: options.Root = None,
    json: options.Json = False,
    extra: Annotated[list[str] | None, Argument(hidden=True)] = None,
) -> None:
    """Keep a secret, or replace it. The value is read from stdin, or typed unseen at a terminal."""
    check_name(name)
    if extra:  # not said again: it may be the value
        raise InvalidArgs(
            "a value on the command line can be read by every process, and stays in the shell's history",
            f"leave it out and type it unseen, or `toolgate secrets set {name} < FILE`",
        )
    project.run(_set(name, _value(name), host or [], reveal, root))


def _value(name: str) -> bytes:
    """Never from the command line, which every process can read."""
    if sys.stdin.isatty():
        return unseen(f"value of {name} (not shown): ")
    value = sys.stdin.buffer.read(LONGEST + 3)
    if not value.strip():
        raise InvalidArgs(
            "there is no value on stdin", f"`toolgate secrets set {name} < FILE`, or at a terminal"
        )
    return value.removesuffix(b"\n").removesuffix(b"\r")


async def _set(name: str, value: bytes, hosts: list[str], reveal: bool, root: Any) -> None:
    async with project.gate(root) as gate:
        replaced = await gate.set_secret(name, value, hosts=hosts, reveal=reveal, channel=options.channel())
        kept, kind = vault_of(gate).need(name), vault_of(gate).kind
    if not speech.finish({"replaced": replaced, **_plain(name, kept), "kept_in": kind}):
        speech.say(f"{name} is {'replaced' if replaced else 'kept'} in {_PLACES[kind]}; {_use(kept)}")


@app.command("list", epilog="Example: toolgate secrets list --json")
def list_(root: options.Root = None, json: options.Json = False) -> None:
    """List the names of the secrets and what each may be used for."""
    project.run(_list(root))


async def _list(root: Any) -> None:
    async with project.gate(root) as gate:
        vault = vault_of(gate)
        found = {name: vault.need(name) for name in vault.names()}
    if speech.finish([_plain(name, secret) for name, secret in found.items()]):
        return
    if not found:
        speech.say("there are no secrets; `toolgate secrets set NAME` keeps one")
        return
    rows = [
        [speech.safe(name, "bold"), ", ".join(secret.hosts) or "nowhere", "yes" if secret.reveal else "no"]
        for name, secret in found.items()
    ]
    speech.put(speech.table(["secret|whole", "may be sent to", "programs may hold it"], rows))


@app.command(epilog="Example: toolgate secrets remove GITHUB_TOKEN")
def remove(name: Name, root: options.Root = None, json: options.Json = False) -> None:
    """Forget a secret. From then on its value is no longer masked."""
    project.run(_remove(name, root))


async def _remove(name: str, root: Any) -> None:
    async with project.gate(root) as gate:
        await gate.remove_secret(name, channel=options.channel())
    if not speech.finish({"name": name, "removed": True}):
        speech.say(f"{name} is removed; its value is no longer masked")


@app.command("test", epilog="Example: toolgate secrets test GITHUB_TOKEN")
def check(name: Name, root: options.Root = None, json: options.Json = False) -> None:
    """Check that a secret can be read back and that every form of it is masked. Its value is not shown."""
    project.run(_test(name, root))


async def _test(name: str, root: Any) -> None:
    async with project.gate(root) as gate:
        vault = vault_of(gate)
        secret, kind = vault.need(name), vault.kind
        shown, count = shown_forms(secret.value, gate.redact)
    if shown:
        raise Failed(f"{name} is not masked when it is written as: {', '.join(shown)}", "report this")
    found = {**_plain(name, secret), "kept_in": kind, "length": _length(secret), "forms_masked": count}
    if not speech.finish(found):
        speech.say(
            f"{name} can be read back from {_PLACES[kind]}: {_length(secret)} characters; {_use(secret)}"
        )
        speech.say(f"all of {count} ways to write it are masked")


_PLACES = {"keyring": "your keyring", "file": "an encrypted file"}


def _plain(name: str, secret: Secret) -> dict[str, Any]:
    return {"name": name, "hosts": list(secret.hosts), "reveal": secret.reveal}


def _length(secret: Secret) -> str:
    """Roughly: the exact length helps whoever guesses."""
    size = len(secret.value)
    for low, high in ((8, 15), (16, 31), (32, 63), (64, 255)):
        if size <= high:
            return f"{low} to {high}"
    return "256 or more"


def _use(secret: Secret) -> str:
    sent = f"may be sent to {', '.join(secret.hosts)}" if secret.hosts else "may be sent nowhere by programs"
    return sent + ("; programs may hold it" if secret.reveal else "; programs hold a placeholder")
