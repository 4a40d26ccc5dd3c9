"""What the parsing worker runs: tree-sitter and Pygments on files that nobody vouches for.

A program of its own, started by `worker.py`; it imports nothing of toolgate. It reads requests from stdin and answers on
stdout: four bytes of length, then JSON. A request that costs more processor time than it may is ended by the kernel,
with this process, also in the middle of C code; so is one that wants too much memory. It ends when stdin does.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MEMORY = 768 << 20
MAX_NAME = 200
MAX_DEPTH = 200
"""Levels of the syntax tree that are looked into: the cost of looking grows with the square of the depth."""
MAX_SYMBOLS = 20_000
MAX_TOKENS = 50_000
_FUNCTIONS = ("arrow_function", "function_expression", "generator_function", "function")
_TYPES = {"struct_type": "struct", "interface_type": "interface"}
_INSIDE = frozenset({"class", "struct", "interface", "trait", "impl", "enum", "record"})
_grammars: dict[str, tuple[Any, Any]] = {}


def main() -> None:
    _limit()
    while (request := _receive()) is not None:
        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        seconds = float(request["seconds"])
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 2, hard))  # whole seconds only
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answer = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _send(answer)


def _limit() -> None:
    """Signals that end us must do so whatever we inherited."""
    for number in (signal.SIGPROF, signal.SIGXCPU, signal.SIGPIPE, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for what, most in (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_AS, MEMORY),
    ):  # fmt: skip
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _receive() -> dict[str, Any] | None:
    head = _read(4)
    body = _read(int.from_bytes(head, "big")) if len(head) == 4 else b""
    return json.loads(body) if body else None


def _read(size: int) -> bytes:
    parts: list[bytes] = []
    while size and (chunk := os.read(0, min(size, 1 << 20))):
        parts.append(chunk)
        size -= len(chunk)
    return b"".join(parts)


def _send(answer: dict[str, Any]) -> None:
    body = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    left = memoryview(len(body).to_bytes(4, "big") + body)
    while left:
        left = left[os.write(1, left) :]


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    sys.path += [path for path in request["paths"] if path not in sys.path]
    made: Callable[[dict[str, Any]], dict[str, Any]] = _DEEDS[request["do"]]
    try:
        return made(request)
    except ImportError as error:
        return {"missing": str(error)[:200]}
    except Exception as error:  # a grammar or lexer that fails is one that has nothing to say
        return {"failed": f"{type(error).__name__}: {error}"[:200]}


def outline(request: dict[str, Any]) -> dict[str, Any]:
    """What is defined, in the order of the text: depth, name, kind, first and last line."""
    import tree_sitter

    language = request["language"]
    grammar, query = _grammar(language)
    root = tree_sitter.Parser(grammar).parse(request["text"].encode("utf-8", "replace")).root_node
    cursor = tree_sitter.QueryCursor(query)
    cursor.set_max_start_depth(MAX_DEPTH)
    captured = cursor.captures(root)
    about: dict[str, Any] = {name: _lines_of(captured.get(name, [])) for name in ("imports", "exports")}
    about["complete"] = not root.has_error
    found = captured.get("defined", [])
    found.sort(key=lambda node: (node.start_byte, -node.end_byte))
    symbols: list[tuple[int, str, str, int, int]] = []
    open_: list[tuple[int, str]] = []
    for node in found:
        while open_ and node.start_byte >= open_[-1][0]:
            open_.pop()
        symbol = _symbol(node, language, open_[-1][1] if open_ else "")
        if symbol is None:
            continue
        if len(symbols) >= MAX_SYMBOLS:
            return {**about, "symbols": symbols, "complete": False, "more": True}
        symbols.append((len(open_), *symbol))
        open_.append((node.end_byte, symbol[1]))
    return {**about, "symbols": symbols}


def _lines_of(nodes: list[Any]) -> list[tuple[int, str]]:
    """Where each begins and how: an import whole, of anything longer the start."""
    nodes.sort(key=lambda node: node.start_byte)
    found = []
    for node in nodes[:MAX_SYMBOLS]:
        said = node.text[: 4 * MAX_NAME].decode("utf-8", "replace").partition("{\n")[0]
        found.append((node.start_point[0] + 1, " ".join(said.split())[:MAX_NAME]))
    return found


def _grammar(language: dict[str, Any]) -> tuple[Any, Any]:
    import tree_sitter

    known = _grammars.get(language["name"])
    if known is None:
        module = importlib.import_module(language["module"])
        grammar = tree_sitter.Language(getattr(module, language["function"])())
        wanted = (
            ("defined", language["kinds"]),
            ("imports", language["imports"]),
            ("exports", language["exports"]),
        )
        query = "\n".join(
            f"[{' '.join(f'({node})' for node in nodes)}] @{name}" for name, nodes in wanted if nodes
        )
        known = _grammars[language["name"]] = grammar, tree_sitter.Query(grammar, query)
    return known


def _symbol(node: Any, language: dict[str, Any], parent: str) -> tuple[str, str, int, int] | None:
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
    return (name[:MAX_NAME], kind, node.start_point[0] + 1, _last_line(node)) if name else None


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


def tokens(request: dict[str, Any]) -> dict[str, Any]:
    """Syntax tokens without white space: line, column, text, type."""
    from pygments.lexers import find_lexer_class_for_filename

    lexer = find_lexer_class_for_filename(request["name"])
    if lexer is None:
        return {"tokens": []}
    made = lexer(stripnl=False, ensurenl=False).get_tokens(request["text"])
    found: list[tuple[int, int, str, str]] = []
    for token in _placed(made, request["first"]):
        if len(found) >= MAX_TOKENS:
            break
        found.append(token)
    return {"tokens": found}


def _placed(made: Any, line: int) -> Iterator[tuple[int, int, str, str]]:
    from pygments.token import Token, Whitespace

    column = 1
    for kind, value in made:
        parts: Sequence[str] = value.split("\n")
        for index, part in enumerate(parts):
            if index:
                line, column = line + 1, 1
            if part.strip() and kind not in Whitespace:
                yield line, column, part, (".".join(kind) if kind is not Token else "Token") or "Text"
            column += len(part)


_DEEDS = {"outline": outline, "tokens": tokens}

if __name__ == "__main__":
    main()
