"""Secrets in the operating system's keyring. What is in our file are their names only.

A keyring cannot list what it holds, so the names are written first: a name without a value is a secret that was being set
when somebody pulled the plug, and counts as none.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from toolgate.core.errors import Unavailable
from toolgate.secrets.secret import NAME, Secret
from toolgate.storage import durable

log = logging.getLogger("toolgate.secrets")
_REFUSED = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt")
"""Modules of backends that keep nothing, or keep it where anybody can read it."""
_PROBE = "toolgate probe"


class Keyring(Protocol):
    """What we use of the `keyring` package's backends."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


class KeyringStore:
    kind = "keyring"

    def __init__(self, path: Path, keyring: Keyring, project: str) -> None:
        self._path, self._keyring = path, keyring
        self._service = f"toolgate/{project}"

    def load(self, data: Mapping[str, Any]) -> dict[str, Secret]:
        names = data.get("names")
        if not isinstance(names, list) or not all(
            isinstance(each, str) and NAME.fullmatch(each) for each in names
        ):
            raise Unavailable(f"{self._path} is not a vault's list of names", "restore it from a backup")
        found = {name: self._get(name) for name in names}
        return {name: secret for name, secret in found.items() if secret is not None}

    def put(self, known: Mapping[str, Secret], name: str, secret: Secret) -> None:
        self._save({*known, name})
        try:
            self._keyring.set_password(self._service, name, json.dumps({"name": name, **secret.plain()}))
        except Exception as error:
            raise _failed("keep", name, error) from None
        self._save({*known, name})  # only now is it true, and only a new file is looked at again

    def drop(self, known: Mapping[str, Secret], name: str) -> None:
        try:
            self._keyring.delete_password(self._service, name)
        except Exception as error:
            raise _failed("remove", name, error) from None
        self._save({each for each in known if each != name})

    def _get(self, name: str) -> Secret | None:
        try:
            text = self._keyring.get_password(self._service, name)
        except Exception as error:
            raise _failed("give", name, error) from None
        if text is None:
            return None
        try:
            data = json.loads(text)
            if data["name"] != name:
                raise ValueError("another one's")
            return Secret.read(data)
        except (ValueError, KeyError, TypeError):
            raise Unavailable(
                f"what the keyring holds as {name} is not what toolgate put there",
                f"`toolgate secrets set {name}` again",
            ) from None

    def _save(self, names: set[str]) -> None:
        data = {"version": 1, "kind": self.kind, "names": sorted(names)}
        durable.replace(self._path, json.dumps(data).encode())


def _failed(what: str, name: str, error: Exception) -> Unavailable:
    """Without the backend's own words: nobody knows what they repeat."""
    return Unavailable(
        f"the keyring did not {what} {name} ({type(error).__name__})", "unlock the keyring, then try again"
    )


def usable_keyring() -> Keyring | None:
    """The user's keyring if there is one that really keeps things, and keeps them to itself."""
    try:
        backend = _current()
        return backend if backend is not None and _works(backend) else None
    except Exception as error:
        log.info("the keyring cannot be used: %s", type(error).__name__)
        return None


def needed_keyring() -> Keyring:
    found = _current()
    if found is None:
        raise Unavailable(
            "this project's secrets are in a keyring, and none can be used now",
            "install `toolgate[keyring]` and unlock your keyring",
        )
    return found


def _current() -> Keyring | None:
    try:
        import keyring
    except ImportError:
        return None
    backend: Any = keyring.get_keyring()
    return backend if trustworthy(backend) else None


def trustworthy(backend: object) -> bool:
    """Not one of those that only pretend, nor a chain that has one of them."""
    chained = getattr(backend, "backends", None)
    if chained is not None:
        inner = list(chained)
        return bool(inner) and all(map(trustworthy, inner))
    module = type(backend).__module__
    return not any(module == each or module.startswith(each + ".") for each in _REFUSED)


def _works(backend: Keyring) -> bool:
    name, word = secrets.token_hex(8), secrets.token_hex(8)
    backend.set_password(_PROBE, name, word)
    try:
        return backend.get_password(_PROBE, name) == word
    finally:
        backend.delete_password(_PROBE, name)
