"""Somebody who is not looking is told that a question has opened."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import testing


@toolgate.tool("mail.send", writes=["outside"])
async def send(to: str, password: str = "") -> None:
    return None


def policy(notify: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 1,
        "default_persona": "clerk",
        "personas": {"clerk": {"phase": "collaborate"}},
        "consent": {"notify": notify},
        "policy": {
            "rules": [{"tools": ["mail.*"], "decision": "ask", "reason": "mail is \u202eread\u202c first"}]
        },
    }


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    heard: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            return None

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", heard
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_webhook_hears_once_of_a_question_and_not_of_its_arguments(
    hook: tuple[str, list[dict[str, Any]]],
) -> None:
    url, heard = hook
    async with testing.gate([send], policy({"webhook": url})) as gate:
        args = {"to": "ada", "password": "correct horse"}
        first = await gate.call("mail.send", args, wait=False)
        await gate.call("mail.send", args, wait=False)  # joins the open question
    assert [notice["id"] for notice in heard] == [first.data["question"]]
    assert heard[0]["tool"] == "mail.send"
    assert "correct horse" not in json.dumps(heard)
    assert "⟨U+202E⟩" in heard[0]["text"]


async def test_a_webhook_that_redirects_is_not_followed() -> None:
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("location", "/next")
            self.end_headers()

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            return None

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        webhook = f"http://127.0.0.1:{server.server_port}/hook"
        async with testing.gate([send], policy({"webhook": webhook})) as gate:
            await gate.call("mail.send", {"to": "ada"}, wait=False)
        server.shutdown()
        thread.join()
    assert asked == []


async def test_a_webhook_that_cannot_be_reached_changes_nothing() -> None:
    async with testing.gate([send], policy({"webhook": "http://127.0.0.1:9/nobody"})) as gate:
        asked = await gate.call("mail.send", {"to": "ada"}, wait=False)
        assert asked.error is not None
        assert asked.error.code == "pending"
        assert len(await gate.approvals()) == 1


async def test_the_desktop_is_told_with_an_argument_list_and_no_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = tmp_path / "heard"
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word" >> {heard}; done\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    async with testing.gate([send], policy({"desktop": True})) as gate:
        await gate.call("mail.send", {"to": "$(touch pwned)"}, wait=False)
    assert heard.read_text().splitlines()[-1].startswith("clerk wants to call mail.send: mail is ")
