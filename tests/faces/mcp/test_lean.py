"""What a model pays over MCP: short lists, text alone, tools that are found; and what it costs is recorded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import tool
from toolgate.core.tool import Tool
from toolgate.faces.mcp.listing import CODE, MINIMAL
from toolgate.faces.mcp.server import McpServer, Options
from toolgate.project.sections import DEFAULT_YAML
from toolgate.storage.port import Filter

from .clients import Message, Raw, envelope

ROOMY = {"per_minute": 1_000_000, "per_hour": 10_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "observe"}, "bob": {"phase": "observe"}},
    "limits": {"persona": ROOMY, "global": ROOMY},
    "policy": {
        "rules": [
            {"name": "never", "tools": ["t.secret"], "decision": "deny", "reason": "it is secret"},
            {"name": "reviewed", "tools": ["t.act"], "decision": "ask", "reason": "it is reviewed"},
            {"name": "free", "persona": "*", "tools": ["t.*", "up*.*"], "decision": "allow"},
        ]
    },
}  # fmt: skip
WANTS = {"experimental": {"toolgate/structured": {}}}
KEY = "toolgate/structured"
ERAS = pytest.mark.parametrize("era", ["handshake", "stateless"])


def small(name: str, description: str = "Do one thing with another.") -> Tool:
    @tool(name, description=description, reads=["outside"])
    async def run(query: str = "", limit: int = 10) -> dict[str, str]:
        return {"ran": query}

    return run


def many_of(count: int) -> list[Tool]:
    """As servers bring them: with a schema of their own, so that none has to be worked out."""
    base = replace(
        small("up.act"), input_schema_override={"type": "object", "properties": {"query": {"type": "string"}}}
    )
    return [
        replace(
            base, name=f"up{number % 7}.act_{number}", description=f"Handle the case of number {number} well."
        )
        for number in range(count)
    ]


@asynccontextmanager
async def served(
    root: Path, tools: list[Tool] | None = None, profile: str | None = None, **mcp: Any
) -> AsyncIterator[McpServer]:
    (root / "hello.py").write_text("print('hello')\n")
    config = CONFIG | ({"mcp": mcp} if mcp else {})
    own = [small("t.look"), small("t.act"), small("t.secret")]
    async with toolgate.open(root, config, "memory", tools=[*own, *(tools or ())]) as gate:
        server = McpServer(gate, Options(profile=profile))
        try:
            yield server
        finally:
            server.close()


class Talker:
    """A client of either era that asks one thing at a time."""

    def __init__(
        self,
        server: McpServer,
        era: str = "handshake",
        capabilities: Message | None = None,
        persona: str = "ada",
    ) -> None:
        self._raw, self._era, self._can, self._ready = Raw(server, persona), era, capabilities or {}, False

    async def say(self, method: str, params: Message | None = None, meta: Message | None = None) -> Message:
        if self._era == "handshake" and not self._ready:
            await self._raw.shake(self._can)
            self._ready = True
        enveloped = {**(envelope(self._can) if self._era == "stateless" else {}), **(meta or {})}
        answer = await self._raw.say(
            method, {**(params or {}), **({"_meta": enveloped} if enveloped else {})}
        )
        assert "result" in answer, answer
        found: Message = answer["result"]
        return found

    async def tools(self) -> list[Message]:
        found: list[Message] = []
        cursor: Message = {}
        while True:
            page = await self.say("tools/list", cursor)
            found += page["tools"]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    async def call(self, name: str, args: Message | None = None, meta: Message | None = None) -> Message:
        return await self.say("tools/call", {"name": name, "arguments": args or {}}, meta)

    async def text(self, name: str, args: Message | None = None) -> str:
        return str((await self.call(name, args))["content"][0]["text"])


def size(tools: list[Message]) -> int:
    return len(json.dumps(tools, ensure_ascii=False))


# --- text and structured content --------------------------------------------------------------------------------


@ERAS
async def test_a_client_that_asks_for_nothing_gets_text_alone(tmp_path: Path, era: str) -> None:
    async with served(tmp_path) as server:
        client = Talker(server, era)
        answer = await client.call("fs_read", {"path": "hello.py"})
        assert "structuredContent" not in answer
        assert answer["content"][0]["text"].split("\n")[1:] == ["1\tprint('hello')"]
        assert all("outputSchema" not in one for one in await client.tools())


@ERAS
@pytest.mark.parametrize(
    ("said", "can", "meta", "whole"),
    [
        ("auto", {}, {}, False),
        ("auto", WANTS, {}, True),
        ("auto", {}, {KEY: True}, True),
        ("auto", {"experimental": {KEY: "yes"}}, {KEY: "yes"}, False),
        ("auto", {"experimental": None}, {KEY: None}, False),
        ("never", WANTS, {KEY: True}, False),
        ("always", {}, {}, True),
    ],
)
async def test_structured_content_and_output_schemas_go_to_who_asks(
    tmp_path: Path, era: str, said: str, can: Message, meta: Message, whole: bool
) -> None:
    async with served(tmp_path, structured=said) as server:
        client = Talker(server, era, can)
        answer = await client.call("t_look", {"query": "x"}, meta)
        assert ("structuredContent" in answer) == whole
        if whole:
            assert set(answer["structuredContent"]) == {"ok", "tool", "data", "error", "meta"}
            assert answer["structuredContent"]["data"] == {"ran": "x"}
        listed = (await client.say("tools/list", {}, meta))["tools"]
        assert {"outputSchema" in one for one in listed} == {whole}


async def test_an_error_is_two_lines(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        client = Talker(server)
        for name, args, code in (
            ("fs_read", {"path": "none.txt"}, "not_found"), ("fs_read", {}, "invalid_args"), ("nothing_there", {}, "unknown_tool"),
            ("t_secret", {}, "not_allowed"), ("t_act", {}, "pending"), ("fs_read", {"path": "../x"}, "outside_mount"),
        ):  # fmt: skip
            answer = await client.call(name, args)
            assert answer["isError"] is True
            lines = answer["content"][0]["text"].split("\n")
            assert lines[0].startswith(f"{code}: "), lines
            assert lines[1].startswith("fix: "), lines
            assert len(lines) == 2, lines


async def test_the_tokens_of_a_call_are_those_of_the_text_that_was_sent(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        (server.gate.root / "many.txt").write_text("a needle\n" * 60)
        text = await Talker(server).text("fs_search", {"pattern": "needle"})
        row = (await server.gate.events(Filter(tool="fs.search", kinds=("committed",))))[0]
        assert json.loads(row.body)["tokens"] == -(-len(text) // 4)
        plain = await server.gate.call("fs.search", {"pattern": "needle"})
        assert plain.meta.tokens > 3 * json.loads(row.body)["tokens"], "Python gets the whole shape"
        assert "text" not in plain.as_dict()
        used = json.loads(row.body)["tokens"] + plain.meta.tokens
        (told,) = (await server.gate.stats(persona="ada"))["personas"]
        assert told["tokens"] == told["breakdown"]["fs.search"]["tokens"] == used


# --- lists ------------------------------------------------------------------------------------------------------


async def test_the_list_of_builder_as_init_writes_it_is_short(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text(DEFAULT_YAML)
    async with toolgate.open(tmp_path, tmp_path / "toolgate.yaml") as gate:
        for profile, most in ((None, 20_000), ("code", 20_000), ("minimal", 5_000)):
            server = McpServer(gate, Options(profile=profile))
            found = await Talker(server, persona="builder").tools()
            assert size(found) <= most, profile
            assert len(found) <= 14
            assert {one["name"] for one in found} <= {name.replace(".", "_") for name in CODE}
            server.close()


async def test_names_have_no_dots_and_every_spelling_is_understood(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        client = Talker(server)
        assert not [one["name"] for one in await client.tools() if not one["name"].replace("_", "").isalnum()]
        for name in ("fs_read", "fs.read", "fs/read", "code_read", "code.read"):
            assert "hello" in await client.text(name, {"path": "hello.py"}), name
    async with served(tmp_path, names="dotted") as server:
        assert "fs.read" in {one["name"] for one in await Talker(server).tools()}


async def test_of_two_tools_that_do_the_same_one_is_listed_and_both_are_called(tmp_path: Path) -> None:
    async with served(tmp_path, profile="full") as server:
        client = Talker(server)
        names = {one["name"] for one in await client.tools()}
        for first, second in (
            ("fs_read", "code_read"),
            ("fs_search", "code_search"),
            ("fs_list", "code_list"),
        ):
            assert first in names
            assert second not in names
        assert "print" in await client.text("code_search", {"pattern": "hello"})
        assert "hello.py" in await client.text("code_list")


async def test_a_list_says_nothing_twice_and_nothing_that_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path, profile="full") as server:
        found = await Talker(server).tools()
        text = json.dumps(found)
        for noise in (
            '"title"',
            '"additionalProperties": false',
            "maxLength",
            "not there yet",
            '"default": null',
        ):
            assert noise not in text, noise
        for one in found:
            assert one["description"]
            assert len(one["description"]) <= 400, one["name"]
            assert one["inputSchema"]["type"] == "object"


async def test_a_personas_and_a_projects_own_profile_are_names_globs_or_a_profile(tmp_path: Path) -> None:
    async with served(tmp_path, profile=None, personas={"bob": "minimal"}) as server:
        assert set(server.listing.names("bob")) == _may(server, "bob")
        assert "t.look" in server.listing.names("ada")
        assert server.listing.profile("ada") == "code"
    config = CONFIG | {"mcp": {"profile": ["fs.read", "code.*"], "personas": {"bob": ["t.*"]}}}
    async with toolgate.open(tmp_path, config, "memory", tools=[small("t.look"), small("t.secret")]) as gate:
        server = McpServer(gate)
        named = server.listing.names("ada")
        assert "fs.read" in named
        assert "code.read" in named, "what a project names is listed"
        assert {name.partition(".")[0] for name in named} == {"fs", "code"}
        assert server.listing.names("bob") == ["t.look"]
        server.close()


def _may(server: McpServer, persona: str) -> set[str]:
    return {spec.name for spec in server.gate.tools(persona)} & MINIMAL


async def test_lists_are_the_same_bytes_after_a_restart(tmp_path: Path) -> None:
    seen = []
    for turn in range(2):
        order = [small(f"up{number}.tool") for number in range(20)]
        async with served(tmp_path, order if turn else order[::-1]) as server:
            seen.append(json.dumps([await Talker(server).tools(), server.gate.config.mcp.model_dump()]))
    assert seen[0] == seen[1]


# --- many tools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "profile"), [(300, None), (300, "full"), (300, "minimal"), (1000, "code"), (1000, "full")]
)
async def test_with_many_tools_a_few_are_listed_and_the_others_are_found_and_called(
    tmp_path: Path, count: int, profile: str | None
) -> None:
    async with served(tmp_path, many_of(count), profile) as server:
        client = Talker(server)
        found = await client.tools()
        assert size(found) <= 25_000
        names = {one["name"] for one in found}
        assert {"tools_find", "tools_call", "fs_read"} <= names
        assert "up1_act_8" not in names
        said = await client.text("tools_find", {"query": "handle number 8"})
        assert said.startswith("up1.act_8 (allow): ")
        name = said.partition(" ")[0]
        assert await client.text("tools_call", {"tool": name, "args": {"query": "it"}}) == "ran: it"


async def test_a_project_says_whether_all_tools_are_listed(tmp_path: Path) -> None:
    async with served(tmp_path, many_of(200), list="all") as server:
        assert len(await Talker(server).tools()) > 200
    async with served(tmp_path, [], list="find") as server:
        names = set(server.listing.names("ada"))
        assert names <= CODE
        assert {"tools.find", "tools.call"} <= names


async def test_tools_whose_names_would_be_the_same_without_dots_are_told_apart(tmp_path: Path) -> None:
    twins = [
        small("up.a_b", "The one."),
        small("up_a.b", "The other."),
        small("up." + "x" * 80, "A long one."),
    ]
    async with served(tmp_path, twins) as server:
        client = Talker(server)
        found = {one["description"]: one["name"] for one in await client.tools()}
        names = [found[word] for word in ("The one.", "The other.", "A long one.")]
        assert len(set(names)) == 3
        for name, tool_name in zip(names, ("up.a_b", "up_a.b", "up." + "x" * 80), strict=True):
            assert len(name) <= 64
            assert "." not in name
            assert await client.text(name, {"query": tool_name}) == f"ran: {tool_name}"
            rows = await server.gate.events(Filter(tool=tool_name, kinds=("committed",)))
            assert len(rows) == 1, name


# --- tools.call -------------------------------------------------------------------------------------------------


@ERAS
async def test_a_call_through_tools_call_is_that_call_for_policy_ledger_and_cache(
    tmp_path: Path, era: str
) -> None:
    async with served(tmp_path) as server:
        gate, client = server.gate, Talker(server, era)
        through = {"tool": "fs_read", "args": {"path": "hello.py"}}
        assert await client.text("tools_call", through) == await client.text("fs_read", {"path": "hello.py"})
        rows = await gate.events()
        assert not [row for row in rows if row.tool == "tools.call"]
        digests = {
            json.loads(row.body)["digest"] for row in rows if row.tool == "fs.read" and row.kind == "started"
        }
        assert len(digests) <= 1, "the same call has the same digest"
        assert (await client.text("tools_call", {"tool": "t.secret"})).startswith(
            "not_allowed: ada may not call t.secret"
        )


async def test_a_question_through_tools_call_is_the_tools_own_and_its_answer_is_for_either_way(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as server:
        gate, client = server.gate, Talker(server)
        assert (await client.text("tools_call", {"tool": "t.act", "args": {"query": "x"}})).startswith(
            "pending: "
        )
        (question,) = await gate.approvals()
        assert (question.tool, question.args) == ("t.act", {"query": "x", "limit": 10})
        await gate.answer(question.id, "approve")
        assert await client.text("t_act", {"query": "x"}) == "ran: x"
        assert (await client.text("tools_call", {"tool": "t.act", "args": {"query": "x"}})).startswith(
            "pending: "
        )


@pytest.mark.parametrize(
    "args",
    [
        {"tool": "tools.call", "args": {"tool": "t.look", "args": {}}},
        {"tool": "tools_call", "args": {"tool": "t.secret"}},
        {"tool": "archon.tools.call", "args": {}},
        {},
        {"tool": 7},
        {"tool": "t.look", "args": "{}"},
        {"tool": "t.look", "args": [1]},
        {"tool": "t.look", "args": {}, "persona": "human"},
        {"tool": "t.look", "name": "t.secret"},
    ],
)
async def test_what_tools_call_cannot_forward_is_refused_everywhere(tmp_path: Path, args: Message) -> None:
    async with served(tmp_path) as server:
        said = await Talker(server).text("tools_call", args)
        assert said.startswith("invalid_args: "), said
        result = await server.gate.call("tools.call", args)
        assert result.error is not None
        assert result.error.code.value == "invalid_args"


async def test_a_human_tool_and_an_unknown_one_are_refused_through_tools_call_as_by_themselves(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as server:
        for name, args in (
            ("ledger.undo", {"event": 1}),
            ("no.such", {}),
            ("t" * 5000, {}),
            ("fs.read", {"path": ".env"}),
        ):
            direct = await server.gate.call(name, args)
            through = await server.gate.call("tools.call", {"tool": name, "args": args})
            assert direct.error is not None
            assert through.error is not None
            assert (through.tool, through.error.code) == (direct.tool, direct.error.code)


async def test_what_surrounds_a_match_is_shown_only_where_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "three.py").write_text("before\nneedle\nafter\n")
    async with served(tmp_path) as server:
        client = Talker(server)
        for asked, shown in (({}, False), ({"context_lines": 2}, True)):
            params = {"name": "code_search", "arguments": {"pattern": "needle", **asked}}
            said = (await client.say("tools/call", params))["content"][0]["text"]
            assert ("before" in said) is shown, said
