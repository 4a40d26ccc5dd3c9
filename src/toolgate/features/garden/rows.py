"""Rows of a garden's record: one version of one file, sealed with the ledger's key.

Whoever can write the database and has no key can neither change a row nor add one without `verify` and `blame` saying so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from toolgate.core.errors import LedgerBroken
from toolgate.features.garden.grammar import MarkdownFile
from toolgate.features.garden.layout import EVIDENCE
from toolgate.features.garden.lint import EV
from toolgate.ledger.keys import Keys

PURPOSE = "garden row"
COLUMNS = (
    "path", "number", "event", "user_id", "at", "call", "persona", "tool", "conversation", "op", "section_anchor",
    "rationale", "override_rationale", "evidence_refs", "before_hash", "after_hash", "trust", "status", "lint",
    "line_hash", "section_hashes", "integrity_salt_version", "origins",
)  # fmt: skip
INSERT = f"INSERT INTO garden_edits ({', '.join(COLUMNS)}, seal)"
PLACES = f"({', '.join('?' * (len(COLUMNS) + 1))})"
TRUST = ("outside", "agent", "person")
"""From the least to the most."""
Origins = list[tuple[int, str]]
"""For each line the version that brought it, and its trust."""


@dataclass(frozen=True, slots=True)
class GardenEdit:
    """One version of a file, as the record has it."""

    path: str
    number: int
    event: int
    user_id: str
    at: int
    call: str
    persona: str
    """Empty for an edit outside the gate: a person's."""
    tool: str
    conversation: str
    op: str
    section_anchor: str
    rationale: str
    override_rationale: str
    evidence_refs: list[str]
    before_hash: str
    after_hash: str
    trust: str
    status: str
    lint: list[str]
    line_hash: str
    section_hashes: dict[str, str]
    integrity_salt_version: int
    origins: Origins

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> GardenEdit:
        given = {name: row[name] for name in COLUMNS}
        for name in ("evidence_refs", "lint", "section_hashes", "origins"):
            given[name] = json.loads(given[name])
        given["origins"] = [(by, level) for (by, level), count in given["origins"] for _ in range(count)]
        return cls(**given)

    def values(self, keys: Keys) -> list[Any]:
        runs: list[list[Any]] = []
        for origin in self.origins:
            if runs and runs[-1][0] == origin:
                runs[-1][1] += 1
            else:
                runs.append([origin, 1])
        given = {name: getattr(self, name) for name in COLUMNS} | {"origins": runs}
        values = [json.dumps(value) if isinstance(value, list | dict) else value for value in given.values()]
        return [*values, sealed(keys, PURPOSE, values)]

    @property
    def who(self) -> str:
        return self.persona or "a person"


def sealed(keys: Keys, purpose: str, values: list[Any], version: int | None = None) -> str:
    """`1:hmac`: the version of the key, and the HMAC of the values as they stand in the table."""
    return "{}:{}".format(*keys.mac_for(purpose, json.dumps(values).encode(), version))


def genuine(keys: Keys, purpose: str, values: list[Any], seal: str) -> bool:
    version = seal.partition(":")[0]
    return version.isdigit() and int(version) in keys and sealed(keys, purpose, values, int(version)) == seal


def is_genuine(keys: Keys, row: Mapping[str, Any]) -> bool:
    return genuine(keys, PURPOSE, [row[name] for name in COLUMNS], row["seal"])


def believed(keys: Keys, row: Mapping[str, Any]) -> GardenEdit:
    """A row that somebody wrote who has the key; any other is refused."""
    if not is_genuine(keys, row):
        raise LedgerBroken(
            f"version {row['number']} of {row['path']} was not recorded by the garden",
            "`toolgate garden verify --record` makes its record again, from the ledger",
        )
    return GardenEdit.of(row)


def common_start(paths: Sequence[str]) -> str:
    """What all of them begin with, told by the first and the last in their order."""
    if not paths:
        return ""
    first, last = min(paths), max(paths)
    same = next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first)
    )
    return first[:same]


def chosen(edits: Sequence[GardenEdit], ident: str) -> GardenEdit | None:
    """The last version that an event, a hash or its beginning, or the name of a copy means."""
    digest = ident.removeprefix("sha256:").removesuffix(".md").rpartition(".")[2]
    for edit in reversed(edits):
        if ident == str(edit.event) or (len(digest) >= 8 and edit.after_hash.startswith(f"sha256:{digest}")):
            return edit
    return None


def traced(
    old: list[str], origins: Origins, new: list[str], number: int, trust: str,
    back: Sequence[tuple[str, tuple[int, str]]] = (),
) -> Origins:  # fmt: skip
    """Where each line of the new version comes from. What stands where something was removed is trusted no more than that,
    and words that are moved, copied or brought `back` no more than they were: nobody vouches for them by that."""
    if len(origins) != len(old):
        return [(number, trust)] * len(new)
    found: Origins = []
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    removed = [one[1] for op, a, b, _, _ in steps if op in ("replace", "delete") for one in origins[a:b]]
    given = _least(trust, *removed) if removed and trust != "person" else trust
    known: dict[str, str] = {}
    for text, (_, level) in [*zip(old, origins, strict=True), *back]:
        known[text.strip()] = _least(level, known.get(text.strip(), level))
    for op, first, last, start, end in steps:
        if op == "equal":
            found += [(by, level) for by, level in origins[first:last]]
        else:
            found += [(number, _least(given, known.get(line.strip(), given))) for line in new[start:end]]
    return found


def resting(document: MarkdownFile, origins: Origins, number: int, refs: Iterable[str]) -> Origins:
    """What a version's new lines are trusted after all: no more than the evidence that they, or the `refs` of the edit, cite
    by its token. Evidence that has an address on the web is from outside."""
    evidence, found, levels = document.anchored.get(EVIDENCE), list(origins), dict[str, str]()
    for at in range(evidence.body, evidence.end) if evidence is not None else ():
        if found[at][0] == number and "://" in document.lines[at]:
            found[at] = (number, "outside")
        for token in EV.findall(document.lines[at]):
            levels[token] = _least(found[at][1], levels.get(token, found[at][1]))
    told = EV.findall(" ".join(refs))
    return [
        (by, _least(level, *(levels.get(token, level) for token in [*told, *EV.findall(line)]))) if by == number else (by, level)
        for line, (by, level) in zip(document.lines, found, strict=True)
    ]  # fmt: skip


def _least(*levels: str) -> str:
    return TRUST[min(map(TRUST.index, levels))]
