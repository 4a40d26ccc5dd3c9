"""`completion/complete`: what could be typed for an argument of a prompt. Only names that the persona sees anyway."""

from __future__ import annotations

from collections.abc import Iterable

from toolgate.faces.mcp.jsonrpc import INVALID_PARAMS, Message, RpcError

MOST = 100
"""The protocol's own limit."""


def complete(params: Message, tools: Iterable[str]) -> Message:
    ref, argument = params.get("ref"), params.get("argument")
    if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(INVALID_PARAMS, "Invalid params: ref names neither a prompt nor a resource")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RpcError(INVALID_PARAMS, "Invalid params: argument has no name and value")
    wanted = (ref.get("type"), ref.get("name"), argument.get("name")) == (
        "ref/prompt",
        "explain_refusal",
        "tool",
    )
    found = [name for name in tools if name.startswith(argument["value"])] if wanted else []
    return {"completion": {"values": found[:MOST], "total": len(found), "hasMore": len(found) > MOST}}
