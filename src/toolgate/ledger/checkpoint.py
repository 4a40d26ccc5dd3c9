"""A signed statement of where the ledger ends, to be kept elsewhere.

Ed25519 over canonical JSON: whoever has the public key can check it, and nobody else can make one. A ledger that
no longer contains a checkpoint's event was cut, rewritten or replaced by an older copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgate.core import wire
from toolgate.core.canonical import canonical
from toolgate.core.clock import iso
from toolgate.core.errors import CallError, InvalidArgs, LedgerBroken
from toolgate.core.records import dataclass, fields_of

if TYPE_CHECKING:
    from toolgate.ledger.keys import Keys
    from toolgate.storage.port import Head

FORMAT = "toolgate-checkpoint-1"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    seq: int
    hash: str
    at: int
    project: str
    public_key: str
    signature: str = ""
    format: str = FORMAT

    @property
    def when(self) -> str:
        return iso(self.at)

    def _claims(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in fields_of(Checkpoint)}

    def _signed(self) -> bytes:
        claims = self._claims()
        del claims["signature"]
        return canonical(claims).encode()

    def as_json(self) -> str:
        return canonical(self._claims())


def sign(head: Head, project: str, keys: Keys) -> Checkpoint:
    bare = Checkpoint(head.seq, head.hash, head.at, project, keys.public)
    signature = keys.private.sign(bare._signed()).hex()
    return Checkpoint(head.seq, head.hash, head.at, project, keys.public, signature)


def _check_types(checkpoint: Checkpoint, data: dict[str, Any]) -> None:
    """Exactly the fields, each of its type: what could be read in two ways proves nothing."""
    for name, value in checkpoint._claims().items():
        if name not in data or type(value) is not (int if name in ("seq", "at") else str):
            raise ValueError(f"{name} is missing or of the wrong type")
    if checkpoint.format != FORMAT:
        raise ValueError(f"its format is {checkpoint.format!r}, not {FORMAT!r}")


def read(text: str, public_key: str = "") -> Checkpoint:
    """Parse and check the signature; with `public_key`, also that it is the right signer."""
    from cryptography.exceptions import InvalidSignature  # checkpoints are rare, starts are not
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        data: dict[str, Any] = wire.loads_object(text)
        checkpoint = Checkpoint(**data)
        _check_types(checkpoint, data)
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(checkpoint.public_key))
        signer.verify(bytes.fromhex(checkpoint.signature), checkpoint._signed())
    except InvalidSignature:
        raise LedgerBroken(
            "the checkpoint's signature is wrong", "get the checkpoint again from where it is kept"
        ) from None
    except (CallError, ValueError, TypeError, KeyError) as error:
        raise InvalidArgs(
            f"this is not a checkpoint: {error}", "give a file that `ledger checkpoint` wrote"
        ) from None
    if public_key and checkpoint.public_key != public_key:
        raise LedgerBroken(
            f"the checkpoint is signed by {checkpoint.public_key[:16]}…, not by {public_key[:16]}…",
            "give the public key that `toolgate ledger checkpoint` printed for this project",
        )
    return checkpoint
