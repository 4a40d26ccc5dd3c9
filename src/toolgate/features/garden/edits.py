"""Edits of a garden file as splices: a section's text, the items of a list, a line of the Change Log."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from toolgate.core.errors import InvalidArgs, NotFound
from toolgate.features.garden.grammar import ListItem, MarkdownFile, Section, read
from toolgate.features.garden.layout import CANONICAL, CHANGE_LOG, SCHEMA, Place

_MARKER = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_EV = re.compile(r"\bev:[A-Za-z0-9][A-Za-z0-9_-]*")
Edit = Callable[[bytes], bytes]


def replace(raw: bytes, anchor: str, text: str) -> bytes:
    """Everything that a section says; the blank lines around it stay."""
    document = read(raw)
    section = document.section(anchor)
    first, last = _core(document, section)
    put = _fitting(document, text)
    if first == last:
        return _checked(document, raw, _into_empty(document, section, put), section)
    return _checked(document, raw, document.spliced(first, last, put), section)


def append(raw: bytes, anchor: str, text: str, known: Edit = bytes) -> bytes:
    """At the end of a section. What is there already, as its last lines, is not added twice: of those that the caller may
    know, else it would be told whether a guess at a secret is right."""
    document = read(raw)
    section = document.section(anchor)
    first, last = _core(document, section)
    put = _fitting(document, text)
    if not put or _ends_with(read(known(raw)), first, last, put):
        return raw
    if first == last:
        return _checked(document, raw, _into_empty(document, section, put), section)
    end = document.lines[last - 1]
    lists = _MARKER.match(put) and any(item.end == last for item in document.items(section))
    between = ("" if end.endswith(("\n", "\r")) else document.eol) + ("" if lists else document.eol)
    return _checked(document, raw, document.spliced(last, last, between + put), section)


def curate(raw: bytes, anchor: str, steps: Sequence[tuple[str, Any]], skipped: list[str]) -> bytes:
    """Items appended, pruned or merged, one after the other; `skipped` is told of what was so already."""
    for op, item in steps:
        if op == "append":
            after = _append_item(raw, anchor, _one_line(item))
        elif op == "prune":
            after = _prune(raw, anchor, _one_line(item))
        else:
            after = _merge(raw, anchor, [_one_line(each) for each in item["from"]], _one_line(item["into"]))
        if after == raw:
            skipped.append(f"{op}: {item if isinstance(item, str) else item['into']}")
        raw = after
    return raw


def with_log(raw: bytes, entry: str) -> bytes:
    """One more line in the Change Log, where the file has one."""
    document = read(raw)
    if CHANGE_LOG not in document.anchored:
        return raw
    section = document.anchored[CHANGE_LOG]
    line = f"- {_one_line(entry)}{document.eol}"
    first, last = _core(document, section)
    if first == last:
        return _into_empty(document, section, line)
    between = "" if document.lines[last - 1].endswith(("\n", "\r")) else document.eol
    return document.spliced(last, last, between + line)


def with_log_of(raw: bytes, now: bytes) -> bytes:
    """An earlier version with the Change Log of the present one, where that goes on from it: no restore takes lines back."""
    old, new = read(raw), read(now)
    if CHANGE_LOG not in old.anchored or CHANGE_LOG not in new.anchored:
        return raw
    first, last = _core(old, old.anchored[CHANGE_LOG])
    start, end = _core(new, new.anchored[CHANGE_LOG])
    had = [line.rstrip() for line in old.lines[first:last]]
    lines = [line.rstrip("\r\n") for line in new.lines[start:end]]
    if [line.rstrip() for line in lines[: len(had)]] != had or not lines:
        return raw
    put = "".join(line + old.eol for line in lines)
    if first == last:
        return _into_empty(old, old.anchored[CHANGE_LOG], put)
    return old.spliced(first, last, put)


def fixed(raw: bytes, place: Place) -> bytes:
    """What lint can mend: headings, anchors that were lost or doubled, identity, white space."""
    document = read(raw)
    end = document.eol
    lines = [line.rstrip("\r\n").rstrip(" \t") + end for line in document.lines]
    seen: set[str] = set()
    for section in document.sections:
        wanted = CANONICAL[place.kind].get(section.anchor)
        if section.anchor and section.anchor in seen:
            lines[section.body - 1] = ""
        elif wanted and section.heading != wanted:
            at = section.start
            lines[at : section.body - 1] = [f"## {wanted}{end}", *[""] * (section.body - 2 - at)]
        seen.add(section.anchor)
    bare = {
        section.heading: section for section in document.sections if section.level == 2 and not section.anchor
    }
    missing = [(anchor, name) for anchor, name in CANONICAL[place.kind].items() if anchor not in seen]
    for anchor, name in missing:
        if name in bare:
            at = bare[name].body - 1
            lines[at] += f"<!-- @anchor: {anchor} -->{end}"
        else:
            lines.append(f"{end}## {name}{end}<!-- @anchor: {anchor} -->{end}")
    return (document.bom + _identified(document, place, lines, end)).encode()


def _identified(document: MarkdownFile, place: Place, lines: list[str], end: str) -> str:
    body = "".join(lines[document.front :])
    if place.kind == "notes" and not document.front:
        return body
    own = {"id": place.entity, "user_id": place.user, "schema": SCHEMA}
    if document.fields.get("schema", SCHEMA) != SCHEMA:
        raise InvalidArgs(f"its schema is {document.fields['schema']!r}", "upgrade toolgate")
    front = [
        line for line in lines[1 : max(document.front - 1, 1)] if line.partition(":")[0].strip() not in own
    ]
    return (
        "".join([f"---{end}", *(f"{key}: {value}{end}" for key, value in own.items()), *front, f"---{end}"])
        + body
    )


def _core(document: MarkdownFile, section: Section) -> tuple[int, int]:
    """The lines of a section between its first and its last that say something; the same twice if none does."""
    full = [number for number in range(section.body, section.end) if document.lines[number].strip()]
    return (full[0], full[-1] + 1) if full else (section.body, section.body)


def _fitting(document: MarkdownFile, text: str) -> str:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return plain.replace("\n", document.eol) + document.eol if plain.strip() else ""


def _into_empty(document: MarkdownFile, section: Section, put: str) -> bytes:
    before = document.lines[section.body - 1]
    start = "" if before.endswith(("\n", "\r")) else document.eol
    blank = document.eol if section.body == section.end < len(document.lines) and put else ""
    return document.spliced(section.body, section.body, start + put + blank)


def _ends_with(document: MarkdownFile, first: int, last: int, put: str) -> bool:
    wanted = re.split(r"\r\n|\r|\n", put)[:-1]
    return [line.rstrip("\r\n") for line in document.lines[max(first, last - len(wanted)) : last]] == wanted


def _checked(document: MarkdownFile, raw: bytes, after: bytes, section: Section) -> bytes:
    """A text with a heading, or one that opens a fence or a comment, would reach beyond its section."""
    if after != raw:
        now = read(after)
        same = [(one.anchor, one.heading) for one in now.sections] == [
            (one.anchor, one.heading) for one in document.sections
        ]
        if not same or now.text(now.section(section.anchor).end) != document.text(section.end):
            told = f"line {section.body}: the text would reach beyond the section `{section.anchor}` (rule garden:anchors)"
            raise InvalidArgs(
                told,
                "use headings of level 3 and below in it, and close every fence and comment",
                data={"rule": "garden:anchors", "line": section.body},
            )
    return after


def _one_line(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgs("an item is a text on one line", 'write items as ["a", "b"]')
    plain = text.strip()
    marker = _MARKER.match(plain)  # whoever copies an item copies its marker
    return " ".join(plain[marker.end() if marker else 0 :].split())


def _append_item(raw: bytes, anchor: str, text: str) -> bytes:
    document = read(raw)
    section = document.section(anchor)
    items = document.items(section)
    if any(item.text == text for item in items):
        return raw
    if not items:
        return append(raw, anchor, f"- {text}")
    last = items[-1]
    between = "" if document.lines[last.end - 1].endswith(("\n", "\r")) else document.eol
    line = f"{between}{_next_marker(last.marker)}{text}{document.eol}"
    return _checked(document, raw, document.spliced(last.end, last.end, line), section)


def _next_marker(marker: str) -> str:
    number = re.match(r"\d+", marker)
    return marker if number is None else f"{int(number[0]) + 1}{marker[number.end() :]}"


def _prune(raw: bytes, anchor: str, text: str) -> bytes:
    document = read(raw)
    section = document.section(anchor)
    found = _matching(document.items(section), text)
    if not found:
        return raw
    if len(found) > 1:
        raise InvalidArgs(f"{len(found)} items are meant by {text[:80]!r}", "give the whole text of one item")
    return _checked(document, raw, document.spliced(found[0].start, found[0].end, ""), section)


def _merge(raw: bytes, anchor: str, sources: list[str], into: str) -> bytes:
    """One item for several. The evidence that they cite stays cited."""
    document = read(raw)
    section = document.section(anchor)
    items = document.items(section)
    gone = [item for source in sources for item in _matching(items, source)]
    tokens = dict.fromkeys(token for item in gone for token in _EV.findall(item.text))
    missing = [token for token in tokens if token not in _EV.findall(into)]
    whole = f"{into} ({', '.join(missing)})" if missing else into
    if not gone:
        if any(item.text == into or item.text.startswith(f"{into} (ev:") for item in items):
            return raw  # a beginning alone would tell what a secret in it begins with
        raise NotFound(f"none of the items to merge is there: {sources[0][:80]!r}", "read the section again")
    place = min(gone, key=lambda item: item.start)
    out = [*document.lines]
    for item in gone:
        out[item.start : item.end] = [""] * (item.end - item.start)
    out[place.start] = f"{place.marker}{whole}{document.eol}"
    return _checked(document, raw, (document.bom + "".join(out)).encode(), section)


def _matching(items: Sequence[ListItem], text: str) -> list[ListItem]:
    """By its whole text, or by a token of its evidence."""
    if _EV.fullmatch(text):
        return [item for item in items if text in _EV.findall(item.text)]
    return [item for item in items if item.text == text][:1]
