"""Check an export without toolgate: verify_by_hand.py EVENTS.jsonl [CHECKPOINT.json PUBLIC_KEY]"""

import hashlib
import json
import sys
from pathlib import Path

NAMES = "seq at kind call persona tool conversation ref claim key body prev"
hashes = {0: "0" * 64}
for number, line in enumerate(Path(sys.argv[1]).read_text("utf-8").rstrip("\n").split("\n"), 1):
    event = json.loads(line)
    lines = [str(event[name]) for name in NAMES.split(" ")]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    linked = event["seq"] == number and event["prev"] == hashes[number - 1]
    if not linked or any("\n" in text for text in lines) or digest != event["hash"]:
        sys.exit(f"event {number} is bad")
    hashes[number] = digest
print(f"{number} events form one chain, which ends in {digest}")
if len(sys.argv) == 4:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    claims = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    signature = bytes.fromhex(claims.pop("signature"))
    signed = json.dumps(claims, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(sys.argv[3])).verify(signature, signed)
    if hashes.get(claims["seq"]) != claims["hash"]:
        sys.exit(f"event {claims['seq']} is not the one that was signed")
    print(f"event {claims['seq']} is the one that was signed")
