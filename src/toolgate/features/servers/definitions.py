"""What a server says its tools are: kept as it says it, named so that no name can pose as another."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolgate.core.canonical import canonical, digest
from toolgate.core.errors import CallError

KEYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
MAX_TOOLS = 1000
MAX_DEFINITION = 256 * 1024
MAX_NAME = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Definition:
    raw: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name at the server."""
        return str(self.raw["name"])

    @property
    def description(self) -> str:
        return str(self.raw.get("description") or "")

    @property
    def input_schema(self) -> dict[str, Any]:
        return dict(self.raw.get("inputSchema") or {})

    @property
    def output_schema(self) -> dict[str, Any] | None:
        found = self.raw.get("outputSchema")
        return dict(found) if isinstance(found, Mapping) else None

    @cached_property
    def digest(self) -> str:
        return digest(dict(self.raw))

    def hint(self, name: str) -> bool | None:
        annotations = self.raw.get("annotations")
        value = annotations.get(name) if isinstance(annotations, Mapping) else None
        return value if isinstance(value, bool) else None

    @property
    def says_read_only(self) -> bool:
        return self.hint("readOnlyHint") is True and self.hint("destructiveHint") is not True

    def pretty(self) -> str:
        return json.dumps(dict(self.raw), indent=2, ensure_ascii=False, sort_keys=True)


def safe_name(name: str) -> str:
    """The verb under which a tool of a server is known here."""
    made = _UNSAFE.sub("_", name)
    return made if made[:1].isalnum() else f"t{made}"


def sort_out(raws: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Definition], dict[str, str]]:
    """Definitions by the name they are known by here, and what is wrong with those that cannot enter."""
    good: dict[str, Definition] = {}
    taken: dict[str, str] = {}
    bad: dict[str, str] = {}
    found = [Definition(dict(raw)) for raw in raws]
    # whoever is spelled exactly so, in lower case, comes first: a look-alike cannot take its name
    for one in sorted(
        found, key=lambda one: (safe_name(one.name) != one.name, not one.name.islower(), one.name)
    ):
        problem = _problem(one)
        local = safe_name(one.name)
        first = taken.get(local.casefold())
        if problem is None and first is not None:
            problem = f"its name would be `{local}`, which the tool {first!r} has"
        if problem is not None:
            bad[one.name[:MAX_NAME]] = problem
            continue
        taken[local.casefold()] = one.name
        good[local] = one
    return good, bad


def _problem(one: Definition) -> str | None:
    if not one.name or len(one.name) > MAX_NAME:
        return f"its name has {len(one.name)} characters; 1 to {MAX_NAME} are possible"
    if not isinstance(one.raw.get("inputSchema"), Mapping):
        return "it has no input schema"
    try:
        size = len(canonical(dict(one.raw)))
    except CallError as error:
        return f"its definition has no exact form: {error.message}"
    if size > MAX_DEFINITION:
        return f"its definition has {size:,} characters; the most is {MAX_DEFINITION:,}"
    return None


def difference(old: Definition | None, new: Definition | None) -> str:
    """What changed, line by line, for a human to read."""
    before = _lines(old)
    after = _lines(new)
    names = ("approved" if old else "/dev/null", "as it is now" if new else "/dev/null")
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


SUMMARY = 160
"""Characters of a description that a summary has."""


def summary(one: Definition | None) -> str:
    """One line: what it claims about itself, its arguments, and the beginning of what it says."""
    if one is None:
        return "it is not there any more"
    text = " ".join(one.description.split())
    cut = f"… (cut: {len(one.description):,} characters)" if len(text) > SUMMARY else ""
    claims = [said for name, said in _CLAIMS if one.hint(name)] or ["claims nothing"]
    properties = one.input_schema.get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    args = ", ".join(str(name)[:40] for name in names[:8]) + ("…" if len(names) > 8 else "")
    return f"{', '.join(claims)} · takes {args or 'nothing'} · {text[:SUMMARY] or 'says nothing'}{cut}"


_CLAIMS = (("readOnlyHint", "says it only reads"), ("destructiveHint", "says it may destroy"))


def _lines(one: Definition | None) -> list[str]:
    """A description is shown line by line, so that one changed sentence is one changed line."""
    if one is None:
        return []
    rest = {key: value for key, value in one.raw.items() if key != "description"}
    text = json.dumps(rest, indent=2, ensure_ascii=False, sort_keys=True).split("\n")
    # not splitlines, which would swallow the rarer line breaks; the mark keeps a description from posing as a schema
    return ["description:", *(f"  | {line}" for line in one.description.split("\n")), *text]
