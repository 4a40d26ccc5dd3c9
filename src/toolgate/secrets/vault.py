"""Vault: secrets by name, kept in the user's keyring or an encrypted file, known to every open gate at once. And one secret:
its value, where it may be sent, whether a program may hold it, and what can be one.

Which of the two keeps them is decided when the first secret is set, and stays so. The file of the project in the user's
state directory says which; whoever changes anything replaces that file, so one look at it tells that something changed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from toolgate.core.errors import InvalidArgs, NotFound, Unavailable
from toolgate.core.hosts import authority_of, bracketed, joined
from toolgate.core.late_pattern import late_pattern
from toolgate.core.records import dataclass, field
from toolgate.secrets.finder import SHORTEST, Finder
from toolgate.storage import durable

NAME = late_pattern(r"[A-Z][A-Z0-9_]{0,63}")
LONGEST = 64 * 1024
"""Bytes of a value."""
MANY = 200
"""Secrets in one vault."""


@dataclass(frozen=True, slots=True)
class Secret:
    value: str = field(repr=False)
    hosts: tuple[str, ...] = ()
    """Where the egress proxy may put it in: a name, `*.name` for what is below it, either with `:port`."""
    reveal: bool = False
    """Whether a program may be given the value itself."""

    def fits(self, host: str) -> bool:
        """Whether it may be sent there; `host` is what a request names, with its port or without."""
        try:
            name, port = authority_of(host)
            places = [_place(allowed) for allowed in self.hosts]
        except InvalidArgs:
            return False
        return any(
            (name.endswith(f".{wanted}") if below else name == wanted) and only in (None, port)
            for below, wanted, only in places
        )

    def plain(self) -> dict[str, Any]:
        return {"value": self.value, "hosts": list(self.hosts), "reveal": self.reveal}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Secret:
        """What `plain` gave. Raises where it is something else."""
        value, hosts, reveal = data["value"], data["hosts"], data["reveal"]
        if not isinstance(value, str) or not isinstance(reveal, bool) or not isinstance(hosts, list):
            raise TypeError("not a secret")
        return cls(value, tuple(map(str, hosts)), reveal)


def _place(written: str) -> tuple[bool, str, int | None]:
    """Whether hosts below it are meant, its name in the one spelling that the proxy compares, and its port."""
    name, port = authority_of(written.removeprefix("*."))
    return written.startswith("*."), name, port


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InvalidArgs(
            f"{name[:80]!r} is not a secret's name",
            "use capital letters, digits and _, beginning with a letter, at most 64: GITHUB_TOKEN",
        )
    return name


def checked(value: str | bytes, hosts: Iterable[str] = (), reveal: bool = False) -> Secret:
    """A secret that can be kept and found again. No message repeats the value."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise InvalidArgs(
                "the value is not text", "give UTF-8 text; encode other data as base64"
            ) from None
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidArgs("the value has broken characters", "give UTF-8 text") from None
    if "\0" in value:
        raise InvalidArgs("the value is not text: it has a NUL", "encode binary data as base64")
    if size > LONGEST:
        raise InvalidArgs(f"the value has {size:,} bytes, the limit is {LONGEST:,}", "keep a shorter one")
    ink = "".join(value.split())
    if len(ink) < SHORTEST:
        raise InvalidArgs(
            f"the value has {len(ink)} characters, whitespace apart; fewer than {SHORTEST} would mangle ordinary text",
            "use a longer secret",
        )
    if len(set(ink)) == 1:
        raise InvalidArgs(
            "the value is one character repeated, which ordinary text is too", "use a real secret"
        )
    return Secret(value, tuple(dict.fromkeys(map(_host, hosts))), reveal)


def _host(written: str) -> str:
    try:
        below, name, port = _place(written.strip())
    except InvalidArgs:
        raise InvalidArgs(
            f"{written[:80]!r} is not a host",
            "write its name as in `api.example.com`, `*.example.com` or `localhost:8080`",
        ) from None
    return ("*." if below else "") + (bracketed(name) if port is None else joined(name, port))


LARGEST = 32 << 20
JUST_NOW = 0.01
"""Seconds for which a look is good. Whoever changes something waits so long before they say that it is done."""
_EFFECTIVE = os.access in os.supports_effective_ids
Stamp = tuple[int, ...] | None


class VaultStore(Protocol):
    """Where values are kept. One writer at a time: `put` and `drop` are called with the vault's lock held."""

    @property
    def kind(self) -> str: ...

    def load(self, data: Mapping[str, Any]) -> dict[str, Secret]:
        """All of them. Raises Unavailable where something is not as it was written."""
        ...

    def put(self, known: Mapping[str, Secret], name: str, secret: Secret) -> None:
        """Keep this one beside the known ones; on disk before it returns."""
        ...

    def drop(self, known: Mapping[str, Secret], name: str) -> None: ...


