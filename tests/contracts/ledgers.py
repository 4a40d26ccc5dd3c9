"""Ledgers on any database, and a small story that leaves a row in every table."""

from __future__ import annotations

import asyncio
from typing import Any

from gates import KEYS
from toolgate.core.clock import Clock
from toolgate.core.event import (
    Approved,
    Asked,
    Committed,
    Event,
    Granted,
    Noted,
    Paused,
    Started,
    Unknown,
)
from toolgate.ledger.keys import Keys
from toolgate.ledger.ledger import Ledger, View, Work
from toolgate.storage.port import Row

from .databases import Database

LATER = 4_000_000_000_000_000
"""Expires in 2096: none of these tests waits for it."""
PATIENCE = 20.0
TOLD = 11
"""How many events `tell` tells."""


class Opener:
    def __init__(self) -> None:
        self._open: list[Ledger] = []

    async def __call__(self, database: Database, keys: Keys = KEYS, clock: Clock | None = None) -> Ledger:
        """Another ledger on the database, as another process would open it; with a clock, only that one counts."""
        ledger = Ledger(database.make(server_clock=clock is None), keys, clock)
        await soon(ledger.open())
        self._open.append(ledger)
        return ledger

    async def close(self) -> None:
        while self._open:
            await soon(self._open.pop().close())


async def soon(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, PATIENCE)


def writing(*events: Event, durable: bool = True) -> Work[None]:
    def decide(view: View) -> None:
        for event in events:
            view.emit(event)

    return Work(decide, durable=durable)


async def write(ledger: Ledger, *events: Event, durable: bool = True) -> list[Row]:
    work = writing(*events, durable=durable)
    await soon(ledger.do(work))
    return work.rows


def raising(error: Exception) -> Work[None]:
    def decide(view: View) -> None:
        view.emit(note("never"))
        raise error

    return Work(decide)


def note(rationale: str, **more: Any) -> Noted:
    return Noted(type="observation", rationale=rationale, **more)


def asked(ref: str = "q_1", digest: str = "sha256:d") -> Asked:
    return Asked(
        call="c_q", persona="ada", tool="t.act", ref=ref, digest=digest, definition="sha256:f", args={"x": "1"},
        effects={"reads": [], "writes": ["outside"]}, rule="rule:r", rights="sha256:r", reason="because", expires=LATER,
    )  # fmt: skip


def approved(ref: str = "q_1", digest: str = "sha256:d") -> Approved:
    return Approved(
        persona="ada", tool="t.act", ref=ref, digest=digest, by="eve", channel="test", expires=LATER
    )


def started(call: str, **more: Any) -> Started:
    given = {"persona": "ada", "tool": "t.look", "owner": "o_me", "digest": "sha256:c", "args": {}} | more
    return Started(call=call, definition="sha256:f", rule="rule:r", decision="allow", **given)


async def tell(ledger: Ledger) -> None:
    """Something of everything: each table holds a row afterwards, and the journal some more."""
    granted = Granted(
        persona="ada", tool="t.act", ref="g_1", by="eve", channel="test", expires=LATER, definition="sha256:f",
        rights="sha256:r",
    )  # fmt: skip
    for event in (
        note("first", persona="ada", conversation="talk"),
        asked(),
        approved(),
        granted,
        Paused(persona="bob", by="eve", reason="holiday"),
        started("c_done", claim="ada/key"),
        Committed(call="c_done", persona="ada", tool="t.look", claim="ada/key", summary="done"),
        started("c_lost"),
        Unknown(call="c_lost", persona="ada", tool="t.look", code="timeout", error="nobody knows"),
        started("c_live"),
        note("last"),
    ):
        await write(ledger, event)
