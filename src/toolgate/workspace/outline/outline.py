"""The outline of a source file, by tree-sitter: also of files that are cut or wrong somewhere."""

from __future__ import annotations

import hashlib
import importlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.workspace.outline.languages import Language

MAX_NAME = 200
MAX_DEPTH = 200
"""Levels of the syntax tree that are looked into: the cost of looking grows with the square of the depth."""
_KEPT = 128
_FUNCTIONS = ("arrow_function", "function_expression", "generator_function", "function")
_TYPES = {"struct_type": "struct", "interface_type": "interface"}
_INSIDE = frozenset({"class", "struct", "interface", "trait", "impl", "enum", "record"})


@dataclass(slots=True)
class Symbol:
    name: str
    kind: str
    start_line: int
    end_line: int
    children: list[Symbol] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Outline:
    language: str
    symbols: list[Symbol]
    complete: bool
    """False where the text is broken or cut somewhere, so that something may be missing."""


_outlines: OrderedDict[tuple[str, bytes], Outline] = OrderedDict()
_lock = Lock()


def outline(text: str, language: Language) -> Outline:
    """Kept by the content itself, so that it can never be out of date."""
    data = text.encode("utf-8", "replace")
    key = (language.name, hashlib.blake2b(data, digest_size=16).digest())
    with _lock:
        known = _outlines.get(key)
        if known is not None:
            _outlines.move_to_end(key)
            return known
    made = _make(data, language)
    with _lock:
        _outlines[key] = made
        while len(_outlines) > _KEPT:
            _outlines.popitem(last=False)
    return made


def _make(data: bytes, language: Language) -> Outline:
    import tree_sitter

    grammar, query = _grammar(language.name, language)
    root = tree_sitter.Parser(grammar).parse(data).root_node
    cursor = tree_sitter.QueryCursor(query)
    cursor.set_max_start_depth(MAX_DEPTH)
    found = cursor.captures(root).get("defined", [])
    found.sort(key=lambda node: (node.start_byte, -node.end_byte))
    top: list[Symbol] = []
    open_: list[tuple[int, Symbol]] = []
    for node in found:
        while open_ and node.start_byte >= open_[-1][0]:
            open_.pop()
        symbol = _symbol(node, language, open_[-1][1].kind if open_ else "")
        if symbol is not None:
            (open_[-1][1].children if open_ else top).append(symbol)
            open_.append((node.end_byte, symbol))
    return Outline(language.name, top, not root.has_error)


@cache
def _grammar(name: str, language: Language) -> tuple[Any, Any]:
    try:
        import tree_sitter

        module = importlib.import_module(language.package.replace("-", "_"))
    except ImportError:
        raise Unavailable(
            f"outlines of {name} need tree-sitter and {language.package}, which are not installed",
            "install toolgate with the extra `code`",
        ) from None
    grammar = tree_sitter.Language(getattr(module, language.function)())
    wanted = " ".join(f"({node})" for node in language.kinds)
    return grammar, tree_sitter.Query(grammar, f"[{wanted}] @defined")


def _symbol(node: Any, language: Language, parent: str) -> Symbol | None:
    kind = language.kinds[node.type]
    if node.type in language.bodies and node.child_by_field_name("body") is None:
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
    return Symbol(name[:MAX_NAME], kind, node.start_point[0] + 1, _last_line(node))


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
