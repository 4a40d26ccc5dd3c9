"""YAML with line numbers: plain data, and for every key and element the line it stands on.

Only plain YAML is read: no anchors, no aliases, no tags, no duplicate keys, no deep nesting. Whatever text comes
in, the answer is data or a ConfigError that says where and what to do. PyYAML is loaded when there is something to read: most
times a file is known already (`checked.py`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from toolgate.core.display import key_shown
from toolgate.core.errors import ConfigError
from toolgate.core.records import dataclass, field

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 1 << 20
MAX_DEPTH = 24
_PREFIX = "tag:yaml.org,2002:"
Place = tuple[str | int, ...]


@dataclass(slots=True)
class Document:
    data: Any
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of a key or element, or of the nearest thing around it that the file spells out."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


@cache
def _loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses anchors, aliases and deep nesting while composing, before anything can grow."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            if getattr(event, "anchor", None) is not None:
                line = event.start_mark.line + 1
                raise _YamlRefused(
                    "anchors and aliases (`&`, `*`) are not read", "write the value out; quote a `*`", line
                )
            if self.depth >= MAX_DEPTH:
                line = event.start_mark.line + 1
                raise _YamlRefused(f"nested deeper than {MAX_DEPTH} levels", "flatten it", line)
            self.depth += 1
            try:
                node = super().compose_node(parent, index)
            finally:
                self.depth -= 1
            if isinstance(node, yaml.ScalarNode) and any("\ud800" <= char <= "\udfff" for char in node.value):
                # written as an escape: no text that could be kept, compared or shown
                raise _YamlRefused(
                    "half a character (a surrogate)", "write the whole one", node.start_mark.line + 1
                )
            return node

    return Loader


class _YamlRefused(Exception):
    def __init__(self, message: str, fix: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.line = line


def read(text: str, file: str) -> Document:
    import yaml

    try:
        return _read(text)
    except _YamlRefused as error:
        raise ConfigError(error.message, error.fix, file, error.line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "it cannot be read"
        raise ConfigError(
            f"broken YAML: {problem}", "check indentation, quotes and brackets", file, line
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError("broken YAML: a control character", "remove it", file, line) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"broken YAML: {error}", "check indentation and brackets", file, 1) from None


def _read(text: str) -> Document:
    loader = _loader()(text)
    try:
        node = loader.get_single_node()
    except (ValueError, IndexError, RecursionError) as error:  # PyYAML's scanner lets a few through
        raise _YamlRefused(f"broken YAML: {error}", "check numbers and escapes", loader.line + 1) from None
    finally:
        loader.dispose()
    document = Document(None)
    if node is not None:
        document.data = _value(node, (), document.lines)
    return document


def _value(node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    import yaml

    line = node.start_mark.line + 1
    lines.setdefault(place, line)
    if isinstance(node, yaml.MappingNode) and node.tag == _PREFIX + "map":
        return _mapping(node, place, lines)
    if isinstance(node, yaml.SequenceNode) and node.tag == _PREFIX + "seq":
        return [_value(item, (*place, index), lines) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, line)
    raise _YamlRefused(f"the tag `{node.tag}` is not read", "remove it", line)


def _mapping(node: yaml.MappingNode, place: Place, lines: dict[Place, int]) -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = {}
    for key, item in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise _YamlRefused(
                "a key is not a plain text", "write `key: value`; quote braces and brackets", line
            )
        if key.tag == _PREFIX + "merge":
            raise _YamlRefused("merging with `<<` is not read", "write the keys out", line)
        if key.value in found:
            first = lines[(*place, key.value)]
            told = f"the key `{key_shown(key.value)}` is there twice, first on line {first}"
            raise _YamlRefused(told, "remove one", line)
        lines[(*place, key.value)] = line
        found[key.value] = _value(item, (*place, key.value), lines)
    return found


def _scalar(node: yaml.ScalarNode, line: int) -> Any:
    import yaml

    kind = node.tag.removeprefix(_PREFIX)
    if kind in ("str", "timestamp", "value"):  # a date stays the text it was written as
        return node.value
    if kind == "null":
        return None
    if kind not in ("bool", "int", "float"):
        raise _YamlRefused(f"the tag `{node.tag}` is not read", "remove it, or quote the value", line)
    constructor = yaml.constructor.SafeConstructor()
    try:
        return getattr(constructor, f"construct_yaml_{kind}")(node)
    except (ValueError, KeyError, IndexError, OverflowError):
        raise _YamlRefused(
            f"{key_shown(node.value)!r} is not a {kind}", "correct or quote it", line
        ) from None
