"""Packages of this environment that a program may be given: where they are, with everything they need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_FOR_IMPORT = ("..", "__pycache__")


@dataclass(frozen=True, slots=True)
class FoundPackages:
    paths: tuple[Path, ...]
    """Directories and single modules, for `Job.packages`."""
    missing: tuple[str, ...]
    """Names that are not installed here."""


def find(names: Iterable[str]) -> FoundPackages:
    """By the names they are installed under. What only an extra needs is left out."""
    paths: dict[Path, None] = {}
    missing = []
    seen: set[str] = set()
    waiting = [(name, True) for name in names]
    while waiting:
        name, asked = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            missing += [name] if asked else []  # what it needs may be for another system
            continue
        paths |= dict.fromkeys(_top(found))
        waiting += [(_name(each), False) for each in found.requires or () if "extra ==" not in each]
    return FoundPackages(tuple(sorted(paths)), tuple(sorted(missing)))


def _top(found: metadata.Distribution) -> list[Path]:
    """What lies directly in the directory of packages: packages, their libraries, modules, and what names them."""
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in _NOT_FOR_IMPORT}
    return [path for path in (Path(str(found.locate_file(top))) for top in tops) if path.exists()]


def _name(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match.group() if match else ""
