"""Secrets in an encrypted file. The key is elsewhere in the user's state directory, beside the ledger's.

Each value is sealed (AES-256-GCM) together with the project, its name and what it may be used for, so that none of them can
stand in another's place. The whole list is sealed too, so that none can be taken out of it.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import canonical
from toolgate.core.errors import Unavailable
from toolgate.secrets.secret import Secret
from toolgate.storage import durable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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
