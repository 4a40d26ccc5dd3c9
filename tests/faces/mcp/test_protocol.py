"""The protocol core against clients that do not keep to the protocol."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolgate
from toolgate.faces.mcp import greeting, jsonrpc, protocol
from toolgate.faces.mcp.protocol import CAPABILITIES_KEY, VERSION_KEY
from toolgate.faces.mcp.server import McpServer

from .clients import Raw, envelope, soon
from .conftest import CONFIG, World, _tools


@pytest.mark.parametrize(
    ("message", "code", "ident"),
    [
        ([], -32600, None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], -32600, None),
        (7, -32600, None),
        (None, -32600, None),
        ({"id": 1, "method": "ping"}, -32600, 1),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600, 1),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, -32601, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "notifications/initialized"}, -32601, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}, -32601, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 3}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t.look", "arguments": []}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "%%"}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": 1}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": 1}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}}, -32002, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "x"}}, -32602, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}, -32600, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {VERSION_KEY: "2026-07-28"}}}, -32600, 1),
    ],
)  # fmt: skip
async def test_a_wrong_message_gets_its_error_and_the_connection_lives_on(
    world: World, message: Any, code: int, ident: Any
) -> None:
    raw = Raw(world.server)
    await raw.shake()
    raw.connection.receive(message)
    answer = await raw.next()
    assert (answer["error"]["code"], answer["id"]) == (code, ident)
    assert (await raw.say("ping"))["result"] == {}
    assert world.ran == []


@pytest.mark.parametrize("raw", [b"{", b'{"a": NaN}', b"\xff\xfe", b'"\\ud800"', b"[" * 5000, b"", b"nul"])
def test_what_is_no_json_is_a_parse_error(raw: bytes) -> None:
    with pytest.raises(jsonrpc.RpcError) as caught:
        jsonrpc.read(raw)
    assert caught.value.code == jsonrpc.PARSE_ERROR


async def test_nothing_is_served_before_the_handshake_but_ping(world: World) -> None:
    raw = Raw(world.server)
    assert (await raw.say("ping"))["result"] == {}
    assert (await raw.call("t.look"))["error"]["code"] == -32600
    raw.connection.receive({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "t.look"}})
    assert (await raw.shake())["result"]["protocolVersion"] == "2025-11-25"
    assert world.ran == []


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [(version, version) for version in greeting.HANDSHAKE]
    + [("2026-07-28", "2025-11-25"), ("1999-01-01", "2025-11-25")],
)
async def test_the_handshake_agrees_on_a_version_that_both_know(
    world: World, asked: str, agreed: str
) -> None:
    raw = Raw(world.server)
    assert (await raw.shake(version=asked))["result"]["protocolVersion"] == agreed
    assert (await raw.call("t.look", {"x": "1"}))["result"]["structuredContent"]["ok"]


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({VERSION_KEY: "2026-07-28"}, -32602),
        ({VERSION_KEY: 7, CAPABILITIES_KEY: {}}, -32602),
        ({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []}, -32602),
        ({VERSION_KEY: "2031-01-01", CAPABILITIES_KEY: {}}, -32022),
        ({VERSION_KEY: "2025-11-25", CAPABILITIES_KEY: {}}, -32022),
    ],
)
async def test_a_broken_envelope_runs_nothing(world: World, meta: Any, code: int) -> None:
    raw = Raw(world.server)
    answer = await raw.say("tools/call", {"name": "t.look", "arguments": {}, "_meta": meta})
    assert answer["error"]["code"] == code
    assert world.ran == []
    assert (await raw.say("server/discover", {"_meta": envelope()}))["result"]["supportedVersions"] == [
        "2026-07-28"
    ]
    assert (await raw.shake())["error"]["code"] == -32022
    assert (await raw.call("t.look"))["error"]["code"] == -32602


async def test_an_id_in_use_is_refused_and_its_call_goes_on(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake()
    raw.connection.receive({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t.slow"}})
    await soon(world.started.wait())
    assert (await raw.say("ping", ident=5))["error"]["code"] == -32600
    world.go.set()
    assert (await raw.next())["result"]["structuredContent"]["data"] == "done"
    assert (await raw.say("ping", ident=5))["result"] == {}


async def test_a_cancelled_call_stops_is_recorded_and_gets_no_answer(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake()
    raw.connection.receive({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t.slow"}})
    await soon(world.started.wait())
    task = raw.connection.running[5]
    for wrong in (None, {}, [5], "5", 6):
        raw.connection.receive(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wrong}}
        )
    raw.connection.receive(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    )
    await soon(asyncio.wait({task}))
    assert (await raw.say("ping"))["id"] == 1
    assert (world.ran, raw.connection.running) == (["slow cancelled"], {})
    assert (await world.gate.events())[0].kind == "failed"


async def test_a_call_whose_question_is_put_off_as_it_is_cancelled_gets_no_answer(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake({"elicitation": {}})
    raw.connection.receive({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t.act"}})
    form, task = await raw.next(), raw.connection.running[5]
    raw.connection.receive({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "cancel"}})
    raw.connection.receive(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    )
    await soon(asyncio.wait({task}))
    while (heard := await raw.say("ping", ident="p")).get("id") != "p":
        assert heard["method"] == "notifications/cancelled", "the form is withdrawn, and nothing else is said"
    assert (world.ran, raw.connection.running) == ([], {})
    assert len(await world.gate.approvals()) == 1


@pytest.mark.parametrize(
    ("tool", "args", "way"),
    [
        ("fs.delete", {"path": "hello.py"}, "`tools.list` shows what may be called"),
        ("code.read", {"path": ".tx/config"}, "the owner can add `.tx` to `dotfiles`"),
        ("code.read", {"path": ".env"}, "the owner can add `.env` to `unblock`"),
    ],
)
async def test_a_refused_agent_is_told_what_it_can_do_and_what_is_for_a_human(
    world: World, tool: str, args: dict[str, str], way: str
) -> None:
    raw = Raw(world.server)
    await raw.shake()
    refused = (await raw.call(tool, args))["result"]
    assert refused["isError"]
    (content,) = refused["content"]
    assert way in content["text"]
    call = refused["structuredContent"]["meta"]["call_id"]
    assert f"a human can see why with `toolgate policy explain {call}`" in content["text"]


async def test_too_many_requests_at_once_are_refused_not_queued(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "MOST_AT_ONCE", 2)
    raw = Raw(world.server)
    await raw.shake()
    for ident in range(3):
        raw.connection.receive(
            {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": {"name": "t.slow"}}
        )
    assert (await raw.next())["error"]["code"] == jsonrpc.REFUSED
    await raw.connection.close()
    assert raw.connection.running == {}


async def test_a_client_that_leaves_while_its_user_thinks_leaves_an_open_question(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake({"elicitation": {}})
    raw.connection.receive({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t.act"}})
    form = await raw.next()
    assert form["method"] == "elicitation/create"
    await raw.connection.close(patience=5)
    assert (await raw.next())["result"]["structuredContent"]["error"]["code"] == "pending"
    assert (len(await world.gate.approvals()), world.ran) == (1, [])


async def test_an_answer_to_a_form_that_was_never_shown_approves_nothing(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake({"elicitation": {}})
    raw.connection.receive({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t.act"}})
    form = await raw.next()
    answer = {"action": "accept", "content": {"answer": "approve"}}
    for ident in ("toolgate-99", 1, "q"):
        raw.connection.receive({"jsonrpc": "2.0", "id": ident, "result": answer})
    other = Raw(world.server)
    await other.shake({"elicitation": {}})
    other.connection.receive({"jsonrpc": "2.0", "id": form["id"], "result": answer})
    assert (await raw.say("ping"))["result"] == {}
    assert world.ran == []
    raw.connection.receive(
        {"jsonrpc": "2.0", "id": form["id"], "error": {"code": -1, "message": "no forms here"}}
    )
    assert (await raw.next())["result"]["structuredContent"]["error"]["code"] == "pending"


async def test_a_client_that_only_opens_addresses_is_not_shown_a_form(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake({"elicitation": {"url": {}}})
    assert (await raw.call("t.act"))["result"]["structuredContent"]["error"]["code"] == "pending"


async def test_a_gate_may_take_no_answers_from_clients(tmp_path: Path) -> None:
    ran: list[str] = []
    tools = _tools(ran, asyncio.Event(), asyncio.Event())
    async with toolgate.open(tmp_path, CONFIG | {"consent": {"mcp": False}}, tools=tools) as gate:
        raw = Raw(McpServer(gate))
        await raw.shake({"elicitation": {}})
        assert (await raw.call("t.act"))["result"]["structuredContent"]["error"]["code"] == "pending"
        new = Raw(McpServer(gate))
        answer = {"requestState": "x", "inputResponses": {}, "_meta": envelope({"elicitation": {}})}
        refused = await new.call("t.act", {}, **answer)
        assert refused["result"]["structuredContent"]["error"]["code"] == "not_allowed"
        asked = await new.call("t.act", {}, _meta=envelope({"elicitation": {}}))
        assert asked["result"]["structuredContent"]["error"]["code"] == "pending"
    assert ran == []


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_method = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
     "prompts/list", "prompts/get", "server/discover", "notifications/cancelled", "x", ""]
)  # fmt: skip
_params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["t.look", "t.act", "tools.list", "review_file", "zz"]) | _json,
        "arguments": st.fixed_dictionaries({}, optional={"x": _json, "path": _json}) | _json,
        "_meta": st.just(envelope()) | st.just(envelope({"elicitation": {}})) | _json,
        "protocolVersion": st.just("2025-11-25") | _json,
        "capabilities": st.just({}) | _json,
        "cursor": _json,
        "uri": st.just("toolgate://ledger") | st.just("toolgate://files/project/x") | _json,
        "requestState": _json,
        "inputResponses": _json,
        "requestId": _json,
    },
)
_message = _json | st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={"id": st.integers(0, 3) | _json, "method": _method | _json, "params": _params | _json, "result": _json, "error": _json},
)  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.lists(_message, min_size=1, max_size=8), shaken=st.booleans())
def test_whatever_comes_in_only_json_rpc_goes_out(
    messages: list[Any], shaken: bool, tmp_path_factory: Any
) -> None:
    asyncio.run(_feed(messages, shaken, tmp_path_factory.mktemp("fed")))


async def _feed(messages: list[Any], shaken: bool, root: Any) -> None:
    ran: list[str] = []
    tools = _tools(ran, asyncio.Event(), asyncio.Event())
    async with toolgate.open(root, CONFIG, "memory", tools=tools) as gate:
        server = McpServer(gate)
        raw = Raw(server)
        if shaken:
            await raw.shake()
        for message in messages:
            raw.connection.receive(json.loads(json.dumps(message)))
        await soon(raw.connection.close(patience=5))
        while not raw.sent.empty():
            answer = raw.sent.get_nowait()
            assert answer["jsonrpc"] == "2.0"
            assert ("result" in answer) + ("error" in answer) + ("method" in answer) == 1
            if "error" in answer:
                assert isinstance(answer["error"]["code"], int)
                assert answer["error"]["code"] != jsonrpc.INTERNAL_ERROR
                assert isinstance(answer["error"]["message"], str)
        assert not [each for each in ran if each.startswith("act")]
        server.close()


async def test_of_what_a_client_says_it_can_do_only_what_counts_is_kept(world: World) -> None:
    raw = Raw(world.server)
    await raw.shake({"elicitation": {"form": {"x": "y" * 1000}}, "sampling": {}, "other": "z" * 1000})
    assert raw.connection.capabilities == {"elicitation", "sampling"}
