"""Where else a program's own directories lead: links in them, and packages that are installed as links to their source."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from glob import escape, glob
from itertools import islice

MOST_ENTRIES = 20_000
MOST_BYTES = 1 << 18
_QUOTED = re.compile(r"""['"](/[^'"\n]+)['"]""")


def links(directory: str, passed: frozenset[str]) -> list[str]:
    """The real ends of the links in a tree; of installed packages only those of the first two levels are looked at."""
    found: list[str] = []
    waiting, seen = [(directory, 2 if os.path.basename(directory) in passed else -1)], 0
    while waiting and seen < MOST_ENTRIES:
        here, levels = waiting.pop()
        for entry in _entries(here):
            seen += 1
            if entry.is_symlink():
                found.append(os.path.realpath(entry.path))
            elif levels != 1 and entry.is_dir(follow_symlinks=False):
                below = levels - 1 if levels > 0 else 2 if entry.name in passed else -1
                waiting.append((entry.path, below))
    return found


def editable(environment: str) -> Iterator[str]:
    """The sources that a virtual environment leads to: `pip install -e` writes them into files that Python reads first."""
    for place in glob(f"{escape(environment)}/lib/python*/site-packages"):
        for file in (*glob(f"{escape(place)}/*.pth"), *glob(f"{escape(place)}/__editable__*.py")):
            text = beginning(file)
            if file.endswith(".pth"):
                lines = (line.strip() for line in text.splitlines())
                yield from (
                    os.path.join(place, line)
                    for line in lines
                    if line and not line.startswith(("#", "import"))
                )
            else:
                yield from _QUOTED.findall(text)


def scripts_in(manifest: str) -> dict[str, str]:
    """The scripts of a package.json; none where it is not one."""
    try:
        found = json.loads(beginning(manifest))
    except (ValueError, RecursionError):
        return {}
    scripts = found.get("scripts") if isinstance(found, dict) else None
    return (
        {name: text for name, text in scripts.items() if isinstance(text, str)}
        if isinstance(scripts, dict)
        else {}
    )


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(islice(entries, MOST_ENTRIES))
    except OSError:
        return []


def beginning(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            return stream.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
