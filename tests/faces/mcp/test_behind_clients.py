"""The official SDK's client in front, its server behind: over every transport and in both eras, with nothing in between but the gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from upstream.world import sdk

from .behind_world import ONE, behind
from .clients import MODES, TRANSPORTS, User, client, soon


async def _model(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    content = params.messages[0].content
    assert isinstance(content, types.TextContent)
    answer = types.TextContent(type="text", text=f"echo of {content.text}")
    return types.CreateMessageResult(role="assistant", content=answer, model="m")


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str | None, Any]] = []
        self.updated = asyncio.Event()

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard.append((params.level, params.logger, params.data))

    async def message(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification) and str(message.params.uri) == ONE:
            self.updated.set()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", MODES)
async def test_a_real_client_talks_with_a_real_server(tmp_path: Path, transport: str, era: str) -> None:
    ear, user = Ear(), User([{"word": "please"}])
    stateless = era == "stateless"
    more: Any = {"log_level": "warning"} if stateless else {}
    async with (
        behind(tmp_path, spec=sdk(tmp_path, sampling="allow")) as world,
        client(
            world.server, transport, era, sampling_callback=_model, elicitation_callback=user,
            logging_callback=ear.log, message_handler=ear.message, **more,
        ) as connected,
    ):  # fmt: skip
        if not stateless:
            await connected.session.send_request(
                types.SetLevelRequest(params=types.SetLevelRequestParams(level="warning")), types.EmptyResult
            )
        assert await _text(connected, "up.sample", text="hi") == "echo of hi"
        assert "please" in await _text(connected, "up.ask")
        assert user.shown[0].startswith("The server up asks")
        assert await _text(connected, "up.log", text="it") == "logged"
        assert ear.heard == [("warning", "up/a", "it begins"), ("warning", "up/a", "it ends")]
        async with _subscribed(connected, ear, stateless):
            assert await _text(connected, "up.touch") == "touched"
            await soon(ear.updated.wait())
        assert (await world.rows("up.sampling"))[-1] == "committed"
        assert await world.gate.approvals() == []


async def _text(connected: Client, tool: str, **args: str) -> str:
    result = await connected.call_tool(tool, args)
    assert isinstance(result, types.CallToolResult)
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


@asynccontextmanager
async def _subscribed(connected: Client, ear: Ear, stateless: bool) -> AsyncIterator[None]:
    if stateless:
        async with connected.listen(resource_subscriptions=[ONE]) as stream:
            hearing = asyncio.create_task(_heard(stream, ear))
            yield
            await soon(hearing)
        return
    subscribe = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=ONE))
    await connected.session.send_request(subscribe, types.EmptyResult)
    yield
    leave = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=ONE))
    await connected.session.send_request(leave, types.EmptyResult)


async def _heard(stream: Any, ear: Ear) -> None:
    async for event in stream:
        assert event.uri == ONE
        ear.updated.set()
        return
