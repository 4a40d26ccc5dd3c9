"""Layout of a garden: which files it has, where, and what a new one of each kind looks like."""

from __future__ import annotations

import re
from typing import NamedTuple

from toolgate.core.errors import InvalidArgs

SCHEMA = "garden/1"
IDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
CHANGE_LOG = "change_log v1"
EVIDENCE = "evidence v1"
_FILE = re.compile(
    r"users/(?P<user>[^/]+)/(?:(?:(?P<group>parts|relationships)/(?P<id>[^/]+)/)?(?P<name>profile|notes|overview)\.md"
    r"|(?:(?:parts|relationships)/[^/]+/)?history/(?P<copy>[^/]+)\.md)"
)
_DIRECTORY = re.compile(r"users(?:/[^/]+(?:/history|/(?:parts|relationships)(?:/[^/]+(?:/history)?)?)?)?")
_COPY = re.compile(r"(?P<name>profile|notes|overview)\.\d{8}T\d{6}\.\d{6}Z\.[0-9a-f]{12}")
KINDS = ("overview", "part", "relationship", "notes")

CANONICAL: dict[str, dict[str, str]] = {
    "overview": {"summary v1": "Summary", "themes v1": "Themes", "questions v1": "Open questions"},
    "part": {
        "summary v1": "Summary", "concerns v1": "Concerns", "strengths v1": "Strengths", EVIDENCE: "Evidence",
    },
    "relationship": {"summary v1": "Summary", "dynamics v1": "Dynamics", EVIDENCE: "Evidence"},
    "notes": {},
}  # fmt: skip
"""Anchors of each kind of file, and the heading that each has. All but notes end with a Change Log."""
for _sections in (CANONICAL["overview"], CANONICAL["part"], CANONICAL["relationship"]):
    _sections[CHANGE_LOG] = "Change Log"


class Place(NamedTuple):
    """Where a file of a garden stands."""

    user: str
    kind: str
    """One of KINDS, or `history`."""
    entity: str
    """What it is about: the id of the part or relationship, or the user."""

    @property
    def versioned(self) -> bool:
        """Whether an edit of it keeps a copy of what was there."""
        return self.kind in ("part", "relationship")


def place_of(relative: str) -> Place | None:
    """None for what is not a file that a garden has."""
    found = _FILE.fullmatch(relative)
    if found is None or any(not IDENT.fullmatch(each) for each in relative.split("/")):
        return None
    if found["copy"] is not None:
        return Place(found["user"], "history", "") if _COPY.fullmatch(found["copy"]) else None
    if (found["name"] == "profile") != (found["group"] is not None) and found["name"] != "notes":
        return None
    kind = {"profile": (found["group"] or "")[:-1]}.get(found["name"], found["name"])
    return Place(found["user"], kind, found["id"] or found["user"])


def is_directory(relative: str) -> bool:
    parts = relative.split("/")
    return _DIRECTORY.fullmatch(relative) is not None and all(map(IDENT.fullmatch, parts))


def history_of(relative: str, copy: str) -> str:
    """Where a copy of a file is kept."""
    directory, _, name = relative.rpartition("/")
    return f"{directory}/history/{name.removesuffix('.md')}.{copy}.md"


def is_copy_of(copy: str, relative: str) -> bool:
    """Whether a file of this name, in `history` beside it, is a copy of this one."""
    name = relative.rpartition("/")[2].removesuffix(".md")
    found = _COPY.fullmatch(copy.removesuffix(".md"))
    return found is not None and found["name"] == name


def path_for(kind: str, user: str, ident: str) -> str:
    for what, value in (("user", user), ("id", ident)):
        if value and not IDENT.fullmatch(value):
            raise InvalidArgs(f"{value[:80]!r} is not a garden's {what}", "use letters, digits, `-` and `_`")
    if kind in ("part", "relationship"):
        if not ident:
            raise InvalidArgs(f"a {kind} needs an id", f"say which: `garden add {kind} work`")
        return f"users/{user}/{kind}s/{ident}/profile.md"
    return f"users/{user}/{kind}.md"


def template(kind: str, user: str, ident: str, title: str = "", participants: tuple[str, ...] = ()) -> str:
    """A new file."""
    lines = ["---", f"id: {ident or user}", f"user_id: {user}"]
    if kind == "relationship":
        lines.append(f"participants: [{', '.join(participants or (user, ident))}]")
    named = title or (ident or user).replace("-", " ").replace("_", " ").capitalize()
    lines += [f"schema: {SCHEMA}", "---", f"# {named}", ""]
    for anchor, heading in CANONICAL[kind].items():
        lines += [f"## {heading}", f"<!-- @anchor: {anchor} -->", ""]
    return "\n".join(lines)
