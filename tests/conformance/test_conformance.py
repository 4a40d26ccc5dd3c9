"""The official conformance suite: what toolgate passes by itself, as a client, and with a server behind it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from toolgate.kits.web.tokens import Tokens

from .gateway import as_client
from .page import ALONE, AS_CLIENT, page
from .standing import Named, fixtures, gate_with, site
from .suite import HANDSHAKE, STATELESS, Found, Outcome, of_client, of_server

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
AT_ONCE = 3
pytestmark = pytest.mark.node
Eras = dict[str, Found]


async def test_the_official_suite_passes_directly_through_the_gateway_and_as_a_client(tmp_path: Path) -> None:
    """One run for all, because programs that start cost more than scenarios; the page shows what was found."""
    async with (
        fixtures() as url,
        gate_with(_made(tmp_path / "project"), {"fixture": {"url": url, "sampling": "allow"}}) as gate,
        site(gate, Tokens(tmp_path / "tokens" / "t.json"), Named) as ours,
    ):
        direct = await _both(url, tmp_path / "direct")
        through = await _both(ours, tmp_path / "through")
        # some scenarios wait for half a second only: on a busy machine those have a second try, alone
        for version, name in _lacking(direct, through):
            through[version] |= await of_server(ours, version, tmp_path / f"{version}-{name}", name)
    clients = await _clients(tmp_path / "clients")
    assert {key: through[key[0]][key[1]].failures for key in _lacking(direct, through)} == {}
    assert all(set(names) <= through[version].keys() for version, names in ALONE.items())
    assert {key: one.failures for key, one in clients.items() if not one.ok} == {}
    told = page(direct, through, clients)
    if os.environ.get("TOOLGATE_UPDATE_GOLDEN"):
        PAGE.write_text(told)
    assert PAGE.read_text() == told


def _lacking(direct: Eras, through: Eras) -> list[tuple[str, str]]:
    """What should pass through the gateway and does not: all that needs no fixtures, and all that passes directly."""
    return [
        (version, name)
        for version, found in through.items()
        for name, outcome in found.items()
        if not outcome.ok and (name in ALONE[version] or direct[version][name].ok)
    ]


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True)
    return directory


async def _both(url: str, place: Path) -> Eras:
    _made(place)
    found = await asyncio.gather(*(of_server(url, era, place / era) for era in (HANDSHAKE, STATELESS)))
    return dict(zip((HANDSHAKE, STATELESS), found, strict=True))


async def _clients(out: Path) -> dict[tuple[str, str], Outcome]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(command: str, scenario: str, version: str) -> Outcome:
        async with room:
            return await of_client(command, scenario, version, _made(out / f"{scenario}-{version}"))

    with tempfile.TemporaryDirectory(prefix="tg") as short:
        async with as_client(Path(short)) as command:
            found = await asyncio.gather(*(one(command, *which) for which in AS_CLIENT))
    return dict(zip(AS_CLIENT, found, strict=True))
