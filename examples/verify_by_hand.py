"""Check an export without toolgate: verify_by_hand.py EVENTS.jsonl [CHECKPOINT.json PUBLIC_KEY]"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

NAMES = [
    "seq",
    "at",
    "kind",
    "call",
    "persona",
    "tool",
    "conversation",
    "ref",
    "claim",
    "key",
    "body",
    "prev",
]
NUMBERS = ("seq", "at", "key")
CHECKPOINT = {"seq", "hash", "at", "project", "public_key", "signature", "format"}


def strict(text: str) -> dict[str, Any]:
    """JSON that every program reads alike: no key twice, no NaN, nothing after it."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key appears twice")
        return dict(pairs)

    found = json.loads(text, object_pairs_hook=once, parse_constant=lambda name: float("not a number"))
    if type(found) is not dict:
        raise ValueError("it is not an object")
    return found


def event_of(line: str) -> dict[str, Any]:
    event = strict(line)
    if set(event) != {*NAMES, "hash", "mac"}:
        raise ValueError("it has other fields than an event")
    if any(type(event[name]) is not (int if name in NUMBERS else str) for name in event):
        raise ValueError("a field is of the wrong type")
    spelled = [
        json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=e) for e in (False, True)
    ]
    if line not in spelled:
        raise ValueError("it is not canonical JSON")
    strict(event["body"])
    return event


hashes: dict[int, str] = {}
number = first = 0
for number, line in enumerate(Path(sys.argv[1]).read_bytes().decode().removesuffix("\n").split("\n"), 1):
    try:
        event = event_of(line)
    except ValueError as error:
        sys.exit(f"event {number} is bad: {error}")
    if number == 1:
        first = event["seq"]  # not 1 where older events are in an archive, which ends in this hash
        hashes[first - 1] = "0" * 64 if first == 1 else event["prev"]
    lines = [str(event[name]) for name in NAMES]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    linked = event["seq"] == first + number - 1 and event["prev"] == hashes[event["seq"] - 1]
    if not linked or any("\n" in text for text in lines) or digest != event["hash"]:
        sys.exit(f"event {first + number - 1} is bad")
    hashes[event["seq"]] = digest
last = first + number - 1
print(f"{number} events form one chain, which ends in {digest}")
if first != 1:
    print(f"it begins with event {first}: check that an archive ends in {hashes[first - 1]}")
if len(sys.argv) == 4:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    claims = strict(Path(sys.argv[2]).read_text("utf-8"))
    if (
        set(claims) != CHECKPOINT
        or claims["format"] != "toolgate-checkpoint-1"
        or type(claims["seq"]) is not int
    ):
        sys.exit("this is not a checkpoint")
    signature = bytes.fromhex(claims.pop("signature"))
    signed = json.dumps(claims, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(sys.argv[3])).verify(signature, signed)
    if hashes.get(claims["seq"]) != claims["hash"]:
        sys.exit(f"event {claims['seq']} is not the one that was signed")
    if claims["seq"] < last:
        print(f"events {claims['seq'] + 1} to {last} came after it and are not signed")
    print(f"event {claims['seq']} is the one that was signed")
