"""Installed Python packages that a program may be given: their own files, and those of what they need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from toolgate.core.errors import InvalidArgs, NotAllowed, Unavailable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTIONAL = re.compile(r";.*\bextra\s*==")


def given(wanted: Sequence[str], allowed: Sequence[str]) -> tuple[Path, ...]:
    """What to show for these, if the owner lists them all."""
    known = {_plain(name) for name in allowed}
    for name in wanted:
        if not _NAME.fullmatch(name):
            raise InvalidArgs(f"{name[:80]!r} is no name of a package", "use names such as `numpy`")
        if _plain(name) not in known:
            raise NotAllowed(
                f"programs may not have the package {name!r}",
                "the owner lists packages in `sandbox: {packages: [...]}` of toolgate.yaml",
            )
    seen: set[str] = set()
    return tuple(dict.fromkeys(path for name in wanted for path in _paths(name, seen)))


def _paths(name: str, seen: set[str]) -> Iterator[Path]:
    if _plain(name) in seen:
        return
    seen.add(_plain(name))
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise Unavailable(f"the package {name!r} is not installed", f"pip install {name}") from None
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in sorted(tops):
        path = Path(str(found.locate_file(top)))
        if path.exists():
            yield path
    for need in found.requires or ():
        match = _NAME.match(need)
        if match is None or _OPTIONAL.search(need):
            continue
        try:
            yield from _paths(match[0], seen)
        except Unavailable:  # for another platform or version; a program that needs it will say so
            continue


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
