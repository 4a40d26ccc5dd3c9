"""Idempotency: a repeated key gives back what the first call gave, and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.core.errors import CallError, Conflict, LedgerBroken, NotFound, UnknownOutcome
from toolgate.core.records import dataclass
from toolgate.core.result import Meta, Result
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.chain import fault_of
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    from toolgate.gate.flow import Flow, Services

T = TypeVar("T")


async def _look(ledger: Ledger, scope: str, read: Callable[[View], T]) -> T:
    """See one claim without taking it."""
    work = Work(read, durable=False)
    work.scopes = (scope,)
    return await ledger.do(work)


def live_claim(view: View, scope: str) -> tuple[Any, ...] | None:
    claim = view.claims.get(scope)
    return claim if claim is not None and claim[5] > view.now else None


def objection(claim: tuple[Any, ...], request: str, key: str) -> CallError | None:
    """Why this key cannot be used for this call; None if it may run (again) or has a result."""
    _, call, first, state, _, _ = claim
    if first != request:
        return Conflict(
            f"the key {key!r} was used for a different call ({call})", "use a new key for a new call"
        )
    if state == "started":
        return Conflict(
            f"the first call with the key {key!r} is still running ({call})", "wait for it, then repeat"
        )
    if state == "unknown":
        return UnknownOutcome(
            f"whether the call with the key {key!r} happened is unknown ({call}); it is never run again by itself",
            f"find out, then `toolgate ledger resolve {call} happened|not`",
        )
    return None


async def stored_result(services: Services, flow: Flow) -> bool:
    """Before a human is bothered: is there an answer already?"""
    if not flow.claim or flow.call is None:
        return False
    scope = flow.claim
    claim = await _look(services.ledger, scope, lambda view: live_claim(view, scope))
    if claim is None or await services.ledger.look(lambda state, now: bool(state.paused)):
        return False  # under a pause `begin` decides
    problem = objection(claim, flow.call.request, flow.key or "")
    if problem is not None:
        raise problem
    if claim[3] not in ("committed", "happened"):
        return False
    flow.result = await replay(services, flow, claim)
    return True


async def _answered(services: Services, flow: Flow, row: Row) -> Mapping[str, Any]:
    try:
        return await whole_body(services.ledger.backend, row)
    except NotFound as error:
        raise NotFound(
            f"the call with the key {flow.key!r} has run ({row.call}), and its result is no longer kept: {error.message}",
            "do not repeat it; look at what it did",
        ) from None


async def replay(services: Services, flow: Flow, claim: tuple[Any, ...]) -> Result:
    rows = await services.ledger.backend.rows(Filter(after=claim[4] - 1, before=claim[4] + 1))
    ledger = services.ledger
    if not rows or rows[0].claim != flow.claim or fault_of(rows[0], claim[4], rows[0].prev, ledger.keys):
        raise LedgerBroken(
            f"the stored result under the key {flow.key!r} is not what the journal says",
            "run `toolgate ledger verify`; somebody changed the database",
        )
    body = await _answered(services, flow, rows[0])
    assert flow.tool is not None
    meta = Meta(
        claim[1],
        claim[4],
        round(flow.duration_us / 1000, 3),
        body.get("tokens", 0),
        True,
        body.get("truncated", False),
    )
    kept = json.loads(body["result_json"]) if "result_json" in body else body.get("result")
    if kept is None and body.get(
        "reconciled"
    ):  # settled after a crash: what it returned is lost, not that it ran
        kept = {"reconciled": body["reconciled"]}
    # a value may have come into the vault since
    return Result(True, flow.tool.name, services.redactor.redact(kept), None, meta)


@dataclass(frozen=True, slots=True)
class Claimed:
    call: str
    state: str
    """`started`, `committed`, `failed`, `unknown` or, as a human said afterwards, `happened`."""
    live: bool
    """Whether a repeated call still gets its stored result."""


async def claim_of(ledger: Ledger, persona: str, key: str) -> Claimed | None:
    """The last call that a persona made with this key, however long ago: the projection forgets claims after 48 hours, the
    journal does not."""
    scope = f"key/{persona}/{key}"

    def decide(view: View) -> Claimed | None:
        found = view.claims.get(scope)
        return None if found is None else Claimed(found[1], found[3], found[5] > view.now)

    return await _look(ledger, scope, decide)
