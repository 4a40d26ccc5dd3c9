"""The outline of a source file, by tree-sitter: also of files that are cut or wrong somewhere.

The parsing is done by the worker. What comes back from it is checked: a file may have taken it over.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.core.records import dataclass, field
from toolgate.workspace.outline.languages import Language
from toolgate.workspace.outline.parser import MAX_DEPTH, MAX_NAME, MAX_SYMBOLS
from toolgate.workspace.outline.worker import CPU_SECONDS, Unanswered, Why, Worker

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
