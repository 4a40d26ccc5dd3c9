"""The outline of a source file, by tree-sitter: also of files that are cut or wrong somewhere."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

from toolgate.core.errors import Unavailable
from toolgate.workspace.outline import parse as here
from toolgate.workspace.outline.languages import Language
from toolgate.workspace.outline.process import PARSER

SMALL = 4 << 10
"""Bytes that are parsed here: whatever they are, that takes less than starting a process."""
_KEPT = 128


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
    """Kept by the content itself, so that it can never be out of date. TimedOut where it takes too long."""
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
    said = _installed(language)
    rows, complete = here.parse(data, said) if len(data) <= SMALL else PARSER.ask("parse", data, **said)
    return Outline(language.name, [_symbol(row) for row in rows], complete)


@cache
def _installed(language: Language) -> dict[str, Any]:
    """What the parser must know of it."""
    module = language.package.replace("-", "_")
    if find_spec("tree_sitter") is None or find_spec(module) is None:
        raise Unavailable(
            f"outlines of {language.name} need tree-sitter and {language.package}, which are not installed",
            "install toolgate with the extra `code`",
        )
    return {
        "module": module,
        "function": language.function,
        "kinds": dict(language.kinds),
        "bodies": sorted(language.bodies),
    }


def _symbol(row: here.Row) -> Symbol:
    name, kind, first, last, inner = row
    return Symbol(name, kind, first, last, [_symbol(each) for each in inner])
