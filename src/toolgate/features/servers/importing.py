"""Import of a client's servers into `servers:` of toolgate.yaml: names made safe, secrets left behind, and the lines that
somebody wrote by hand as they are, byte for byte."""

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

import yaml

from toolgate.core.errors import InvalidArgs, NotFound, SetupError
from toolgate.features.servers.config import NAME, RESERVED, looks_secret
from toolgate.project import config

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


# Adding them to a toolgate.yaml.

KEY = "servers"


def with_servers(text: str, servers: Mapping[str, Mapping[str, Any]], file: str) -> str:
    """The text with these servers added. Raises SetupError where that cannot be done without touching the rest."""
    end = "\r\n" if "\r\n" in text else "\n"
    made = _inserted(text, servers, end, file)
    before, after = config.loads(text, file), config.loads(made, file)
    kept = {name: spec for name, spec in after.section(KEY).items() if name not in servers}
    if (
        kept != before.section(KEY)
        or _rest(after) != _rest(before)
        or not set(servers) <= set(after.section(KEY))
    ):
        raise _by_hand(servers, file)
    return made


def _rest(read: config.Config) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """All that a configuration says besides."""
    return read.model_dump(exclude={KEY}), read.unread


def _inserted(text: str, servers: Mapping[str, Mapping[str, Any]], end: str, file: str) -> str:
    section = _section(text)
    if section is None:
        gap = "" if not text or text.endswith("\n") else end
        return f"{text}{gap}{end}{end.join([f'{KEY}:', *block(servers, 2)])}{end}"
    key, value = section
    lines = text.splitlines(keepends=True)
    if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
        indent = value.start_mark.column
        last = _last_line(value)
    elif isinstance(value, yaml.ScalarNode) and not value.value:  # `servers:` with nothing behind it
        indent, last = 2, key.end_mark.line
    elif isinstance(value, yaml.MappingNode) and not value.value:  # `servers: {}`
        indent, last = 2, value.end_mark.line
        if value.start_mark.line != last:
            raise _by_hand(servers, file)
        line = lines[last]
        lines[last] = line[: value.start_mark.column].rstrip() + line[value.end_mark.column :]
    else:
        raise _by_hand(servers, file)
    if not lines[last].endswith("\n"):
        lines[last] += end
    lines[last + 1 : last + 1] = [line + end for line in block(servers, indent)]
    return "".join(lines)


def _section(text: str) -> tuple[Any, Any] | None:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((key, value) for key, value in node.value if key.value == KEY), None)


def _last_line(node: Any) -> int:
    """Where the content of a block ends; its own end mark lies behind comments and blank lines."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _last_line(node.value[-1])
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return max(int(node.start_mark.line), int(node.end_mark.line) - 1)
    return int(node.end_mark.line)


def block(servers: Mapping[str, Mapping[str, Any]], indent: int) -> list[str]:
    """The servers as lines of YAML. Every text is quoted as JSON, which YAML reads as it stands."""
    pad = " " * indent
    lines: list[str] = []
    for name, entry in servers.items():
        lines.append(f"{pad}{name}:")
        for key, value in entry.items():
            if isinstance(value, Mapping):
                lines.append(f"{pad}  {key}:")
                lines += [f"{pad}    {_quoted(inner)}: {_quoted(item)}" for inner, item in value.items()]
            elif isinstance(value, list):
                lines.append(f"{pad}  {key}: [{', '.join(map(_quoted, value))}]")
            else:
                lines.append(f"{pad}  {key}: {_quoted(value)}")
    return lines


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # YAML has no surrogate pairs


def _by_hand(servers: Mapping[str, Mapping[str, Any]], file: str) -> SetupError:
    shown = "\n".join(block(servers, 2))
    return SetupError(
        f"{file} has `{KEY}:` written in a way that cannot be added to without rewriting it",
        f"add these lines to it by hand:\n{shown}",
    )
