"""Changing the vault through a gate: the value goes into the vault, its name into the ledger."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolgate.core.errors import Unavailable
from toolgate.core.event import Vaulted
from toolgate.ledger.ledger import Work
from toolgate.secrets.vault import Vault

if TYPE_CHECKING:
    from toolgate.facade import Gate


async def keep(
    gate: Gate, name: str, value: str | bytes, hosts: tuple[str, ...], reveal: bool, by: str, channel: str
) -> bool:
    """First the vault, so that the value is masked before anything else can happen."""
    vault = vault_of(gate)
    replaced = await asyncio.to_thread(vault.set, name, value, hosts, reveal)
    kept = vault.need(name)
    op = "replace" if replaced else "set"
    event = Vaulted(secret=name, op=op, by=by, channel=channel, hosts=list(kept.hosts), reveal=kept.reveal)
    await _record(gate, event)
    return replaced


async def remove(gate: Gate, name: str, by: str, channel: str) -> None:
    await asyncio.to_thread(vault_of(gate).remove, name)
    await _record(gate, Vaulted(secret=name, op="remove", by=by, channel=channel))


def vault_of(gate: Gate) -> Vault:
    if gate.vault is None:
        raise Unavailable(
            "this gate has no vault: its project is not trusted, or kept in memory only", "`toolgate init`"
        )
    return gate.vault


async def _record(gate: Gate, event: Vaulted) -> None:
    await gate.services.ledger.do(Work(lambda view: view.emit(event)))
