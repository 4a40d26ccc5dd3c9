from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import toolgate
from toolgate.faces.mcp import listing
from toolgate.faces.mcp.listing import ListChanges
from toolgate.faces.mcp.server import McpServer, Options

from .clients import Raw, client, envelope, soon
from .conftest import CONFIG, World, _tools


async def test_pages_follow_each_other_and_hold_every_tool_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 4)
    raw = Raw(world.server)
    await raw.shake()
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await raw.say("tools/list", cursor))["result"]
        assert len(page["tools"]) <= 4
        names += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    seconds = listing.SECOND
    assert names == sorted(spec.name for spec in world.gate.tools("ada") if spec.name not in seconds)


@pytest.mark.parametrize("profile", ["minimal", "code", "full"])
async def test_profiles_choose_what_is_listed_and_permit_nothing(world: World, profile: str) -> None:
    server = McpServer(world.gate, Options(profile=profile))  # type: ignore[arg-type]
    names = server.listing.names("ada")
    assert "fs.read" in names
    assert ("code.diff" in names) == (profile != "minimal")
    assert ("code.blame" in names) == (profile == "full")
    assert ("t.look" in names) == (profile != "minimal"), "a project's own tools are always those it wants"
    assert "code.read" not in names, "fs.read does the same"
    raw = Raw(server)
    await raw.shake()
    assert (await raw.call("t.look"))["result"]["structuredContent"]["ok"]
    denied = await raw.call("ledger.undo", {"event": 1})
    assert denied["result"]["structuredContent"]["error"]["code"] == "not_allowed"


async def test_every_listed_tool_has_a_description_and_schemas_that_are_objects(world: World) -> None:
    import jsonschema

    tools, more = world.server.listing.page("ada", None, structured=True)
    assert more is None
    for tool in tools:
        assert tool["description"]
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


async def test_no_field_of_a_schema_has_a_title_that_only_says_its_name_again(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake()
    for tool in (await raw.say("tools/list"))["result"]["tools"]:
        for name, field in tool["inputSchema"].get("properties", {}).items():
            assert "title" not in field, (tool["name"], name)


async def test_a_changed_policy_is_told_to_every_kind_of_client(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(CONFIG))
    tools = _tools([], asyncio.Event(), asyncio.Event())
    async with toolgate.open(tmp_path, file, tools=tools) as gate:
        server = McpServer(gate)
        server.list_changes = ListChanges(server.listing, every=0.02)
        told = asyncio.Event()

        async def hear(message: object) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                told.set()

        raw = Raw(server)
        raw.connection.receive(
            {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen",
             "params": {"notifications": {"toolsListChanged": True}, "_meta": envelope()}}
        )  # fmt: skip
        assert (await raw.next())["method"] == "notifications/subscriptions/acknowledged"
        async with client(server, "stdio", "handshake", message_handler=hear):
            stricter = {**CONFIG, "personas": {"ada": {"phase": "observe", "deny": ["t.look"]}}}
            file.write_text(json.dumps(stricter))
            await soon(told.wait())
            changed = await raw.next()
            assert changed["method"] == "notifications/tools/list_changed"
            assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s"
            assert "t.look" not in server.listing.names("ada")
        await raw.connection.close()
        server.close()