class Vault:
    """Implements `core.ports.Vault`."""

    def __init__(self, state_dir: Path, project: str) -> None:
        self.path = state_dir / "vault" / f"{project}.json"
        self._file = str(self.path)
        self._key = state_dir / "keys" / f"{project}.vault"
        self._project = project
        self._stamp: Stamp = None
        self._look_at = 0.0
        self._known: dict[str, Secret] = {}
        self.kind = ""
        """What keeps them; empty before the first."""
        self.finder: Finder | None = None
        """Finds the values; None where there are none."""
        self.version = 0
        """Goes up whenever they change."""

    # --- what there is ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Notice what other processes did: one look at one file, if the last was not just now. Raises where the vault
        cannot be read, and whoever asked must then not go on: what is not known cannot be kept out of anything."""
        now = time.monotonic()
        if now >= self._look_at:
            self._notice()
            self._look_at = now + JUST_NOW

    def _notice(self) -> None:
        if self._stamp is None and not os.access(self._file, os.F_OK, effective_ids=_EFFECTIVE):
            return  # most have none, and this says so without an exception at every call
        stamp = self._look()
        if stamp != self._stamp:
            self._read()
            self._stamp = stamp

    def names(self) -> list[str]:
        return sorted(self._known)

    def get(self, name: str) -> Secret | None:
        return self._known.get(name)

    def need(self, name: str) -> Secret:
        found = self._known.get(check_name(name))
        if found is None:
            raise NotFound(f"there is no secret {name}", f"`toolgate secrets set {name}` keeps one")
        return found

    def within(self, content: bytes) -> Iterable[tuple[str, int, int]]:
        """For the content scan: every value in it, in any form."""
        finder = self.finder
        return () if finder is None else ((span.name, span.start, span.end) for span in finder.spans(content))

    # --- changing it --------------------------------------------------------------------------------------

    def set(self, name: str, value: str | bytes, hosts: Iterable[str] = (), reveal: bool = False) -> bool:
        """Keep a value; whether there was one of this name before."""
        check_name(name)
        secret = checked(value, hosts, reveal)
        with self._changing() as store:
            before = name in self._known
            if not before and len(self._known) >= MANY:
                raise InvalidArgs(f"the vault holds {MANY} secrets, which is all it can", "remove one first")
            store.put(self._known, name, secret)
        return before

    def remove(self, name: str) -> None:
        check_name(name)
        with self._changing() as store:
            self.need(name)
            store.drop(self._known, name)

    @contextmanager
    def _changing(self) -> Iterator[VaultStore]:
        """The lock held and what others did known; afterwards what we did known to everybody."""
        with durable.alone(self.path, "the vault"):
            self._notice()
            yield self.store(self.kind or _best_kind())
            self._notice()
        time.sleep(JUST_NOW)  # who looked before it was there looks again before the next call

    # --- reading it ---------------------------------------------------------------------------------------

    def _look(self) -> Stamp:
        try:
            status = os.stat(self._file)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def _read(self) -> None:
        raw = durable.read(self.path, LARGEST)
        if raw is None:
            known: dict[str, Secret] = {}
            self.kind = ""
        else:
            data = self._parsed(raw)
            known = self.store(str(data.get("kind"))).load(data)
            self.kind = str(data["kind"])
        self._known = known
        self.version += 1
        self.finder = Finder({name: each.value for name, each in known.items()}) if known else None

    def _parsed(self, raw: bytes) -> dict[str, Any]:
        try:
            data = json.loads(raw)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise Unavailable(
                f"{self.path} is not a vault",
                "restore it from a backup, or remove it and set the secrets again",
            )
        return data

    def store(self, kind: str) -> VaultStore:
        if kind == "file":
            from toolgate.secrets.vault_stores import FileStore

            return FileStore(self.path, self._key, self._project)
        if kind == "keyring":
            from toolgate.secrets.vault_stores import KeyringStore, needed_keyring

            return KeyringStore(self.path, needed_keyring(), self._project)
        raise Unavailable(
            f"{self.path} is of a kind this toolgate does not know", "use the toolgate that wrote it"
        )


def _best_kind() -> str:
    from toolgate.secrets.vault_stores import usable_keyring

    return "keyring" if usable_keyring() is not None else "file"


# What a program in the sandbox gets when it asks for a secret: a placeholder, unless the owner said
# `reveal`. The placeholder means something only to the egress proxy of the same job, which puts the value
# in its place on the way to a host that the secret is for. Messages and answers are plain JSON objects.


class SecretBroker:
    """One per job. Knows the names that the call was allowed, and gives nothing else away."""

    def __init__(self, vault: Vault | None, granted: Iterable[str]) -> None:
        self._vault = vault
        self._granted = tuple(dict.fromkeys(granted))
        job = os.urandom(8).hex()
        self._standing = {name: f"tgs_{job}_{name}" for name in self._granted}
        self.placeholders: Mapping[str, str] = {word: name for name, word in self._standing.items()}
        """The name that each placeholder stands for; for the egress proxy."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        match message:
            case {"op": "list"}:
                return {"names": list(self._granted)}
            case {"op": "secret", "name": str(name)}:
                return self._secret(name)
        return {"error": "not a question that the broker answers", "fix": "ask for `secret` or `list`"}

    def _secret(self, name: str) -> Mapping[str, Any]:
        if name not in self._granted:
            shown = name if NAME.fullmatch(name) else "this"
            return {
                "error": f"{shown} was not given to this program",
                "fix": f"name it in `secrets` of the call; given: {', '.join(self._granted) or 'none'}",
            }
        secret = self._vault.get(name) if self._vault is not None else None
        if secret is None:
            return {
                "error": f"there is no secret {name}",
                "fix": f"a human sets it: toolgate secrets set {name}",
            }
        return {"value": secret.value} if secret.reveal else {"placeholder": self._standing[name]}

    def resolve(self, name: str, host: str) -> str | None:
        """The value, where the call was given it and it may be sent to this host; for the egress proxy."""
        if name not in self._granted or self._vault is None:
            return None
        secret = self._vault.get(name)
        return secret.value if secret is not None and secret.fits(host) else None
