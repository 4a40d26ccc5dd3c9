"""How rows are linked and sealed.

`hash` is SHA-256 over the row's columns, one a line, the previous row's hash last: anybody can check it.
`mac` is HMAC-SHA256 over that hash with a key the project does not hold: only the gate can make it.
No column can contain a line break (canonical JSON escapes them), so the lines say unambiguously which is which;
a row that breaks this is bad, whatever its hash.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest

from toolgate.core.errors import LedgerBroken
from toolgate.ledger.keys import Keys
from toolgate.storage.port import Head, Row
from toolgate.storage.schema import EMPTY_HASH

_LINES = "\n".join(["%s"] * 12)
_BREAKS = 11  # line breaks in a row's text: twelve lines


def row_text(row: Row) -> str:
    return _LINES % row[:12]


def row_hash(row: Row) -> str:
    return sha256(row_text(row).encode()).hexdigest()


def seal(row: Row, keys: Keys) -> Row:
    """The row with its hash and mac filled in."""
    content = row[:12]
    text = _LINES % content
    if text.count("\n") != _BREAKS:
        raise ValueError(f"a column of event {row.seq} has a line break")
    digest = sha256(text.encode()).hexdigest()
    return Row._make((*content, digest, mac_of(digest, keys.key(row.key))))


def mac_of(digest: str, key: bytes) -> str:
    return _hmac(digest.encode(), key)


def head_mac(seq: int, at: int, digest: str, key: bytes) -> str:
    """Sealed apart from the rows, so that an older row's mac cannot stand in for a cut-off head."""
    return _hmac(f"head\n{seq}\n{at}\n{digest}".encode(), key)


def _hmac(message: bytes, key: bytes) -> str:
    """HMAC-SHA256 in hex. Two plain hashes take half the time of `hmac.digest`, which sets itself up each time."""
    inner, outer = _pads(key)
    return sha256(outer + sha256(inner + message).digest()).hexdigest()


@lru_cache(maxsize=64)
def _pads(key: bytes) -> tuple[bytes, bytes]:
    """The key as RFC 2104 mixes it in before the message and before the inner hash."""
    block = (sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def make_head(row: Row, keys: Keys) -> Head:
    return Head(row.seq, row.at, row.key, row.hash, head_mac(row.seq, row.at, row.hash, keys.key(row.key)))


def fault_of(row: Row, seq: int, prev: str, keys: Keys | None) -> str:
    """What is wrong with the row that should be number `seq` after `prev`; empty if nothing is."""
    content = row[:12]
    text = _LINES % content
    if content[0] != seq or content[11] != prev or text.count("\n") != _BREAKS:
        return _misplaced(row, seq, prev)
    try:
        digest = sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return "a column is not valid text"
    if digest != row[12]:
        return "its content does not match its hash"
    if keys is None:
        return ""
    key = keys.versions.get(content[9])
    if key is None:
        return f"it is sealed with key version {row.key}, which is not in the key file"
    return "" if _same(mac_of(digest, key), row[13]) else "its seal does not match the key"


def _misplaced(row: Row, seq: int, prev: str) -> str:
    if row.seq != seq:
        return f"event {seq} is missing" if row.seq > seq else f"event {row.seq} stands where {seq} should"
    return "it does not link to the event before it" if row.prev != prev else "a column has a line break"


def _same(made: str, stored: str) -> bool:
    """A tampered seal may hold anything, and `compare_digest` takes no other text than ASCII."""
    return isinstance(stored, str) and stored.isascii() and compare_digest(made, stored)


def check_head(head: Head, keys: Keys) -> None:
    """Refuse a head that was not sealed by us: a cut tail, a forged end, the wrong key."""
    if head.seq == 0 and head.hash == EMPTY_HASH:
        return
    key = keys.find(head.key)
    if key is None:
        raise LedgerBroken(
            f"the ledger is sealed with key version {head.key}, which is not in {keys.source}",
            "restore the key file that belongs to this ledger",
        )
    if not _same(head_mac(head.seq, head.at, head.hash, key), head.mac):
        raise LedgerBroken(
            f"the ledger's head (event {head.seq}) is not sealed with the key in {keys.source}",
            "run `toolgate ledger verify`; if it is the wrong key, restore the one that belongs to this ledger",
        )
