"""Adding servers to a toolgate.yaml that somebody wrote by hand: their lines stay as they are, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from toolgate.core.errors import SetupError
from toolgate.project import config

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
