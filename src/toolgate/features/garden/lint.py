"""Lint of a garden file: what is not as it should be, though nothing is broken; and what is.

A warning never stops an edit, but for caps: whoever passes one says why, in a sentence that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from toolgate.core import lookalikes
from toolgate.features.garden.grammar import MarkdownFile, Section
from toolgate.features.garden.layout import CANONICAL, CHANGE_LOG, EVIDENCE, SCHEMA, Place

MOST_EVIDENCE = 7
SOFT_WORDS, HARD_WORDS = 200, 400
EV = re.compile(r"\bev:([A-Za-z0-9][A-Za-z0-9_-]*)")
_REL = re.compile(r"\b(rel|part):([A-Za-z0-9][A-Za-z0-9_.-]*)\b")
_NOT = re.compile(
    r"\b(?:not|never|no|isn't|doesn't|don't|didn't|cannot|can't|won't|no longer)\b", re.IGNORECASE
)
_CONFLICT = re.compile(r"(?:<{7}|>{7}|\|{7})(?: |$)|={7}$")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_BLANK = (" ", "\t")
_APART = {code: " " for code in range(128) if not chr(code).isalnum()}


@dataclass(frozen=True, slots=True)
class LintFinding:
    rule: str
    line: int
    """From 1; 0 for the file as a whole."""
    message: str
    severity: str = "warning"
    """`warning`, `cap` or `blocked`."""
    fixable: bool = False

    def shown(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message} ({self.rule})"


Exists = Callable[[str, str], bool]
"""Whether there is a `part` or `relationship` of this id."""


class Reference(NamedTuple):
    """`rel:ana`, and the line that says so."""

    line: int
    kind: str
    ident: str


def check(document: MarkdownFile, place: Place, exists: Exists | None = None) -> list[LintFinding]:
    found = alone(document, place)
    return found if exists is None else with_dangling(found, references(document), exists)


def alone(document: MarkdownFile, place: Place) -> list[LintFinding]:
    """All that can be said without looking at other files."""
    found = [
        *_broken(document, place), *_caps(document), *_headings(document, place.kind), *_spaces(document),
        *_twice(document), *_evidence(document),
    ]  # fmt: skip
    return sorted(found, key=_line)


def references(document: MarkdownFile) -> list[Reference]:
    body = enumerate(document.lines[document.front :], document.front + 1)
    marked = [(number, line) for number, line in body if "rel:" in line or "part:" in line]
    return [Reference(number, *found) for number, line in marked for found in _REL.findall(line)]


def with_dangling(
    found: Sequence[LintFinding], cited: Sequence[Reference], exists: Exists
) -> list[LintFinding]:
    gone = [
        LintFinding("dangling", one.line, f"there is no {one.kind}:{one.ident} in this garden")
        for one in cited
        if not exists("relationship" if one.kind == "rel" else "part", one.ident)
    ]
    return sorted([*found, *gone], key=_line)


def _line(found: LintFinding) -> int:
    return found.line


def passed(before: MarkdownFile | None, after: MarkdownFile, kind: str) -> list[LintFinding]:
    """The caps that this edit passes, or passes further: those that were passed before by as much are nobody's now."""
    old = {} if before is None else {name: amount for name, _, amount in _amounts(before)}
    caps = {name: amount for name, _, amount in _amounts(after)}
    return [one for one, name in _named_caps(after) if caps[name] > old.get(name, 0)]


def words(document: MarkdownFile, section: Section) -> int:
    return len(_WORD.findall(document.text(section.body, section.end)))


def _about(document: MarkdownFile, section: Section) -> int:
    """How many words, exactly where they are many: where few, as many or some more, which is told much faster."""
    text = document.text(section.body, section.end)
    most = len(text.translate(_APART).split()) if text.isascii() else HARD_WORDS
    return most if most <= SOFT_WORDS else len(_WORD.findall(text))


@lru_cache(maxsize=64)
def _amounts(document: MarkdownFile) -> list[tuple[str, Section, int]]:
    return list(_counted(document))


def _counted(document: MarkdownFile) -> Iterator[tuple[str, Section, int]]:
    for section in document.sections:
        if section.anchor and section.anchor != CHANGE_LOG:
            evidence = section.anchor.startswith("evidence ")
            yield (
                section.anchor,
                section,
                _pieces(document, section) if evidence else _about(document, section),
            )


def _pieces(document: MarkdownFile, section: Section) -> int:
    """Of evidence: its items, or the lines with a token where that are more, as in a list within an item or a table."""
    marked = sum(EV.search(line) is not None for line in document.lines[section.body : section.end])
    return max(len(document.items(section)), marked)


def _named_caps(document: MarkdownFile) -> Iterator[tuple[LintFinding, str]]:
    for name, section, amount in _amounts(document):
        line = section.start + 1
        if name.startswith("evidence "):
            if amount > MOST_EVIDENCE:
                told = f"{section.heading!r} has {amount} pieces, the cap is {MOST_EVIDENCE}"
                yield LintFinding("evidence-cap", line, told, "cap"), name
        elif amount > HARD_WORDS:
            told = f"{section.heading!r} has {amount} words, the cap is {HARD_WORDS}"
            yield LintFinding("section-length", line, told, "cap"), name


