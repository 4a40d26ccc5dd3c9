"""The keys that seal a ledger: HMAC keys by version, and an Ed25519 key that signs checkpoints; their file, and rotation.

They live outside the project (user state directory, 0600), so that whoever can write the project's files
still cannot forge an event.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.core.errors import LedgerBroken
from toolgate.core.records import dataclass, replace
from toolgate.storage import durable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from toolgate.ledger.ledger import Ledger

_BLOCK = 64
"""Bytes that SHA-256 takes at a time."""


def _begun(key: bytes) -> tuple[hashlib._Hash, hashlib._Hash]:
    block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    return hashlib.sha256(bytes(x ^ 0x36 for x in block)), hashlib.sha256(bytes(x ^ 0x5C for x in block))


@dataclass(frozen=True)
class Keys:
    versions: dict[int, bytes]
    signing: bytes
    source: str = "memory"

    @property
    def current(self) -> int:
        return max(self.versions)

    def mac(self, version: int, text: str) -> str:
        """HMAC-SHA256 as hex; an empty text (which matches nothing) where the version is not known."""
        try:
            inside, outside = self._halves[version]
        except KeyError:
            return ""
        inner = inside.copy()
        inner.update(text.encode())
        outer = outside.copy()
        outer.update(inner.digest())
        return outer.hexdigest()

    def derived(self, purpose: str) -> bytes:
        """A key of its own for something else than rows; the same after a rotation."""
        return hmac.digest(self.signing, purpose.encode(), "sha256")

    def mac_for(self, purpose: str, body: bytes, version: int | None = None) -> tuple[int, str]:
        """A version of the key, by default the newest, and the HMAC of `body` by a key derived from it for one purpose,
        so that neither can be used for the other's; an empty text, which matches nothing, for an unknown version."""
        version = self.current if version is None else version
        derived = bytes.fromhex(self.mac(version, purpose))
        return version, hmac.new(derived, body, "sha256").hexdigest() if derived else ""

    def __contains__(self, version: int) -> bool:
        return version in self.versions

    @cached_property
    def _halves(self) -> dict[int, tuple[hashlib._Hash, hashlib._Hash]]:
        """The two hashes that an HMAC is made of (RFC 2104), with the key in: copied in two thirds of the time of an
        HMAC object, four times a call."""
        return {version: _begun(key) for version, key in self.versions.items()}

    @property
    def private(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.signing)

    @property
    def public(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def rotated(self) -> Keys:
        return replace(self, versions={**self.versions, self.current + 1: os.urandom(32)})

    @classmethod
    def new(cls, source: str = "memory") -> Keys:
        return cls({1: os.urandom(32)}, os.urandom(32), source)


def load(path: Path) -> Keys:
    try:
        data = json.loads(path.read_text())
        versions = {int(version): bytes.fromhex(key) for version, key in data["hmac"].items()}
        keys = Keys(versions, bytes.fromhex(data["ed25519"]), str(path))
        if not versions or any(len(key) < 32 for key in versions.values()) or len(keys.signing) != 32:
            raise ValueError("a key is missing or too short")
    except FileNotFoundError:
        raise LedgerBroken(
            f"the key of this ledger is missing: {path}",
            "restore it from a backup; without it the ledger cannot be continued, only read and checked as a plain chain",
        ) from None
    except (ValueError, KeyError, AttributeError, TypeError, OSError) as error:
        raise LedgerBroken(
            f"the key file {path} cannot be used: {error}", "restore it from a backup"
        ) from None
    return keys


def save(keys: Keys, path: Path) -> None:
    durable.replace(path, _text(keys))


def load_or_create(path: Path) -> Keys:
    """The key file, made if there is none. Of two processes that make it at once, one wins and both use its key."""
    if not path.exists():
        durable.create(path, _text(Keys.new()))
    return load(path)


def _text(keys: Keys) -> bytes:
    data = {"hmac": {str(v): key.hex() for v, key in keys.versions.items()}, "ed25519": keys.signing.hex()}
    return json.dumps(data).encode()


async def rotate(ledger: Ledger, path: Path, by: str) -> tuple[int, int]:
    """A new key for what follows: its version and the event that says so. The old ones stay, and verify what they sealed;
    the file has the new one before the journal needs it."""
    from toolgate.core.event import Rotated
    from toolgate.ledger.ledger import Work, no_question

    with durable.locked(path, "the ledger's key"):  # two at once must not give two keys one version
        keys = load(path).rotated()
        save(keys, path)
        ledger.keys = keys
        event = Rotated(version=keys.current, by=by)
        work = Work(lambda view: view.emit(event), refs=no_question)  # all that stands is sealed anew
        await ledger.do(work)
    return keys.current, work.rows[0].seq
