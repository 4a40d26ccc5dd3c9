"""Stores of the vault: an encrypted file, or the keyring of the operating system."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from toolgate.core.canonical import canonical
from toolgate.core.errors import Unavailable
from toolgate.secrets.vault import NAME, Secret
from toolgate.storage import durable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


# Secrets in an encrypted file. The key is elsewhere in the user's state directory, beside the ledger's.
# Each value is sealed (AES-256-GCM) together with the project, its name and what it may be used for, so
# that none of them can stand in another's place. The whole list is sealed too, so that none can be taken
# out of it.

KEY_BYTES = 32
_NONCE = 12


class FileStore:
    kind = "file"

    def __init__(self, path: Path, key_path: Path, project: str) -> None:
        self._path, self._key_path, self._project = path, key_path, project

    def load(self, data: Mapping[str, Any]) -> dict[str, Secret]:
        key = self._key(make=False)
        entries = data.get("secrets")
        if not isinstance(entries, dict) or not hmac.compare_digest(
            str(data.get("seal")), self._seal(key, entries)
        ):
            raise self._changed()
        cipher = _cipher(key)
        return {name: self._opened(cipher, name, entry) for name, entry in entries.items()}

    def put(self, known: Mapping[str, Secret], name: str, secret: Secret) -> None:
        self._save({**known, name: secret})

    def drop(self, known: Mapping[str, Secret], name: str) -> None:
        self._save({each: secret for each, secret in known.items() if each != name})

    def _save(self, secrets: Mapping[str, Secret]) -> None:
        key = self._key(make=not self._path.exists())
        cipher = _cipher(key)
        entries = {name: self._closed(cipher, name, secret) for name, secret in secrets.items()}
        data = {"version": 1, "kind": self.kind, "secrets": entries, "seal": self._seal(key, entries)}
        durable.replace(self._path, json.dumps(data, indent=1, sort_keys=True).encode())

    def _closed(self, cipher: AESGCM, name: str, secret: Secret) -> dict[str, Any]:
        nonce = os.urandom(_NONCE)
        box = cipher.encrypt(
            nonce, secret.value.encode(), self._about(name, list(secret.hosts), secret.reveal)
        )
        return {
            "hosts": list(secret.hosts),
            "reveal": secret.reveal,
            "box": base64.b64encode(nonce + box).decode(),
        }

    def _opened(self, cipher: AESGCM, name: str, entry: Mapping[str, Any]) -> Secret:
        from cryptography.exceptions import InvalidTag

        try:
            box = base64.b64decode(entry["box"], validate=True)
            about = self._about(name, entry["hosts"], entry["reveal"])
            value = cipher.decrypt(box[:_NONCE], box[_NONCE:], about).decode()
            return Secret.read({"value": value, "hosts": entry["hosts"], "reveal": entry["reveal"]})
        except (InvalidTag, ValueError, KeyError, TypeError):
            raise self._changed() from None

    def _about(self, name: str, hosts: list[str], reveal: bool) -> bytes:
        return canonical(["toolgate secret", 1, self._project, name, hosts, reveal]).encode()

    def _seal(self, key: bytes, entries: Mapping[str, Any]) -> str:
        about = canonical(["toolgate vault", 1, self._project, entries])
        return hmac.digest(_derived(key, "seal"), about.encode(), "sha256").hex()

    def _key(self, *, make: bool) -> bytes:
        key = durable.read(self._key_path, KEY_BYTES)
        if key is None and make:
            durable.create(self._key_path, os.urandom(KEY_BYTES))
            key = durable.read(self._key_path, KEY_BYTES)
        if key is None or len(key) != KEY_BYTES:
            raise Unavailable(
                f"the vault's key {self._key_path} is {'missing' if key is None else 'not a key'}",
                f"restore it from a backup; without it remove {self._path} and set the secrets again",
            )
        return key

    def _changed(self) -> Unavailable:
        return Unavailable(
            f"{self._path} is not as it was written: somebody changed it, or it belongs to another project",
            "restore it from a backup, or remove it and set the secrets again",
        )


def _derived(key: bytes, purpose: str) -> bytes:
    return hmac.digest(key, f"toolgate vault {purpose}".encode(), "sha256")


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(_derived(key, "encrypt"))


# Secrets in the operating system's keyring. What is in our file are their names only. A keyring cannot list
# what it holds, so the names are written first: a name without a value is a secret that was being set when
# somebody pulled the plug, and counts as none.

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
