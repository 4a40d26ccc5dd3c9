"""Outlines of source files, and the languages that can be outlined, by tree-sitter: also of files that are cut or wrong somewhere.

The parsing is done by the worker. What comes back from it is checked: a file may have taken it over.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import PurePosixPath
from threading import Lock
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.core.records import dataclass, field
from toolgate.workspace.outline.parser import MAX_DEPTH, MAX_NAME, MAX_SYMBOLS
from toolgate.workspace.outline.worker import CPU_SECONDS, Unanswered, Why, Worker

# The languages that can be outlined: their files, their grammar, and which of its nodes define something.


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    name: str
    package: str
    """The distribution that holds its grammar."""
    suffixes: tuple[str, ...]
    kinds: Mapping[str, str]
    function: str = "language"
    bodies: frozenset[str] = frozenset()
    """Nodes that define only with a body; without one they mention what is defined elsewhere."""
    programs: tuple[str, ...] = ()
    """Names in a `#!` line."""
    imports: tuple[str, ...] = ()
    """Nodes that bring in what is defined elsewhere."""
    exports: tuple[str, ...] = ()
    """Nodes that give away what is defined here, in languages that have a word for it."""


_SCRIPT = {
    "class_declaration": "class", "class": "class", "function_declaration": "function",
    "generator_function_declaration": "function", "method_definition": "method", "variable_declarator": "function",
    "field_definition": "method",
}  # fmt: skip
_TYPED = {
    **{node: kind for node, kind in _SCRIPT.items() if node != "field_definition"},
    "abstract_class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
    "type_alias_declaration": "type", "internal_module": "namespace", "module": "namespace",
    "function_signature": "function", "abstract_method_signature": "method", "public_field_definition": "method",
}  # fmt: skip
_C = {
    "function_definition": "function", "struct_specifier": "struct", "union_specifier": "union",
    "enum_specifier": "enum", "type_definition": "type",
}  # fmt: skip
_BODIES = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})

LANGUAGES = (
    Language("python", "tree-sitter-python", (".py", ".pyi", ".pyw"),
             {"class_definition": "class", "function_definition": "function"}, programs=("python", "python3"), imports=("import_statement", "import_from_statement")),
    Language("javascript", "tree-sitter-javascript", (".js", ".mjs", ".cjs", ".jsx"), _SCRIPT, programs=("node",), imports=("import_statement",), exports=("export_statement",)),
    Language("typescript", "tree-sitter-typescript", (".ts", ".mts", ".cts"), _TYPED, "language_typescript", imports=("import_statement",), exports=("export_statement",)),
    Language("tsx", "tree-sitter-typescript", (".tsx",), _TYPED, "language_tsx", imports=("import_statement",), exports=("export_statement",)),
    Language("go", "tree-sitter-go", (".go",),
             {"function_declaration": "function", "method_declaration": "method", "type_spec": "type",
              "type_alias": "type"}, imports=("import_declaration",)),
    Language("rust", "tree-sitter-rust", (".rs",),
             {"function_item": "function", "function_signature_item": "function", "struct_item": "struct",
              "enum_item": "enum", "union_item": "union", "trait_item": "trait", "impl_item": "impl",
              "mod_item": "module", "macro_definition": "macro", "type_item": "type"}, imports=("use_declaration",)),
    Language("java", "tree-sitter-java", (".java",),
             {"class_declaration": "class", "interface_declaration": "interface", "enum_declaration": "enum",
              "record_declaration": "record", "annotation_type_declaration": "annotation",
              "method_declaration": "method", "constructor_declaration": "constructor"}, imports=("import_declaration",)),
    Language("c", "tree-sitter-c", (".c", ".h"), _C, bodies=_BODIES, imports=("preproc_include",)),
    Language("cpp", "tree-sitter-cpp", (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"),
             {**_C, "class_specifier": "class", "namespace_definition": "namespace"}, bodies=_BODIES, imports=("preproc_include", "using_declaration")),
    Language("ruby", "tree-sitter-ruby", (".rb", ".rake"),
             {"class": "class", "module": "module", "method": "method", "singleton_method": "method"},
             programs=("ruby",)),
    Language("c#", "tree-sitter-c-sharp", (".cs",),
             {"namespace_declaration": "namespace", "class_declaration": "class", "struct_declaration": "struct",
              "interface_declaration": "interface", "enum_declaration": "enum", "record_declaration": "record",
              "method_declaration": "method", "constructor_declaration": "constructor",
              "property_declaration": "property", "delegate_declaration": "delegate"}, imports=("using_directive",)),
    Language("php", "tree-sitter-php", (".php",),
             {"namespace_definition": "namespace", "class_declaration": "class", "interface_declaration": "interface",
              "trait_declaration": "trait", "enum_declaration": "enum", "function_definition": "function",
              "method_declaration": "method"}, "language_php", programs=("php",), imports=("namespace_use_declaration",)),
    Language("bash", "tree-sitter-bash", (".sh", ".bash"), {"function_definition": "function"},
             programs=("sh", "bash")),
)  # fmt: skip
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}
_BY_PROGRAM = {program: language for language in LANGUAGES for program in language.programs}


def language_of(path: str, first_line: str = "") -> Language | None:
    """By the name's ending, else by the program that its first line names."""
    found = _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())
    if found is None and first_line.startswith("#!"):
        words = first_line[2:].split()
        names = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
        found = next((_BY_PROGRAM[name] for name in names if name in _BY_PROGRAM), None)
    return found


