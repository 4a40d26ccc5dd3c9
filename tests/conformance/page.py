"""Which scenarios are run for what, and docs/conformance.md, which says how they went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from .suite import HANDSHAKE, STATELESS, Found, Outcome

_ITS_OWN_TOOL = frozenset(
    {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
)
_LISTS = ("completion-complete", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection")
ALONE: dict[str, dict[str, frozenset[str]]] = {
    HANDSHAKE: dict.fromkeys(
        ("server-initialize", "server-session-lifecycle", "server-sse-multiple-streams", "ping", *_LISTS), frozenset()
    ),
    STATELESS: {
        "server-stateless": _ITS_OWN_TOOL,
        **dict.fromkeys(
            ("server-sse-multiple-streams", "http-header-validation", "caching", "sep-2164-resource-not-found", *_LISTS),
            frozenset(),
        ),
    },
}  # fmt: skip
"""Scenarios that need no fixtures, and the checks of theirs that do."""
_NO_FIXTURES = "input-required-result-"
"""Some of these pass wherever their tools are missing, which says nothing."""
_LOGS = "log messages of servers go to toolgate's log, not into the client's conversation"
_WATCHED = "nothing says when a resource changes"
NOT_PASSED_ON: dict[str, dict[str, str]] = {
    HANDSHAKE: {
        "logging-set-level": _LOGS,
        "tools-call-with-logging": _LOGS,
        "tools-call-sampling": "servers may not use the client's model",
        "resources-subscribe": _WATCHED,
        "resources-unsubscribe": _WATCHED,
    },
    STATELESS: {},
}
AS_CLIENT = (
    ("initialize", HANDSHAKE),
    ("tools_call", HANDSHAKE),
    ("tools_call", STATELESS),
    ("elicitation-sep1034-client-defaults", HANDSHAKE),
    ("sse-retry", HANDSHAKE),
    ("json-schema-2020-12-preservation", HANDSHAKE),
    ("json-schema-2020-12-preservation", STATELESS),
    ("json-schema-ref-no-deref", STATELESS),
    ("request-metadata", STATELESS),
    ("sep-2322-client-request-state", STATELESS),
    ("http-standard-headers", STATELESS),
    ("http-custom-headers", STATELESS),
    ("http-invalid-tool-headers", STATELESS),
)
Clients = Mapping[tuple[str, str], Outcome]
Eras = Mapping[str, Found]


def page(direct: Eras, through: Eras, clients: Clients) -> str:
    return "\n".join([_HEAD, *_alone(through), _BEHIND, *_behind(direct, through), _CLIENT, *_as_client(clients), _REST])  # fmt: skip


def _version() -> str:
    """Of the suite, from the file that pins it."""
    pinned = json.loads((Path(__file__).parents[1] / "node" / "package.json").read_text())
    return str(pinned["dependencies"]["@modelcontextprotocol/conformance"])


def _alone(through: Eras) -> list[str]:
    rows = []
    for version, scenarios in ALONE.items():
        for name, unless in scenarios.items():
            note = "; not counted: two checks that call a tool of the suite's own" if unless else ""
            rows.append(f"| {version} | `{name}` | passes{note} |")
    return rows


def _behind(direct: Eras, through: Eras) -> list[str]:
    rows = []
    for version, found in direct.items():
        for name in sorted(found):
            if not found[name].ok or name in ALONE[version] or name.startswith(_NO_FIXTURES):
                continue
            said = "passes" if through[version][name].ok else f"not passed on: {NOT_PASSED_ON[version][name]}"
            rows.append(f"| {version} | `{name}` | {said} |")
    return rows


def _as_client(clients: Clients) -> list[str]:
    return [
        f"| {version} | `{name}` | {'passes' if one.ok else 'fails'} |"
        for (name, version), one in clients.items()
    ]


_HEAD = f"""\
# Conformance

What the official MCP conformance suite (`@modelcontextprotocol/conformance` {_version()}) finds, in both eras of the protocol. This page is
written by [tests/conformance](../tests/conformance/test_conformance.py), which runs with every `make test` and fails where the page is no longer true.

## The server

Scenarios that need nothing from the suite's own fixtures, at `/mcp` as `toolgate up` serves it.

| version | scenario | |
|---|---|---|"""
_BEHIND = """
## Through the gateway

A server with the suite's fixtures, made with the official SDK, is asked directly, and then behind the gate. This is each scenario that it
passes directly, and how it goes through toolgate. A layer in front adds a persona's token, and the server's name to the names of tools, prompts and resources.

| version | scenario | through the gateway |
|---|---|---|"""
_CLIENT = """
## The client

The gateway as a client of the suite's servers.

| version | scenario | |
|---|---|---|"""
_REST = """
Not run: `auth/…`, because the gateway does no OAuth; a server's token is given in `headers`. Extensions (tasks, skills) are not spoken.
The fixtures have no tools for `input-required-result-…`, `http-custom-header-server-validation` and `server-sse-polling`. What a server behind the gate asks by an
unfinished result reaches a client of the handshake era, and is declined for a client of 2026-07-28; toolgate's own questions reach both.
"""
