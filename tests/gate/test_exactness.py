"""The exact call: nothing inside the arguments, however deep, may change between the question and the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from gates import soon
from toolgate import MountPath, Tool, tool
from toolgate.storage.port import Filter

from .conftest import Open


class Login(BaseModel):
    user: str
    pin: SecretStr


class Edit(BaseModel):
    path: MountPath
    more: list[MountPath] = []


def keeping(ran: list[Any]) -> list[Tool]:
    @tool("t.plain", writes=["outside"])
    async def plain(pin: SecretStr) -> None:
        """Use one."""
        ran.append(pin.get_secret_value())

    @tool("t.listed", writes=["outside"])
    async def listed(pins: list[SecretStr], by_name: dict[str, SecretStr] = {}) -> None:  # noqa: B006
        """Use several."""
        ran.append([pin.get_secret_value() for pin in (*pins, *by_name.values())])

    @tool("t.nested", writes=["outside"])
    async def nested(login: Login, others: list[Login] = []) -> None:  # noqa: B006
        """Use nested ones."""
        ran.append([one.pin.get_secret_value() for one in (login, *others)])

    @tool("t.edit", reads=["project"], writes=["project"])
    async def edit(edits: dict[str, Edit]) -> None:
        """Touch files named deep inside."""
        ran.append(edits)

    return [plain, listed, nested, edit]


PAIRS: list[tuple[str, Any, Any]] = [
    ("t.plain", {"pin": "one"}, {"pin": "two"}),
    ("t.listed", {"pins": ["one"]}, {"pins": ["two"]}),
    ("t.listed", {"pins": [], "by_name": {"a": "one"}}, {"pins": [], "by_name": {"a": "two"}}),
    ("t.nested", {"login": {"user": "u", "pin": "one"}}, {"login": {"user": "u", "pin": "two"}}),
    (
        "t.nested",
        {"login": {"user": "u", "pin": "x"}, "others": [{"user": "v", "pin": "one"}]},
        {"login": {"user": "u", "pin": "x"}, "others": [{"user": "v", "pin": "two"}]},
    ),
]


@pytest.mark.parametrize(("name", "seen", "other"), PAIRS)
async def test_an_approval_is_for_the_secret_it_was_given_for_and_no_row_holds_it(
    name: str, seen: Any, other: Any, opened: Open
) -> None:
    ran: list[Any] = []
    async with opened("ask", keeping(ran)) as gate:
        pending = await gate.call(name, seen, wait=False)
        await gate.answer(pending.data["question"], "approve")
        refused = await gate.call(name, other, wait=False)
        assert refused.error is not None
        assert refused.error.code == "pending"
        assert ran == []
        assert (await gate.call(name, seen, wait=False)).ok
        assert len(ran) == 1
        rows = await gate.events(Filter())
        assert not [row for row in rows if '"one"' in row.body or '"two"' in row.body]


@pytest.mark.parametrize("path", [".env", "keys/id_rsa", ".toolgate/ledger.db", "toolgate.yaml"])
@pytest.mark.parametrize("more", [False, True])
async def test_a_blocked_path_deep_inside_the_arguments_is_seen(path: str, more: bool, opened: Open) -> None:
    ran: list[Any] = []
    edit = {"path": "fine.txt", "more": [path]} if more else {"path": path}
    async with opened("allow", keeping(ran)) as gate:
        result = await gate.call("t.edit", {"edits": {"a": edit}})
        assert result.error is not None
        assert result.error.code == "blocked_path", result
        assert (await gate.call("t.edit", {"edits": {"a": {"path": "fine.txt"}}})).ok
    assert len(ran) == 1


async def test_a_tool_that_is_asked_what_happened_hears_the_real_arguments(opened: Open) -> None:
    heard: list[str] = []

    def reconcile(token: str) -> bool:
        heard.append(token)
        return False

    @tool("t.slow", writes=["outside"], reconcile=reconcile, timeout=0.2)
    async def slow(token: str) -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return token

    async with opened("allow", [slow]) as gate:
        await soon(gate.call("t.slow", {"token": "real"}))
        assert heard == ["real"]
        assert not [row for row in await gate.events(Filter()) if '"real"' in row.body]
