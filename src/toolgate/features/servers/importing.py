"""Import of a client's servers into `servers:` of toolgate.yaml: names made safe, secrets left behind."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.features.servers.config import NAME, RESERVED, looks_secret

# Reading the files in which MCP clients keep their servers. Nothing is started, nothing is believed. Known:
# `mcpServers` (Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI and others), VS Code's `servers`,
# Zed's `context_servers`, OpenCode's `mcp`, and Codex' `mcp_servers` in TOML. JSON may have comments and
# trailing commas.

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


_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-.*)?")
_INPUT = re.compile(r"input:([A-Za-z0-9_-]+)")
_KEYLIKE = re.compile(
    r"^(sk-|pk-|rk_|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abposr]-|AKIA|ASIA|AIza|ya29\.|eyJ|hf_|npm_|pypi-|lin_api_|ntn_|secret_)"
)
_RANDOM = re.compile(r"(?=[^\s/\\:]*\d)(?=[^\s/\\:]*[A-Za-z])[A-Za-z0-9+=_.-]{32,}")
_FLAG = re.compile(r"(--?[A-Za-z][A-Za-z0-9_-]*)(=(.*))?", re.S)
_SCHEME = re.compile(r"(Bearer|Basic|Token)\s+", re.I)


@dataclass
class Imported:
    """One server as it would be written, and what a human should know about it."""

    name: str
    entry: dict[str, Any]
    notices: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    """What must be set in the environment for it to start."""


def converted(found: Mapping[str, Mapping[str, Any]], taken: frozenset[str]) -> list[Imported]:
    made: list[Imported] = []
    for original, entry in found.items():
        name, why = _free_name(original, taken | {other.name for other in made})
        one = Imported(name, {})
        if why:
            one.notices.append(f"{original!r} is called `{name}` here, because {' and '.join(why)}")
        for key, value in entry.items():
            one.entry[key] = _value(one, key, value)
        made.append(one)
    return made


def is_toolgate(entry: Mapping[str, Any]) -> bool:
    """Whether it starts toolgate's own MCP server, by whatever launcher: a gate behind itself would ask twice."""
    words = [str(entry.get("command", "")), *map(str, entry.get("args", ()))]
    names = [PurePath(word).stem for word in words]
    return any(pair == ("toolgate", "mcp") for pair in pairwise(names))


def _free_name(original: str, taken: frozenset[str]) -> tuple[str, list[str]]:
    """A name that it can have, and why it is another."""
    why = []
    plain = re.sub(r"[^a-z0-9]+", "-", original.lower()).strip("-")
    if plain != original:
        why.append("names have only lower-case letters, digits and -")
    if not NAME.fullmatch(plain):
        plain = f"s-{plain}".rstrip("-")[:32]
        why.append("names begin with a letter and have at most 40 characters")
    if plain in RESERVED:
        why.append(f"`{plain}` is a family of toolgate's own tools")
        plain = f"{plain}-server"
    name, count = plain, 1
    while name in taken:
        count += 1
        name = f"{plain}-{count}"
    return name, why if name == plain else [*why, f"there is a `{plain}` already"]


def _value(one: Imported, key: str, value: Any) -> Any:
    match key:
        case "env":
            return {name: _setting(one, name, text, name) for name, text in value.items()}
        case "headers":
            return {name: _setting(one, name, text, _variable(one, name)) for name, text in value.items()}
        case "args":
            return _args(one, value)
        case "url":
            return _url(one, value)
        case "command" | "cwd":
            return _references(one, value)
        case _:
            return value


def _setting(one: Imported, name: str, text: str, variable: str) -> str:
    if "${" in text:
        return _references(one, text)
    if not text or not (looks_secret(name) or _is_key(text)):
        return text
    scheme = _SCHEME.match(text)
    return (scheme.group() if scheme else "") + _left_behind(one, f"the value of {name}", variable)


def _args(one: Imported, args: list[str]) -> list[str]:
    made: list[str] = []
    flag = ""
    for arg in args:
        match = _FLAG.fullmatch(arg)
        if "${" in arg:
            made.append(_references(one, arg))
        elif match and match.group(3) and (looks_secret(match.group(1)) or _is_key(match.group(3))):
            left = _left_behind(one, f"the value of {match.group(1)}", _variable(one, match.group(1)))
            made.append(f"{match.group(1)}={left}")
        elif not arg.startswith("-") and ((flag and looks_secret(flag)) or _is_key(arg)):
            made.append(
                _left_behind(one, f"the value after {flag or 'its command'}", _variable(one, flag or "key"))
            )
        elif "://" in arg and "@" in arg:
            made.append(_url(one, arg))
        else:
            made.append(arg)
        flag = arg if match and not match.group(2) else ""
    return made


def _url(one: Imported, url: str) -> str:
    if "${" in url:
        return _references(one, url)
    parts = urlsplit(url)
    if parts.password:
        left = _left_behind(one, "the password of its address", _variable(one, "password"))
        url = url.replace(f":{parts.password}@", f":{left}@", 1)
    for name, value in parse_qsl(parts.query):
        if value and (looks_secret(name) or _is_key(value)):
            left = _left_behind(one, f"{name} of its address", _variable(one, name))
            url = url.replace(f"{name}={value}", f"{name}={left}", 1)
    return url


def _references(one: Imported, text: str) -> str:
    """`${VAR}`, `${env:VAR}` and `${VAR:-default}` of the clients; an input that a client asks for becomes a variable."""

    def refer(match: re.Match[str]) -> str:
        asked = _INPUT.fullmatch(match.group(1))
        plain = _VARIABLE.fullmatch(match.group(1))
        if match.group(1) in ("workspaceFolder", "workspaceRoot"):
            return "."
        if asked:
            return _left_behind(one, f"the input {asked.group(1)}", _variable(one, asked.group(1)))
        if not plain:
            one.notices.append(f"`{match.group()}` means nothing here and was kept as plain text")
            return f"${match.group()}"
        one.variables.append(plain.group(1))
        return f"${{env:{plain.group(1)}}}"

    return _REFERENCE.sub(refer, text)


def _left_behind(one: Imported, what: str, variable: str) -> str:
    one.notices.append(f"{what} looks like a secret and was not copied: set {variable} in the environment")
    one.variables.append(variable)
    return f"${{env:{variable}}}"


def _variable(one: Imported, name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", f"{one.name}_{name.lstrip('-')}".upper()).strip("_")


def _is_key(value: str) -> bool:
    """Known beginnings, long random words, and addresses with a password in them."""
    if _KEYLIKE.match(value) or _SCHEME.match(value):
        return True
    return bool(_RANDOM.fullmatch(value)) or bool(re.match(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", value))
