"""Several recorded changes as one: per file the content before the first of them and the content after the last.

Works on manifests alone, so that no content in between is needed. A file that one call left in another state than
the next one found it in was changed by somebody else meanwhile; then there is no honest way to make them one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolgate.core.change import DIRECTORY

Entry = Mapping[str, Any]
Place = tuple[str, bool]
"""A path, and whether it is the directory of that name: a file may have become one, or the other way round."""


class Gap(Exception):
    """The manifest `earlier` left a file in one state, and `later` found it in another."""

    def __init__(self, path: str, earlier: int, later: int) -> None:
        super().__init__(path, earlier, later)
        self.path, self.earlier, self.later = path, earlier, later


def place_of(entry: Entry) -> Place:
    return entry["path"], DIRECTORY in (entry["before"], entry["after"])


def combine(manifests: Sequence[Iterable[Entry]]) -> list[Entry]:
    """Oldest first. What ends as it began is left out."""
    made: dict[Place, dict[str, Any]] = {}
    last: dict[Place, int] = {}
    for number, manifest in enumerate(manifests):
        for entry in manifest:
            place = place_of(entry)
            known = made.get(place)
            if known is not None and not place[1] and known["after"] != entry["before"]:
                raise Gap(entry["path"], last[place], number)
            made[place] = _joined(known, entry) if known is not None else dict(entry)
            last[place] = number
    return [_with_op(entry) for entry in made.values() if not _idle(entry)]


def _joined(first: Entry, then: Entry) -> dict[str, Any]:
    """Bits that a change does not know it has kept, so those that are known beside it hold for it too."""
    entry = {**first, "after": then["after"], "size": then["size"]}
    if "before_mode" not in first and first["before"] is not None and first["after"] is not None:
        _put(entry, "before_mode", then.get("before_mode"))
    if then["after"] is None or then["before"] is None:
        _put(entry, "after_mode", then.get("after_mode"))
    else:
        _put(entry, "after_mode", then.get("after_mode", first.get("after_mode")))
    return entry


def _put(entry: dict[str, Any], name: str, mode: int | None) -> None:
    entry.pop(name, None)
    if mode is not None:
        entry[name] = mode


def _idle(entry: Entry) -> bool:
    if entry["before"] != entry["after"]:
        return False
    return entry["before"] is None or entry.get("before_mode") == entry.get("after_mode")


def _with_op(entry: dict[str, Any]) -> Entry:
    op = "create" if entry["before"] is None else "delete" if entry["after"] is None else "modify"
    return entry | {"op": op}
