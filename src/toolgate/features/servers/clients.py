"""Reading the files in which MCP clients keep their servers. Nothing is started, nothing is believed.

Known: `mcpServers` (Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI and others), VS Code's `servers`, Zed's
`context_servers`, OpenCode's `mcp`, and Codex' `mcp_servers` in TOML. JSON may have comments and trailing commas.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolgate.core.errors import InvalidArgs, NotFound

MAX_BYTES = 4 << 20
_PLACES = (
    ("mcpServers",),
    ("servers",),
    ("mcp", "servers"),
    ("context_servers",),
    ("mcp_servers",),
    ("mcp",),
)
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.S)
_STRING_OR_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])', re.S)


def servers_in(file: Path) -> dict[str, dict[str, Any]]:
    """Each server's entry as `command, args, env, cwd` or `url, transport, headers`, with `enabled` where it is said."""
    data = _parsed(file)
    for place in _PLACES:
        found: Any = data
        for key in place:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping) and any(isinstance(entry, Mapping) for entry in found.values()):
            return {str(name): _entry(str(name), entry) for name, entry in found.items()}
    raise InvalidArgs(
        f"{file} names no MCP servers", "give a file with `mcpServers`, `servers` or `context_servers`"
    )


def _parsed(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}", "give the client's file, such as .mcp.json") from None
    except IsADirectoryError:
        raise InvalidArgs(f"{file} is a directory", "give the file in it, such as .mcp.json") from None
    if len(raw) > MAX_BYTES:
        raise InvalidArgs(f"{file} has more than {MAX_BYTES:,} bytes", "give the client's MCP file")
    try:
        text = raw.decode("utf-8-sig")
        data = tomllib.loads(text) if file.suffix == ".toml" else json.loads(_without_comments(text))
    except (ValueError, RecursionError) as error:
        raise InvalidArgs(f"{file} cannot be read: {error}", "correct the file") from None
    if not isinstance(data, Mapping):
        raise InvalidArgs(f"{file} is not an object", "give the client's MCP file")
    return data


def _without_comments(text: str) -> str:
    try:
        json.loads(text)
    except ValueError:
        text = _STRING_OR_COMMENT.sub(lambda m: m.group() if m.group()[0] == '"' else " ", text)
        return _STRING_OR_COMMA.sub(lambda m: m.group() if m.group()[0] == '"' else " ", text)
    return text


def _entry(name: str, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise InvalidArgs(f"the server {name!r} is not an object", "correct the client's file")
    made: dict[str, Any] = {}
    if entry.get("disabled") is True or entry.get("enabled") is False:
        made["enabled"] = False
    url = next((entry[key] for key in ("url", "serverUrl", "httpUrl") if entry.get(key)), None)
    if url is not None:
        made["url"] = _text(name, "url", url)
        if _is_sse(entry, str(url)):
            made["transport"] = "sse"
        headers = entry.get("headers") or entry.get("http_headers") or {}
        made["headers"] = _texts(name, "headers", headers)
        return _without_empty(made)
    command: Any = entry.get("command")
    args: Any = entry.get("args") or []
    if isinstance(command, Mapping):  # Zed's older form
        entry = command
        command, args = entry.get("path"), entry.get("args") or []
    if isinstance(command, list):  # OpenCode
        command, args = (command[0] if command else None), [*command[1:], *args]
    if not isinstance(command, str) or not isinstance(args, list):
        raise InvalidArgs(f"the server {name!r} has neither a command nor a url", "correct the client's file")
    made["command"] = command
    made["args"] = [_text(name, "args", arg) for arg in args]
    made["env"] = _texts(name, "env", entry.get("env") or entry.get("environment") or {})
    if entry.get("cwd"):
        made["cwd"] = _text(name, "cwd", entry["cwd"])
    return _without_empty(made)


def _is_sse(entry: Mapping[str, Any], url: str) -> bool:
    said = str(entry.get("type") or entry.get("transport") or "").lower()
    return said == "sse" or (not said and not entry.get("httpUrl") and url.rstrip("/").endswith("/sse"))


def _text(name: str, where: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidArgs(f"{where} of the server {name!r} holds {value!r:.80}", "correct the client's file")
    return str(value)


def _texts(name: str, where: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidArgs(f"{where} of the server {name!r} is not an object", "correct the client's file")
    return {str(key): _text(name, where, item) for key, item in value.items()}


def _without_empty(made: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in made.items() if value not in ([], {})}
