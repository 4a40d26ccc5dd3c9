"""Source files parsed by tree-sitter and lexed by Pygments. Run as a program it serves requests: see `process`.

It imports nothing of ours, so that the program starts quickly, and it knows languages only by what a request says.
"""

from __future__ import annotations

import importlib
import json
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, BinaryIO

MAX_NAME = 200
MAX_DEPTH = 200
"""Levels of the syntax tree that are looked into."""
_FUNCTIONS = ("arrow_function", "function_expression", "generator_function", "function")
_TYPES = {"struct_type": "struct", "interface_type": "interface"}
_INSIDE = frozenset({"class", "struct", "interface", "trait", "impl", "enum", "record"})
_FRAME = struct.Struct(">II")
Row = list[Any]
"""Name, kind, first line, last line, and the rows of what it contains."""


def parse(data: bytes, language: Mapping[str, Any]) -> tuple[list[Row], bool]:
    """What is defined, outermost first, and whether all of the text could be read."""
    import tree_sitter

    root = tree_sitter.Parser(_grammar(language["module"], language["function"])).parse(data).root_node
    found = _nodes(root, frozenset(language["kinds"]))
    found.sort(key=lambda node: (node.start_byte, -node.end_byte))
    top: list[Row] = []
    open_: list[tuple[int, Row]] = []
    for node in found:
        while open_ and node.start_byte >= open_[-1][0]:
            open_.pop()
        row = _row(node, language, open_[-1][1][1] if open_ else "")
        if row is not None:
            (open_[-1][1][4] if open_ else top).append(row)
            open_.append((node.end_byte, row))
    return top, not root.has_error


def _nodes(root: Any, kinds: frozenset[str]) -> list[Any]:
    """By hand: the library's own queries take the square of the depth."""
    found: list[Any] = []
    cursor, depth = root.walk(), 0
    down, right, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    while True:
        node = cursor.node
        if node.type in kinds and node.is_named:
            found.append(node)
        if depth < MAX_DEPTH and down():
            depth += 1
            continue
        while not right():
            if not up():
                return found
            depth -= 1


@cache
def _grammar(module: str, function: str) -> Any:
    import tree_sitter

    return tree_sitter.Language(getattr(importlib.import_module(module), function)())


def _row(node: Any, language: Mapping[str, Any], parent: str) -> Row | None:
    kind = language["kinds"][node.type]
    if node.type in language["bodies"] and node.child_by_field_name("body") is None:
        return None
    value = node.child_by_field_name("value")
    if node.type in ("variable_declarator", "field_definition", "public_field_definition") and (
        value is None or value.type not in _FUNCTIONS
    ):
        return None
    named = node.child_by_field_name("type")
    if node.type == "type_spec" and named is not None:
        kind = _TYPES.get(named.type, kind)
    if kind == "function" and parent in _INSIDE:
        kind = "method"
    name = _name(node)
    if not name:
        return None
    return [name[:MAX_NAME], kind, node.start_point[0] + 1, _last_line(node), []]


def _last_line(node: Any) -> int:
    row, column = node.end_point
    return int(row) + (1 if column or row == node.start_point[0] else 0)


def _name(node: Any) -> str:
    if node.type == "impl_item":
        about, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
        return f"{_text(trait)} for {_text(about)}" if trait is not None else _text(about)
    named = node.child_by_field_name("name") or node.child_by_field_name("property")
    if named is None:
        named = node.child_by_field_name("declarator")
        while named is not None:  # C: the name is inside pointers, arrays and parameter lists
            inner = named.child_by_field_name("declarator")
            if inner is None and named.type == "reference_declarator":
                inner = named.named_children[0] if named.named_children else None
            if inner is None:
                break
            named = inner
    return _text(named)


def _text(node: Any) -> str:
    return "" if node is None or node.text is None else " ".join(node.text.decode("utf-8", "replace").split())


def lex(data: bytes, asked: Mapping[str, Any]) -> list[Row]:
    """Line, column, text and type of each token that is no white space; none where the language is not known."""
    from pygments.lexers import find_lexer_class_for_filename
    from pygments.token import Token, Whitespace

    lexer = find_lexer_class_for_filename(asked["name"])
    if lexer is None:
        return []
    found: list[Row] = []
    line, column = asked["first"], 1
    for kind, value in lexer(stripnl=False, ensurenl=False).get_tokens(data.decode()):
        for index, part in enumerate(value.split("\n")):
            if index:
                line, column = line + 1, 1
            if part.strip() and kind not in Whitespace:
                name = ".".join(kind) if kind is not Token else "Token"
                found.append([line, column, part, name or "Text"])
            column += len(part)
    return found


WORK: dict[str, Callable[[bytes, Mapping[str, Any]], Any]] = {"parse": parse, "lex": lex}


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Each request is two lengths, a JSON header and the text. Whoever takes too long is ended by its own alarm."""
    while frame := source.read(_FRAME.size):
        head, body = _FRAME.unpack(frame)
        asked = json.loads(source.read(head))
        data = source.read(body)
        signal.alarm(asked["seconds"])
        answer = json.dumps(WORK[asked["work"]](data, asked)).encode()
        signal.alarm(0)
        sink.write(struct.pack(">I", len(answer)) + answer)
        sink.flush()


if __name__ == "__main__":
    import resource

    sys.path[:] = json.loads(sys.argv[1])
    most = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin.buffer, sys.stdout.buffer)