_KEPT = 128
_KEPT_SYMBOLS = 100_000
_KEPT_LINES = 200
_MANY_LINES = 1 << 31
PATIENCE = 2.0
"""How long to wait for others that are being outlined."""
_NOTES: dict[Why, str] = {
    "busy": "many files are being outlined: ask again",
    "late": f"it takes longer than {CPU_SECONDS:g} s to parse",
    "died": "the parser fails on it",
    "closed": "the gate is closing",
    "cannot start": "the parser could not be started",
}


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
    count: int = 0
    imports: tuple[tuple[int, str], ...] = ()
    """Line and text."""
    exports: tuple[tuple[int, str], ...] = ()
    note: str = ""
    """Why there is less than there might be, if it is not the text."""


class Outliner:
    """Outlines, kept by the content itself, so that they can never be out of date. Close it to end its worker."""

    def __init__(self) -> None:
        self.worker = Worker()
        self._outlines: OrderedDict[tuple[str, bytes], Outline] = OrderedDict()
        self._symbols = 0
        self._lock = Lock()

    def __enter__(self) -> Outliner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.worker.close()

    def outline(self, text: str, language: Language) -> Outline:
        """Never late by much: what cannot be outlined in its time has an empty outline that says so."""
        data = text.encode("utf-8", "replace")
        key = (language.name, hashlib.blake2b(data, digest_size=16).digest())
        with self._lock:
            known = self._outlines.get(key)
            if known is not None:
                self._outlines.move_to_end(key)
                return known
        try:
            made, again = self._made(data.decode(), language), False
        except Unanswered as error:
            made, again = Outline(language.name, [], False, note=_NOTES[error.why]), error.again
        if not again:
            self._keep(key, made)
        return made

    def tokens(self, name: str, text: str, first: int) -> list[tuple[int, int, str, str]]:
        """Syntax tokens: line, column, text and type. None of a text that takes too long."""
        request = {
            "do": "tokens", "name": name, "text": text.encode("utf-8", "replace").decode(), "first": first,
            "paths": _places("pygments") or [],
        }  # fmt: skip
        try:
            said = self.worker.ask(request, PATIENCE).get("tokens")
        except Unanswered:
            return []
        return (
            [tuple(each) for each in said if _is(each, int, int, str, str)] if isinstance(said, list) else []
        )

    def _keep(self, key: tuple[str, bytes], made: Outline) -> None:
        with self._lock:
            if key in self._outlines:
                return
            self._outlines[key] = made
            self._symbols += made.count
            while len(self._outlines) > _KEPT or self._symbols > _KEPT_SYMBOLS:
                _, old = self._outlines.popitem(last=False)
                self._symbols -= old.count

    def _made(self, text: str, language: Language) -> Outline:
        module = language.package.replace("-", "_")
        paths = _places("tree_sitter", module)
        if paths is None:
            raise _not_installed(language)
        said = self.worker.ask(
            {
                "do": "outline", "text": text, "paths": paths,
                "language": {
                    "name": language.name, "module": module, "function": language.function,
                    "kinds": language.kinds, "bodies": list(language.bodies), "imports": language.imports,
                    "exports": language.exports,
                },
            },
            PATIENCE,
        )  # fmt: skip
        if "missing" in said:
            raise _not_installed(language)
        flat = said.get("symbols")
        if not isinstance(flat, list):
            return Outline(language.name, [], False, note=_NOTES["died"])
        symbols, count = _nested(flat)
        note = f"only the first {MAX_SYMBOLS:,} definitions" if said.get("more") is True else ""
        whole = said.get("complete") is True and count == len(flat)
        brought, given = (_lines(said.get(name)) for name in ("imports", "exports"))
        return Outline(language.name, symbols, whole, count, brought, given, note)


def _nested(flat: Sequence[Any]) -> tuple[list[Symbol], int]:
    """By their depths; what is no symbol is left out."""
    top: list[Symbol] = []
    levels = [top]
    count = 0
    for each in flat[:MAX_SYMBOLS]:
        if not _is(each, int, str, str, int, int):
            continue
        depth, name, kind, first, last = each
        if not (0 <= depth < min(len(levels), MAX_DEPTH) and 0 < first <= last < _MANY_LINES):
            continue
        symbol = Symbol(name[:MAX_NAME], kind[:40], first, last)
        levels[depth].append(symbol)
        levels[depth + 1 :] = [symbol.children]
        count += 1
    return top, count


def _lines(said: Any) -> tuple[tuple[int, str], ...]:
    each = said[:_KEPT_LINES] if isinstance(said, list) else []
    return tuple((one[0], one[1][:MAX_NAME]) for one in each if _is(one, int, str))


def _is(value: Any, *types: type) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(types)
        and all(type(item) is wanted for item, wanted in zip(value, types, strict=True))
    )


def _places(*modules: str) -> list[str] | None:
    """The directories where modules are, found without importing them here; None where one is not."""
    try:
        return list(dict.fromkeys(map(_place, modules)))
    except ModuleNotFoundError:
        return None


@cache
def _place(module: str) -> str:
    spec = find_spec(module)
    inside = spec.submodule_search_locations if spec is not None else None
    if not inside:
        raise ModuleNotFoundError(module)
    return os.path.dirname(os.path.abspath(inside[0]))


def _not_installed(language: Language) -> Unavailable:
    return Unavailable(
        f"outlines of {language.name} need tree-sitter and {language.package}, which are not installed",
        "install toolgate with the extra `code`",
    )
