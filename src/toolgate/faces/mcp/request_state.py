"""The state that a stateless client carries between a question and its answer: signed, bound, expiring.

It is no secret and no ticket. It says which question was put to whom about which request; whether an answer still
counts is decided by the desk, where a question is answered once.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.core.canonical import canonical, sha256
from toolgate.core.errors import NotAllowed
from toolgate.core.ports import Question
from toolgate.ledger.keys import Keys

_PURPOSE = "toolgate mcp request state 1"
_LONGEST = 4096


@dataclass(frozen=True)
class Claim:
    question: str
    digest: str


def request_hash(tool: str, args: Any) -> str:
    return sha256(canonical([tool, args]))


def seal(keys: Keys, question: Question, persona: str, request: str) -> str:
    body = orjson.dumps(
        {
            "key": keys.current, "question": question.id, "digest": question.digest, "persona": persona,
            "request": request, "expires": question.expires_at,
        }
    )  # fmt: skip
    return f"{base64.urlsafe_b64encode(body).decode()}.{_mac(keys, keys.current, body)}"


def unseal(keys: Keys, state: Any, persona: str, request: str, now: int) -> Claim:
    """What we sealed for this persona and this very request; anything else is refused."""
    body = _verified(keys, state)
    if body is None:
        raise NotAllowed("the requestState is not one that this gate made", "make the call again without it")
    if body["persona"] != persona or body["request"] != request:
        raise NotAllowed("the requestState belongs to another call", "make the call again without it")
    if body["expires"] <= now:
        raise NotAllowed("the requestState has expired", "make the call again without it")
    return Claim(body["question"], body["digest"])


def _verified(keys: Keys, state: Any) -> dict[str, Any] | None:
    if not isinstance(state, str) or len(state) > _LONGEST or not state.isascii():
        return None
    spelled, _, mac = state.partition(".")
    try:
        raw = base64.b64decode(spelled, b"-_", validate=True)
        body = orjson.loads(raw)
    except (binascii.Error, ValueError):
        return None
    version = body.get("key") if isinstance(body, dict) else None
    if type(version) is not int or version not in keys:
        return None
    return body if hmac.compare_digest(mac, _mac(keys, version, raw)) else None


def _mac(keys: Keys, version: int, body: bytes) -> str:
    """With a key derived from the ledger's, so that neither can be used for the other's purpose."""
    derived = bytes.fromhex(keys.mac(version, _PURPOSE))
    return hmac.new(derived, body, "sha256").hexdigest()
