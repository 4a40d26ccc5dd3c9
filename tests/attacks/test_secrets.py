"""Thirty secrets, every way to write each, every way out of the gate: none gets through."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import toolgate
from faces.mcp.clients import Raw
from toolgate import Change, Context, FileChange, MountPath, Tool, tool
from toolgate.core.errors import Failed
from toolgate.facade import Gate
from toolgate.faces.http.app import create_app
from toolgate.faces.http.serve import listen, serve
from toolgate.faces.http.site import ServerSite
from toolgate.faces.mcp.server import McpServer
from toolgate.kits.web.tokens import Tokens
from vault.corpus import VALUES, bare, written

ROOMY = {"per_minute": 1_000_000, "per_hour": 10_000_000}
CONFIG: dict[str, Any] = {
    "version": 1,
    "default_persona": "ada",
    "personas": {"ada": {"phase": "contribute"}},
    "limits": {"persona": ROOMY, "global": ROOMY},
    "budget": {"tokens": 1_000_000, "bytes": 100_000_000},
    "consent": {"max_open": 1000},
    "policy": {
        "rules": [
            {"name": "asks", "tools": ["t.ask", "fs.write"], "decision": "ask", "reason": "reviewed"},
            {"name": "rest", "persona": "*", "tools": ["t.*", "fs.*", "code.*"], "decision": "allow"},
        ]
    },
}
FORMS = {name: dict(written(value)) for name, value in VALUES.items()}


def _shapes(text: str) -> set[str]:
    """As it is, and as JSON and HTML write it; without quotes and blanks."""
    shape = bare(text.strip("\"'b"))
    return {shape, json.dumps(shape)[1:-1], html.escape(shape)}


SHAPES = {name: {label: _shapes(text) for label, text in forms.items()} for name, forms in FORMS.items()}


def _flat(told: str) -> str:
    """Without line breaks, real ones and those that JSON wrote."""
    return bare(told) + "\x1f" + bare(re.sub(r"\\+[nrt]", "", told))


def leaked(name: str, told: str) -> list[str]:
    """Which forms can be read in this text, also as JSON or HTML writes them, also across line breaks."""
    flat = _flat(told)
    return [label for label, shapes in SHAPES[name].items() if any(shape in flat for shape in shapes)]


def assert_none(told: str, names: Any = VALUES) -> None:
    flat = _flat(told)
    for name in names:
        found = [label for label, shapes in SHAPES[name].items() if any(shape in flat for shape in shapes)]
        assert found == [], name


def leaking() -> list[Tool]:
    @tool("t.tell", reads=["system"])
    async def tell(name: str) -> dict[str, Any]:
        """Tell everything, in lists, keys and texts."""
        forms = FORMS[name]
        return {
            "forms": forms,
            "keys": {text: label for label, text in forms.items()},
            "all": list(forms.values()),
        }

    @tool("t.raise", reads=["system"])
    async def fail(name: str) -> str:
        """Raise it."""
        raise RuntimeError(f"could not use {' | '.join(FORMS[name].values())} there")

    @tool("t.refuse", reads=["system"])
    async def refuse(name: str) -> str:
        """Refuse with it."""
        text = " | ".join(FORMS[name].values())
        raise Failed(text, f"use {text}", data={"why": text})

    async def shown(text: str) -> str:
        return f"would send {text}"

    @tool("t.ask", writes=["outside"], preview=shown)
    async def ask(text: str) -> str:
        """Send it."""
        return text

    @tool("t.go", reads=["system"])
    async def go(context: Context, name: str) -> str:
        """Say it on the way."""
        for text in FORMS[name].values():
            context.progress(0.5, text)
            logging.getLogger("toolgate.elsewhere").warning("now at %s", text)
        return "done"

    return [tell, fail, refuse, ask, go]


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    root = tmp_path / "project"
    root.mkdir()
    async with toolgate.open(root, CONFIG, tools=leaking()) as made:
        assert made.vault is not None
        for name, value in VALUES.items():
            made.vault.set(name, value)
        yield made


async def ledger_of(gate: Gate) -> str:
    return "".join([line async for line in gate.export()])


def test_the_tests_would_see_a_leak() -> None:
    for name in VALUES:
        for label, text in FORMS[name].items():
            assert label in leaked(name, f"x {text} y") or label == "in a sentence"
            if "\\" not in text:  # which JSON would double
                assert label in leaked(name, json.dumps({"a": text})) or label == "in a sentence"


async def test_no_result_tells_a_secret_nor_does_the_ledger(gate: Gate) -> None:
    for name in VALUES:
        done = await gate.call("t.tell", {"name": name}, key=f"k-{name}")
        assert done.ok
        assert leaked(name, json.dumps(done.data, ensure_ascii=False)) == []
        for label, told in done.data["forms"].items():
            assert f"[secret:{name}]" in told, (name, label)
    assert_none(await ledger_of(gate))


async def test_no_exception_error_trace_or_log_tells_a_secret(gate: Gate) -> None:
    for name in VALUES:
        for call in ("t.raise", "t.refuse"):
            done = await gate.call(call, {"name": name})
            assert done.error is not None
            assert leaked(name, done.error.message) == []
            assert leaked(name, done.error.fix + json.dumps(done.data)) == []
    log = (gate.root / ".toolgate" / "log" / "toolgate.jsonl").read_text()
    assert "could not use" in log
    assert_none(log)
    assert_none(await ledger_of(gate))


async def test_no_progress_and_no_log_line_tells_a_secret(gate: Gate) -> None:
    said: list[str] = []
    for name in VALUES:
        await gate.call("t.go", {"name": name}, progress=lambda fraction, message: said.append(message))
    assert len(said) > 30 * 40
    assert all("[secret:" in each for each in said)
    log = (gate.root / ".toolgate" / "log" / "toolgate.jsonl").read_text()
    assert "now at [secret:" in log
    assert_none(log)


async def test_no_question_preview_or_recorded_argument_tells_a_secret(gate: Gate) -> None:
    for name in VALUES:
        text = " | ".join(FORMS[name].values())
        value = VALUES[name]
        called = value if value.isprintable() and len(value) <= 256 else ""
        if not called:  # what is no id is refused before anything is looked for in it, without a word of it
            refused = await gate.call("system.ping", conversation=value)
            assert not {value[at : at + 12] for at in range(0, 80, 4)} & _windows(str(refused.error))
        await gate.call("t.ask", {"text": text}, reason=value, conversation=called, wait=False)
        await gate.call("fs.write", {"path": f"{name}.md", "content": text + "\n"}, wait=False)
        await gate.call(f"t.{VALUES[name]}", {})
    questions = await gate.approvals()
    assert len(questions) == 60
    assert_none("".join(question.preview + json.dumps(dict(question.args)) for question in questions))
    assert_none(await ledger_of(gate))


def _windows(text: str) -> set[str]:
    return {text[at : at + 12] for at in range(len(text))}


async def test_no_file_that_is_read_back_tells_a_secret(gate: Gate) -> None:
    for name in VALUES:
        (gate.root / f"{name}.md").write_text("\n\n".join(FORMS[name].values()) + "\n")
        for call, args in (
            ("fs.read", {"path": f"{name}.md"}),
            ("code.read", {"path": f"{name}.md", "max_lines": 10_000, "include_lines": True}),
        ):
            done = await gate.call(call, args)
            assert done.ok, done.error
            assert leaked(name, json.dumps(done.data, ensure_ascii=False)) == [], call
    found = await gate.call("code.search", {"pattern": VALUES["GITHUB"][:12]})
    assert found.ok
    assert_none(json.dumps(found.data, ensure_ascii=False), ["GITHUB"])


async def test_what_an_approved_write_shows_afterwards_tells_no_secret(gate: Gate) -> None:
    from toolgate.faces.console import call_timeline as life

    value = VALUES["STRIPE"]
    content = f"key = {value}\nagain = {value[::-1]}\n" + "\n".join(value) + "\n"
    args = {"path": "key.txt", "content": content}
    asked = await gate.call("fs.write", args, wait=False)
    await gate.answer(asked.data["question"], "approve")
    done = await gate.call("fs.write", args, wait=False)
    assert done.ok, done.error
    assert (gate.root / "key.txt").read_text() == content, "what was approved is what was written"
    rows = await gate.events()
    started = next(json.loads(row.body) for row in rows if row.kind == "started")
    shown = await life._diff(gate, None, started)
    assert "[secret:STRIPE]" in shown
    assert_none(shown + repr(done) + await ledger_of(gate), ["STRIPE"])


@asynccontextmanager
async def served(gate: Gate, tokens: Tokens) -> AsyncIterator[tuple[str, str]]:
    site = ServerSite(gate, tokens)
    sock = listen("127.0.0.1", 0)
    started = asyncio.Event()
    task = asyncio.create_task(serve(create_app(gate, tokens, site=site), site, sock, ready=started.set))
    try:
        await asyncio.wait_for(started.wait(), 60)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", site.base
    finally:
        site.closing.set()
        await asyncio.wait_for(task, 60)


async def test_neither_the_api_nor_the_console_tells_a_secret_and_none_of_them_reaches_the_vault(
    gate: Gate, tmp_path: Path
) -> None:
    tokens = Tokens(tmp_path / "tokens" / "t.json")
    async with served(gate, tokens) as (url, base):
        headers = {"Authorization": f"Bearer {tokens.of('ada')}"}
        told = ""
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=20) as client:
            for name in VALUES:
                answer = await client.post("/api/v1/calls", json={"tool": "t.tell", "args": {"name": name}})
                assert answer.status_code == 200, answer.text
                assert leaked(name, answer.text) == []
                last = answer.json()["meta"]["event_id"]
                text = " | ".join(FORMS[name].values())
                await client.post(
                    "/api/v1/calls", json={"tool": "t.ask", "args": {"text": text}, "wait": False}
                )
            routes = [
                route
                for route in (await client.get("/api/v1/openapi.json")).text.split('"')
                if "secret" in route
            ]
            assert not [route for route in routes if route.startswith("/")]
        async with httpx2.AsyncClient(base_url=url, timeout=20, follow_redirects=True) as browser:
            await browser.get("/", params={"token": tokens.of("human")})
            headers = {"Authorization": f"Bearer {tokens.of('human')}"}
            pages = [f"{base}/events/{last}", f"{base}/", f"{base}/activity"]
            for path in ("/api/v1/events?limit=200", "/api/v1/approvals", *pages):
                page = await browser.get(path, headers=headers)
                assert page.status_code == 200, path
                told += page.text
        assert_none(told)


async def test_no_mcp_answer_tells_a_secret_and_no_tool_reaches_the_vault(gate: Gate) -> None:
    server = McpServer(gate)
    try:
        raw = Raw(server)
        await raw.shake()
        for name in VALUES:
            answer = await raw.call("t.tell", {"name": name})
            assert leaked(name, json.dumps(answer, ensure_ascii=False)) == []
        for guess in ("secrets.set", "secrets.list", "vault.get", "secrets/get"):
            refused = await raw.call(guess, {"name": "GITHUB"})
            assert "unknown_tool" in json.dumps(refused) or "error" in refused
    finally:
        server.close()
    assert not [one.name for one in gate.services.registry if "secret" in one.name or "vault" in one.name]


def test_a_plan_that_writes_no_text_is_no_way_around() -> None:
    """The scan sees bytes, so a value in UTF-16 is found like any other."""
    from toolgate.secrets.finder import Finder
    from toolgate.secrets.scan import ContentScanner

    class Known:
        finder = Finder(VALUES)

        def within(self, content: bytes) -> Any:
            return [(span.name, span.start, span.end) for span in self.finder.spans(content)]

    content = VALUES["GITHUB"].encode("utf-16-le")
    change = Change((FileChange(MountPath("project:a.bin"), None, content),))
    found = ContentScanner(Known()).scan(change)
    assert [finding.rule for finding in found.findings] == ["github-token", "vault"]
