"""Which scenarios are run for what, and docs/conformance.md, which says how they went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from .suite import HANDSHAKE, STATELESS, Found, Outcome

_LISTS = ("completion-complete", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection")
ALONE: dict[str, tuple[str, ...]] = {
    HANDSHAKE: ("server-initialize", "server-session-lifecycle", "server-sse-multiple-streams", "ping", *_LISTS),
    STATELESS: (
        "server-stateless", "server-sse-multiple-streams", "http-header-validation", "caching",
        "sep-2164-resource-not-found", *_LISTS,
    ),
}  # fmt: skip
"""Scenarios that need no fixtures, but for a few checks of `server-stateless`."""
_NO_FIXTURES = "input-required-result-"
"""Some of these pass wherever their tools are missing, which says nothing."""
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
    return "\n".join([_HEAD, *_alone(), _BEHIND, *_behind(direct, through), _CLIENT, *_as_client(clients), _REST])  # fmt: skip


def _version() -> str:
    """Of the suite, from the file that pins it."""
    pinned = json.loads((Path(__file__).parents[1] / "node" / "package.json").read_text())
    return str(pinned["dependencies"]["@modelcontextprotocol/conformance"])


def _alone() -> list[str]:
    return [f"| {version} | `{name}` | passes |" for version, names in ALONE.items() for name in names]


def _behind(direct: Eras, through: Eras) -> list[str]:
    rows = []
    for version, found in direct.items():
        for name in sorted(found):
            if not found[name].ok or name in ALONE[version] or name.startswith(_NO_FIXTURES):
                continue
            rows.append(f"| {version} | `{name}` | {'passes' if through[version][name].ok else 'fails'} |")
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

Scenarios that need nothing from the suite's own fixtures, at `/mcp` as `toolgate up` serves it. A few checks of `server-stateless` call tools of the
suite's own: those are the fixtures' behind the gate.

| version | scenario | |
|---|---|---|"""
_BEHIND = """
## Through the gateway

A server with the suite's fixtures, made with the official SDK, is asked directly, and then behind the gate. This is each scenario that it
passes directly, and how it goes through toolgate. The persona may call everything of that server, and the server may use the client's model (`sampling: allow`).
A layer in front adds the persona's token, and the server's name to the names of tools, prompts and resources.

| version | scenario | through the gateway |
|---|---|---|"""
_CLIENT = """
## The client

The gateway as a client of the suite's servers.

| version | scenario | |
|---|---|---|"""
_REST = """
Not run: `auth/…`, because the gateway does no OAuth; a server's token is given in `headers`. Extensions (tasks, skills) are not spoken.
The fixtures have no tools for `input-required-result-…`, `http-custom-header-server-validation` and `server-sse-polling`. What a server behind the gate wants of
the client, its user or its model, reaches clients of both eras, as toolgate's own questions do.
"""
