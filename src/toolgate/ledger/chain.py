"""How rows are linked and sealed.

`hash` is SHA-256 over the row's columns, one a line, the previous row's hash last: anybody can check it.
`mac` is HMAC-SHA256 over that hash with a key the project does not hold: only the gate can make it.
No column can contain a line break (canonical JSON escapes them), so the lines say unambiguously which is which;
a row that breaks this is bad, whatever its hash.
"""

from __future__ import annotations

import hashlib
import hmac

from toolgate.core.errors import LedgerBroken
from toolgate.ledger.keys import Keys
from toolgate.storage.port import Head, Row
from toolgate.storage.schema import EMPTY_HASH

_MAC = 64
_BREAKS = 11  # line breaks in a row's text: twelve lines


def row_text(row: Row) -> str:
    return "\n".join(map(str, row[:12]))


def row_hash(row: Row) -> str:
    return hashlib.sha256(row_text(row).encode()).hexdigest()


def seal(row: Row, keys: Keys) -> Row:
    """The row with its hash and mac filled in."""
    text = (
        f"{row[0]}\n{row[1]}\n{row[2]}\n{row[3]}\n{row[4]}\n{row[5]}\n{row[6]}\n{row[7]}\n{row[8]}\n{row[9]}\n"
        f"{row[10]}\n{row[11]}"
    )
    if text.count("\n") != _BREAKS:
        raise ValueError(f"a column of event {row.seq} has a line break")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Row(*row[:12], digest, mac_of(digest, keys.key(row.key)))


def mac_of(digest: str, key: bytes) -> str:
    return hmac.digest(key, digest.encode(), "sha256").hex()


def head_mac(seq: int, at: int, digest: str, key: bytes) -> str:
    """Sealed apart from the rows, so that an older row's mac cannot stand in for a cut-off head."""
    return hmac.digest(key, f"head\n{seq}\n{at}\n{digest}".encode(), "sha256").hex()


def standing_mac(seq: int, standing: str, key: bytes) -> str:
    return hmac.digest(key, f"standing\n{seq}\n{standing}".encode(), "sha256").hex()


def make_head(row: Row, keys: Keys, standing: str) -> Head:
    """Two seals: where the journal ends, and what stands there (live calls, questions, grants, pauses)."""
    key = keys.key(row.key)
    mac = head_mac(row.seq, row.at, row.hash, key) + standing_mac(row.seq, standing, key)
    return Head(row.seq, row.at, row.key, row.hash, mac)


def fault_of(row: Row, seq: int, prev: str, keys: Keys | None) -> str:
    """What is wrong with the row that should be number `seq` after `prev`; empty if nothing is."""
    if row.seq != seq:
        return f"event {seq} is missing" if row.seq > seq else f"event {row.seq} stands where {seq} should"
    if row.prev != prev:
        return "it does not link to the event before it"
    text = row_text(row)
    if text.count("\n") != _BREAKS:
        return "a column has a line break"
    try:
        digest = hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return "a column is not valid text"
    if digest != row.hash:
        return "its content does not match its hash"
    if keys is None:
        return ""
    key = keys.find(row.key)
    if key is None:
        return f"it is sealed with key version {row.key}, which is not in the key file"
    return "" if hmac.compare_digest(mac_of(digest, key), row.mac) else "its seal does not match the key"


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
    if not hmac.compare_digest(head_mac(head.seq, head.at, head.hash, key), head.mac[:_MAC]):
        raise LedgerBroken(
            f"the ledger's head (event {head.seq}) is not sealed with the key in {keys.source}",
            "run `toolgate ledger verify`; if it is the wrong key, restore the one that belongs to this ledger",
        )


def check_standing(head: Head, keys: Keys, standing: str) -> None:
    """Refuse tables that are not what stood at the head: a used approval or a revoked grant put back, a pause
    taken out. Rows that are missing cannot speak for themselves."""
    key = keys.find(head.key)
    if head.seq == 0 and head.hash == EMPTY_HASH and not standing:
        return
    if key is None or not hmac.compare_digest(standing_mac(head.seq, standing, key), head.mac[_MAC:]):
        raise LedgerBroken(
            f"the tables are not what stood at event {head.seq}",
            "run `toolgate ledger verify`; somebody changed the database",
        )
