"""The state that a stateless client carries between a question and its answer: signed, bound, expiring.

It is no secret and no ticket. It says which question was put to whom about which request; whether an answer still
counts is decided by the desk, where a question is answered once.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.core.canonical import canonical, sha256
from toolgate.core.errors import NotAllowed
from toolgate.core.ports import Question
from toolgate.facade import Gate

_PURPOSE = "toolgate mcp request state 1"
_LONGEST_STATE = 4096
_VERSION = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class RequestState:
    question: str
    digest: str


def request_hash(tool: str, args: Any) -> str:
    return sha256(canonical([tool, args]))


def seal(gate: Gate, question: Question, persona: str, request: str) -> str:
    body = orjson.dumps(
        {
            "question": question.id, "digest": question.digest, "persona": persona, "request": request,
            "expires": question.expires_at,
        }
    )  # fmt: skip
    version, mac = gate.mac(_PURPOSE, body)
    return f"{base64.urlsafe_b64encode(body).decode()}.{version}.{mac}"


def unseal(gate: Gate, state: Any, persona: str, request: str) -> RequestState:
    """What we sealed for this persona and this very request; anything else is refused."""
    body = _verified(gate, state)
    if body is None:
        raise NotAllowed("the requestState is not one that this gate made", "make the call again without it")
    if body["persona"] != persona or body["request"] != request:
        raise NotAllowed("the requestState belongs to another call", "make the call again without it")
    if body["expires"] <= gate.now:
        raise NotAllowed("the requestState has expired", "make the call again without it")
    return RequestState(body["question"], body["digest"])


def _verified(gate: Gate, state: Any) -> dict[str, Any] | None:
    if not isinstance(state, str) or len(state) > _LONGEST_STATE or not state.isascii():
        return None
    spelled, _, sealed = state.partition(".")
    version, _, mac = sealed.partition(".")
    if not _VERSION.fullmatch(version):
        return None
    try:
        raw = base64.b64decode(spelled, b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    known = gate.mac(_PURPOSE, raw, int(version))[1]
    if not known or not hmac.compare_digest(mac, known):
        return None
    body: dict[str, Any] = orjson.loads(raw)
    return body