def _caps(document: MarkdownFile) -> Iterator[LintFinding]:
    yield from (one for one, _ in _named_caps(document))
    for name, section, amount in _amounts(document):
        if not name.startswith("evidence ") and SOFT_WORDS < amount <= HARD_WORDS:
            told = f"{section.heading!r} has {amount} words; above {SOFT_WORDS} it is hard to read"
            yield LintFinding("section-length", section.start + 1, told)


def _broken(document: MarkdownFile, place: Place) -> Iterator[LintFinding]:
    """What breaks a rule that no tool could have broken: somebody edited it by hand."""
    fields = document.fields
    if place.kind != "notes" or document.front:
        for key, value in (("id", place.entity), ("user_id", place.user), ("schema", SCHEMA)):
            if fields.get(key) != value:
                newer = key == "schema" and fields.get(key, "").startswith("garden/")
                said = f"is {fields[key]!r}" if key in fields else "is missing"
                told = f"`{key}` {said}, it should be {value!r}"
                yield LintFinding("schema" if newer else "identity", 1, told, "blocked", not newer)
    seen: set[str] = set()
    for section in document.sections:
        if section.anchor and section.anchor in seen:
            told = f"the anchor `{section.anchor}` is there twice"
            yield LintFinding("anchors", section.body, told, "blocked", True)
        seen.add(section.anchor)
    for anchor, heading in CANONICAL[place.kind].items():
        if anchor not in seen:
            hid = document.hidden(anchor)
            lost = f"the section {heading!r} has lost its anchor `{anchor}`"
            told = f"the anchor `{anchor}` is hidden: a fence or an element before it is not closed"
            yield LintFinding("anchors", hid, told if hid else lost, "blocked", not hid)
    for number in document.strays:
        yield LintFinding("anchors", number + 1, "an anchor stands where none can be", "blocked")
    for number, line in enumerate(document.lines, 1):
        if line[:1] in "<>|=" and _CONFLICT.match(line.rstrip()):
            yield LintFinding("conflict-marker", number, "a merge was not finished here", "blocked")


def _headings(document: MarkdownFile, kind: str) -> Iterator[LintFinding]:
    canonical = CANONICAL[kind]
    for section in document.sections:
        wanted = canonical.get(section.anchor)
        if not section.heading.isascii():
            for told in lookalikes.notes([section.heading]):
                yield LintFinding(
                    "look-alike", section.start + 1, f"in the heading {told}", fixable=bool(wanted)
                )
        if wanted and section.heading != wanted:
            told = f"the heading {section.heading!r} of `{section.anchor}` should be {wanted!r}"
            yield LintFinding("heading", section.start + 1, told, fixable=True)
        elif section.level == 2 and not section.anchor and canonical:
            told = f"the section {section.heading!r} has no anchor"
            yield LintFinding("heading", section.start + 1, told)


def _spaces(document: MarkdownFile) -> Iterator[LintFinding]:
    text = document.text()
    if "\r" in text and len({line[len(line.rstrip("\r\n")) :] for line in document.lines} - {""}) > 1:
        yield LintFinding("whitespace", 0, "lines end in different ways", fixable=True)
    if document.lines and not document.lines[-1].endswith(("\n", "\r")):
        yield LintFinding("whitespace", len(document.lines), "no newline at the end", fixable=True)
    trailing = [number for number, line in enumerate(document.lines, 1) if line.rstrip("\r\n")[-1:] in _BLANK]
    if trailing:
        told = f"white space at the end of {len(trailing)} line{'s' * (len(trailing) > 1)}"
        yield LintFinding("whitespace", trailing[0], told, fixable=True)


def _twice(document: MarkdownFile) -> Iterator[LintFinding]:
    for section in document.sections:
        if not section.anchor or section.anchor == CHANGE_LOG:
            continue
        seen: dict[str, tuple[str, int]] = {}
        items = document.items(section)
        for item in items if len(items) > 1 else ():
            text = EV.sub("", item.text).lower()
            plain = " ".join(_WORD.findall(text))
            core = " ".join(_WORD.findall(_NOT.sub("", text))) if _NOT.search(text) else plain
            old = seen.setdefault(core, (plain, item.start))
            if not core or old[1] == item.start:
                continue
            same = old[0] == plain
            told = f"{'the same as' if same else 'the opposite of'} line {old[1] + 1}"
            yield LintFinding("duplicate" if same else "contradiction", item.start + 1, told)


def _evidence(document: MarkdownFile) -> Iterator[LintFinding]:
    section = document.anchored.get(EVIDENCE)
    known = set(EV.findall(document.text(section.body, section.end))) if section is not None else set()
    log = document.anchored.get(CHANGE_LOG)  # says what an edit rested on then, and stays as it is
    apart = [range(one.start, one.end) for one in (section, log) if one is not None]
    for number, line in enumerate(document.lines):
        if "ev:" not in line or any(number in lines for lines in apart):
            continue
        for token in EV.findall(line):
            if token not in known:
                yield LintFinding("dangling", number + 1, f"ev:{token} is not among the evidence")
