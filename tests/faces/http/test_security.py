"""Every route against everybody who may come: derived from the routes themselves, so that none is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolgate.core.errors import RateLimited
from toolgate.faces.http import app
from toolgate.faces.http.app import create_app
from toolgate.faces.http.guard import HEADERS, LOOPBACK, host_of
from toolgate.faces.http.site import ServerSite
from toolgate.kits.web.auth import persona_by_token
from toolgate.kits.web.site import WRONG_PER_ADDRESS, WRONG_TOGETHER, Throttle

from .serving import PATIENCE, House, house

PUBLIC = {
    ("GET", "/"),
    ("GET", "/assets/{version}/{name:path}"),
    ("POST", "/login"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/v1/health/live"),
    ("GET", "/api/v1/health/ready"),
}
"""Open to whoever can reach the server."""
FOR_PERSONAS = {
    ("GET", "/api/v1/executions"),
    ("GET", "/api/v1/executions/summary"),
    ("GET", "/api/v1/jobs"),
    ("GET", "/api/v1/jobs/{ident}"),
    ("POST", "/api/v1/calls"),
    ("GET", "/api/v1/calls/{ident}"),
    ("GET", "/api/v1/tools"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/events/{number}"),
    ("GET", "/api/v1/stats"),
    ("GET", "/api/v1/stream"),
    ("GET", "/api/v1/health"),
    ("GET", "/api/v1/metrics"),
}
"""What a persona's token may be used on. Everything else is the human's alone."""
FOREIGN = {"Origin": "http://evil.example"}


def routes(application: FastAPI) -> Iterator[tuple[str, str]]:
    """Method and path of everything the application answers."""
    for route in iter_route_contexts(application.routes):
        yield from ((method, str(route.path)) for method in sorted((route.methods or set()) - {"HEAD"}))


def all_routes(here: House) -> list[tuple[str, str]]:
    return list(dict.fromkeys(routes(create_app(here.gate, here.site.tokens, site=here.site))))


async def ask(client: httpx2.AsyncClient, method: str, path: str, **more: Any) -> tuple[int, Any]:
    """Status and body; of a stream only the status, as it does not end."""
    path = path.replace("{number}", "1").replace("{event}", "1").replace("{ident}", "q_1")
    content: dict[str, Any] = {"json": {}} if method == "POST" else {}
    async with client.stream(method, path, **content, **more) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code, None
        await answer.aread()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.status_code, answer.json() if is_json else None


async def test_nothing_but_the_public_routes_answers_without_a_token_or_with_a_wrong_one(here: House) -> None:
    everything = all_routes(here)
    assert len(everything) > 40
    assert set(everything) >= PUBLIC | FOR_PERSONAS
    async with here.client() as nobody, here.client(headers={"Authorization": "Bearer wrong"}) as stranger:
        for method, path in everything:
            for client in (nobody, stranger):
                here.site.throttle = Throttle()
                status, body = await ask(client, method, path)
                if (method, path) in PUBLIC:
                    assert status != 403, path
                    continue
                assert status == 401, f"{method} {path} gave {status}"
                assert {"code", "message", "fix"} <= set(body)


async def test_a_persona_gets_only_what_is_for_personas_and_the_rest_is_recorded(here: House) -> None:
    refused = 0
    async with here.client("helper") as client:
        for method, path in all_routes(here):
            if (method, path) in PUBLIC:
                continue
            status, body = await ask(client, method, path)
            if (method, path) in FOR_PERSONAS:
                assert status not in (401, 403), f"{method} {path} gave {status}"
            else:
                refused += 1
                assert (status, body["code"]) == (403, "not_allowed"), f"{method} {path} gave {status}"
    assert refused > 20
    kept = [what for what in await here.refusals() if what.startswith("the token of helper was used on")]
    assert kept
    assert here.site.base not in "".join(await here.refusals())
    assert not {"approved", "granted", "paused", "undone", "resolved"} & set(await here.kinds())


async def test_the_human_is_let_in_everywhere(here: House) -> None:
    async with here.client("human") as client:
        for method, path in all_routes(here):
            if path == "/login":
                continue
            status, _ = await ask(client, method, path)
            assert status not in (401, 403, 500), f"{method} {path} gave {status}"


async def test_a_foreign_origin_and_a_wrong_host_are_refused_on_every_route(here: House) -> None:
    strange: list[dict[str, str]] = [
        FOREIGN,
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    ]
    async with here.client("human") as client:
        for method, path in all_routes(here):
            for headers in strange:
                status, body = await ask(client, method, path, headers=headers)
                assert (status, body["code"]) == (403, "not_allowed"), f"{method} {path} with {headers}"
    assert "paused" not in await here.kinds()
    told = await here.refusals()
    assert any("http://evil.example" in what for what in told)


async def test_a_cookie_changes_nothing_without_its_csrf_token(here: House) -> None:
    async with here.browser() as browser:
        for method, path in all_routes(here):
            if path.startswith(here.site.base) and method != "GET":
                for headers in ({}, {"X-CSRF-Token": "wrong"}):
                    status, body = await ask(browser, method, path, headers=headers)
                    assert (status, body["code"]) == (403, "not_allowed"), f"{method} {path}"
        assert any("CSRF" in what for what in await here.refusals())
        assert "paused" not in await here.kinds()
        done = await browser.post(f"{here.site.base}/api/v1/pause", json={}, headers=here.csrf)
        assert done.status_code == 200


async def test_the_cookie_is_not_believed_outside_the_console_and_never_from_another_origin(
    here: House,
) -> None:
    async with here.browser() as browser:
        (cookie,) = browser.cookies.jar
        assert (cookie.path, cookie.name) == (here.site.base, "toolgate_session")
        assert len(here.site.base) > 20
        same_port = await browser.get("/api/v1/approvals")
        assert same_port.status_code == 401  # not sent there
        stolen = {"Cookie": f"{cookie.name}={cookie.value}", **FOREIGN, **here.csrf}
        async with here.client() as thief:
            answer = await thief.post(f"{here.site.base}/api/v1/pause", json={}, headers=stolen)
        assert answer.status_code == 403
    assert "paused" not in await here.kinds()


async def test_login_exchanges_the_token_for_a_cookie_and_takes_it_out_of_the_address(here: House) -> None:
    async with here.client() as client:
        answer = await client.get("/", params={"token": here.site.tokens.of("human")})
        assert answer.status_code == 303
        assert "token" not in answer.headers["location"]
        set_cookie = answer.headers["set-cookie"]
        for word in ("HttpOnly", "SameSite=strict", f"Path={here.site.base}"):
            assert word in set_cookie
        assert "Secure" not in set_cookie  # plain HTTP on loopback
        page = await client.get(answer.headers["location"])
        assert page.status_code == 200
        assert here.site.tokens.of("human") not in page.text


async def test_the_form_logs_in_too_and_logging_out_ends_the_session(here: House) -> None:
    async with here.client() as client:
        answer = await client.post("/login", data={"token": here.site.tokens.of("human")})
        assert answer.status_code == 303
        home = answer.headers["location"]
        kept = dict(client.cookies)
        out = await client.post(f"{here.site.base}/logout", data={"csrf": here.csrf["X-CSRF-Token"]})
        assert (out.status_code, out.headers["location"]) == (303, "/")
        again = await client.get(home, headers={"Cookie": "; ".join(f"{k}={v}" for k, v in kept.items())})
        assert again.status_code == 401


async def test_a_replaced_token_ends_its_sessions_at_once(here: House) -> None:
    async with here.browser() as browser, here.client("human") as api:
        assert (await browser.get(f"{here.site.base}/")).status_code == 200
        here.site.tokens.renew("human")
        assert (await browser.get(f"{here.site.base}/")).status_code == 401
        assert (await api.get("/api/v1/approvals")).status_code == 401


async def test_a_personas_token_does_not_log_in(here: House) -> None:
    async with here.client() as client:
        answer = await client.get("/", params={"token": here.site.tokens.of("helper")})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert "the token of helper was used to log in" in await here.refusals()


async def test_wrong_tokens_are_slowed_down_and_a_right_one_is_let_in_all_the_same(here: House) -> None:
    async with here.client() as client:
        tries = [
            (await client.get("/", params={"token": f"guess{n}"})).status_code
            for n in range(WRONG_PER_ADDRESS + 2)
        ]
        assert tries == [401] * WRONG_PER_ADDRESS + [429] * 2
        late = await client.get("/api/v1/tools", headers={"Authorization": "Bearer guess"})
        assert (late.status_code, late.json()["code"]) == (429, "rate_limited")
        assert int(late.headers["retry-after"]) > 0
        assert (await client.get("/", params={"token": here.site.tokens.of("human")})).status_code == 303


def test_all_addresses_together_are_slowed_down_too() -> None:
    now = [0.0]
    throttle = Throttle(lambda: now[0])
    for n in range(WRONG_TOGETHER):
        throttle.failed(f"10.0.0.{n}")
    with pytest.raises(RateLimited, match="within a minute"):
        throttle.failed("10.0.1.1")
    now[0] = 61
    throttle.failed("10.0.0.1")


async def test_every_answer_has_the_security_headers_and_no_page_allows_inline_script(here: House) -> None:
    async with here.browser() as browser:
        for path in ("/", "/nope", "/api/v1/health/live", "/api/v1/approvals", f"{here.site.base}/"):
            answer = await browser.get(path)
            for name, value in HEADERS.items():
                assert answer.headers[name] == value, path
            assert "<script>" not in answer.text
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


async def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(here: House) -> None:
    async def chunks() -> Any:
        for _ in range(17):
            yield b"x" * (1024 * 1024)

    host, port = here.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /api/v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n")
    said = await asyncio.wait_for(reader.readline(), PATIENCE)
    writer.close()
    assert said.startswith(b"HTTP/1.1 413")

    async with here.client("helper") as client:
        answer = await client.post(
            "/api/v1/calls", content=chunks(), headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_forged_late_or_repeated_answer_changes_nothing_and_is_recorded(here: House) -> None:
    async with here.client("helper") as agent, here.client("human") as human:
        asked = await agent.post("/api/v1/calls", json={"tool": "door.open", "args": {"room": "lab"}})
        question = asked.json()["data"]["question"]
        forged = await agent.post(f"/api/v1/approvals/{question}", json={"answer": "approve"})
        assert forged.status_code == 403
        assert (await human.post(f"/api/v1/approvals/{question}", json={"answer": "deny"})).status_code == 200
        replayed = await human.post(f"/api/v1/approvals/{question}", json={"answer": "approve"})
        assert replayed.status_code in (404, 409)
        foreign = await human.post("/api/v1/approvals/q_nope%0a", json={"answer": "approve"})
        assert foreign.status_code == 404
        assert (
            await agent.post("/api/v1/calls", json={"tool": "door.open", "args": {"room": "lab"}})
        ).status_code == 403
    assert here.opened == []
    assert sum("was refused" in what for what in await here.refusals()) == 2
    assert (await here.gate.verify()).ok


async def test_a_persona_cannot_speak_for_another_or_read_what_another_did(here: House) -> None:
    async with here.client("helper") as helper, here.client("other") as other:
        mine = (await helper.post("/api/v1/calls", json={"tool": "system.ping"})).json()["meta"]
        forged = await other.post("/api/v1/calls", json={"tool": "system.ping", "persona": "helper"})
        assert (forged.status_code, forged.json()["code"]) == (403, "not_allowed")
        for path in (f"/api/v1/events/{mine['event_id']}", f"/api/v1/calls/{mine['call_id']}"):
            assert (await helper.get(path)).status_code == 200
            assert (await other.get(path)).status_code == 404
        for path in ("/api/v1/events", "/api/v1/events?persona=helper"):
            seen = (await other.get(path)).json()["events"]
            assert {row["persona"] for row in seen} <= {"other"}
        assert 'persona="helper"' not in (await other.get("/api/v1/metrics")).text
        stats = (await other.get("/api/v1/stats?persona=helper")).json()
        assert [each["persona"] for each in stats["personas"]] == ["other"]


async def test_tricks_in_paths_lead_nowhere(here: House) -> None:
    async with here.client("human") as client:
        for path in (
            "/api/v1/../../etc/passwd", "/api/v1/%2e%2e/%2e%2e/etc/passwd", "/api/v1/approvals/..%2f..%2fetc",
            "/api//v1/approvals", "/API/v1/approvals", "/api/v1/approvals/", "/api/v1/events/-1",
            "/api/v1/events/0", "/api/v1/events/99999999999999999999999", "/c/", "/c/guess/", "//api/v1/approvals",
        ):  # fmt: skip
            answer = await client.get(path)
            assert answer.status_code in (400, 404), path
            assert {"code", "message", "fix"} <= set(answer.json()), path


async def test_what_is_mounted_at_mcp_is_behind_the_same_guard_and_told_whose_token_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(site: ServerSite) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await JSONResponse({"persona": await persona_by_token(site, scope)})(scope, receive, send)

        return answer

    monkeypatch.setattr(app, "mcp_application", echo)
    root = tmp_path / "project"
    root.mkdir()
    async with house(root) as here, here.client("helper") as agent, here.client() as nobody:
        assert (await agent.post("/mcp", json={})).json() == {"persona": "helper"}
        assert (await nobody.post("/mcp", json={})).json() == {"persona": None}
        assert (await agent.post("/mcp", json={}, headers=FOREIGN)).status_code == 403
        assert (await agent.post("/mcp", json={}, headers={"Host": "evil.example"})).status_code == 403


async def test_behind_tls_an_allowed_name_is_let_in_and_its_cookie_is_secure(here: House) -> None:
    site = ServerSite(here.gate, here.site.tokens, ("gate.example",))
    transport = httpx2.ASGITransport(create_app(here.gate, site.tokens, site=site))
    own = {"Origin": "https://gate.example"}
    async with httpx2.AsyncClient(transport=transport, base_url="https://gate.example") as client:
        answer = await client.post("/login", data={"token": site.tokens.of("human")}, headers=own)
        assert answer.status_code == 303
        assert "Secure" in answer.headers["set-cookie"]
        other = await client.get("/", headers={"Host": "gate.example.evil.example"})
        assert other.status_code == 403
    site.notifier.close()
    site.counts.close()


def test_a_host_is_read_without_its_port_and_only_then() -> None:
    named = {
        "127.0.0.1:80": "127.0.0.1",
        "localhost": "localhost",
        "[::1]:8721": "[::1]",
        "LOCALHOST:1": "localhost",
    }
    assert {header: host_of(header) for header in named} == named
    for strange in ("127.0.0.1:80:90", "127.0.0.1:x", "evil@127.0.0.1:80", "", ":80", "127.0.0.1.:80"):
        assert host_of(strange) not in LOOPBACK, strange


async def test_who_has_no_business_with_the_mcp_server_is_refused_and_recorded(here: House) -> None:
    async with here.client() as nobody, here.client("human") as human:
        assert (await nobody.post("/mcp", json={})).status_code == 401
        assert (await human.post("/mcp", json={})).status_code == 403
    refusals = await here.refusals()
    assert any("a persona's token is needed" in line for line in refusals)
    assert any("the human's token is for the console" in line for line in refusals)
