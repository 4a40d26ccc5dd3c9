"""Guard of a garden: what no Change may do to it, whichever tool planned it.

No deletion, anchors as they were, identity as it was, nothing outside the roots, `history/` and the Change Log by the
garden's own tools, no cap passed without a reason. A refusal names the rule and the line.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from html import unescape

from toolgate.core import lookalikes
from toolgate.core.change import Change, FileChange
from toolgate.core.errors import BlockedPath, CallError
from toolgate.core.paths import MountPath
from toolgate.core.ports import Holder
from toolgate.features.garden import grammar, lint
from toolgate.features.garden.grammar import MarkdownFile
from toolgate.features.garden.layout import CANONICAL, CHANGE_LOG, SCHEMA, Place, is_directory, place_of
from toolgate.features.garden.ledger_course import PERSON_EDIT

EDITS = frozenset({"md.patch_section", "md.curate_list", "md.snapshot_history", "garden.add"})
"""They ask for a reason where a cap is passed, keep copies and write the Change Log."""
REPAIRS = frozenset({"garden.fix", "garden.restore"})
"""A human's: they may put anchors and identity back as they were or should be."""
UNDO = "ledger.undo"
IDENTITY = frozenset({"id", "user_id", "participants", "schema"})
_LIKE_IDENTITY = frozenset({"id", "userid", "user", "participant", "participants", "schema", "schemaversion"})
"""Keys without their case and signs: other programs may read them as the identity."""
_PAIR = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*): +(?:[^\W_](?:[^#:\"'\[\]{}]|:(?=\S))*|\[[^\W_][\w ,.-]*\])")
"""A key and a plain value, or a list of words: nothing that goes on in the next line."""
_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:\s|$)")
_TAG = re.compile(r"<[^<>]*>")
_LINKED = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_LOG = "changelog"
_GOES_ON = re.compile(r"\s|- |#")
"""What may follow a key that is no part of the identity."""


def check(mount: str, change: Change, holder: Holder) -> None:
    for file in change.files:
        if file.path.mount == mount:
            _check_file(file, holder.tool)


def broken_by(path: MountPath, before: bytes, after: bytes) -> list[str]:
    """In the words that a tool would have been refused with."""
    try:
        check(path.mount, Change((FileChange(path, before, after),)), Holder(tool=PERSON_EDIT))
    except CallError as error:
        if (error.data or {}).get("rule") != "garden:cap":  # which lint says, and a person may
            return [error.message.removeprefix(f"{path.shown}, ")]
    return []


def _check_file(file: FileChange, tool: str) -> None:
    if file.kind == "directory":
        if file.after is not None and not is_directory(file.path.relative):
            raise _outside(file)
        if file.after is not None and file.path.relative.endswith("/history"):
            _check_copy(file, tool)
        return
    place = place_of(file.path.relative)
    if place is None:
        raise _outside(file)
    if file.after is None:
        raise _refused(file, "deletes", 0, "nothing in a garden is deleted or moved", "edit it instead")
    if place.kind == "history":
        _check_copy(file, tool)
        return
    after = grammar.read(file.after, file.path.shown)
    if tool in REPAIRS:
        _check_identity(file, place, after)
        _check_single(file, after, {})
        _check_kept(file, place, after)
        return
    if file.before is None:
        _check_identity(file, place, after)
        _check_new_keys(file, after)
        _check_second_front(file, None, after)
        _check_single(file, after, {})
        _check_strays(file, set(), after)
        _check_log(file, None, after, tool)
        _check_caps(file, None, after, place, tool)
        return
    before = grammar.read(file.before, file.path.shown)
    _check_schema(file, before)
    _check_same_identity(file, before, after)
    _check_second_front(file, before, after)
    _check_anchors(file, before, after, place.kind)
    for anchor in CANONICAL[place.kind] if tool not in (UNDO, PERSON_EDIT) else ():
        if after.hidden(anchor) and (line := before.hidden(anchor)):  # what goes there may end up below it
            told = f"a fence or an element before the anchor `{anchor}` is not closed"
            raise _refused(file, "anchors", line, told, "a human mends it first: `toolgate garden status`")
    if tool != UNDO:
        _check_log(file, before, after, tool)
        _check_caps(file, before, after, place, tool)


def _check_kept(file: FileChange, place: Place, after: MarkdownFile) -> None:
    """Of a repair: a version that somebody had broken does not take away the anchors that are there again."""
    try:
        before = grammar.read(file.before or b"")
    except CallError:
        return  # what cannot be read has none
    for anchor in CANONICAL[place.kind]:
        if anchor in before.anchored and anchor not in after.anchored:
            told = f"this version has no anchor `{anchor}`"
            raise _refused(file, "anchors", before.anchored[anchor].body, told, "restore another version")


def _check_copy(file: FileChange, tool: str) -> None:
    if file.before is not None:
        raise _refused(file, "history", 1, "a copy in history/ is never changed", "edit the file itself")
    if tool not in EDITS and tool not in REPAIRS:
        told = "history/ is written by the garden alone, when a file is edited"
        raise _refused(file, "history", 1, told, "`md.snapshot_history` keeps a copy")


def _check_identity(file: FileChange, place: Place, after: MarkdownFile) -> None:
    """Of a whole file that is new or put back: who it is about follows from where it is."""
    fields = after.fields
    if place.kind == "notes" and not after.front:
        return
    wanted = {"id": place.entity, "user_id": place.user, "schema": SCHEMA}
    for key, value in wanted.items():
        if fields.get(key) != value:
            said = f"{fields[key]!r}" if key in fields else "missing"
            told = f"`{key}` of its front matter is {said}, not {value!r}"
            raise _refused(
                file, "identity", _line_of(after, key), told, "use `garden.add`, or begin as it does"
            )
    _check_plain(file, after, wanted)


def _check_plain(file: FileChange, after: MarkdownFile, wanted: dict[str, str]) -> None:
    """Other programs read it as YAML, where a quoted key, a `?` or a line that goes on could say another identity."""
    seen: set[str] = set()
    last = ""
    for number, line in enumerate(after.lines[1 : after.front - 1], 2):
        text = line.rstrip("\r\n")
        key = _KEY.match(text)
        if key is not None and key[1] not in seen:
            last, told = key[1], ""
            seen.add(last)
            plain = wanted.get(last, "")
            if plain and text.rstrip() not in (
                f"{last}: {plain}",
                f'{last}: "{plain}"',
                f"{last}: '{plain}'",
            ):
                told = f"`{last}` is not plainly `{last}: {plain}`"
        elif key is not None:
            told = f"its front matter says `{key[1]}` twice"
        else:
            goes_on = _GOES_ON.match(text) is not None and last not in {"", *wanted}
            told = "" if goes_on or not text.strip() else "this is no plain `key: value` line"
        if not text.isprintable():
            told = "it has characters that cannot be seen"
        if told:
            raise _refused(file, "identity", number, told, "write each key once, as `key: value`")


def _check_schema(file: FileChange, before: MarkdownFile) -> None:
    said = before.fields.get("schema", SCHEMA)
    if said != SCHEMA:
        told = f"its schema is {said!r}, and this toolgate knows {SCHEMA}"
        raise _refused(file, "schema", _line_of(before, "schema"), told, "upgrade toolgate; it can be read")


def _check_same_identity(file: FileChange, before: MarkdownFile, after: MarkdownFile) -> None:
    """Of an edit: `id`, `user_id`, `participants` and `schema` stay as they are written; other keys may come, go and change."""
    if (before.identity, before.bom) == (after.identity, after.bom):
        return
    same = before.front and after.front and before.bom == after.bom and _fences(before) == _fences(after)
    if not same or _identity_lines(before) != _identity_lines(after):
        pairs = zip(before.lines[: before.front], after.lines, strict=False)
        first = next((number for number, (old, new) in enumerate(pairs, 1) if old != new), before.front or 1)
        told = "the identity front matter is not as it was"
        raise _refused(
            file, "identity", first, told, "leave `id`, `user_id`, `participants` and `schema` as they are"
        )
    _check_plain(file, after, {})
    known = Counter(before.lines[: before.front])
    for number, line in enumerate(after.lines[: after.front], 1):
        known[line] -= 1
        pair = _PAIR.fullmatch(line.rstrip()) if known[line] < 0 else None
        if known[line] < 0 and (
            pair is None or pair[1].lower().replace("-", "").replace("_", "") in _LIKE_IDENTITY
        ):
            told = "a new line of the front matter is no plain `key: value`, or says who it is about"
            raise _refused(file, "identity", number, told, "use another key, with a plain value on its line")


def _check_new_keys(file: FileChange, after: MarkdownFile) -> None:
    """A new file says who it is about under the four keys alone."""
    for number, line in enumerate(after.lines[: after.front], 1):
        key = _KEY.match(line)
        plain = key[1].lower().replace("-", "").replace("_", "") if key is not None else ""
        if key is not None and key[1] not in IDENTITY and (not plain.isascii() or plain in _LIKE_IDENTITY):
            told = f"the key `{key[1]}` could be read as one of the identity"
            raise _refused(file, "identity", number, told, "use another key")


def _check_second_front(file: FileChange, before: MarkdownFile | None, after: MarkdownFile) -> None:
    """A reader of several YAML documents would take the last one for the identity."""
    new = _fences_below(after)
    if after.front and len(new) > (len(_fences_below(before)) if before is not None else 0):
        told = "this would end a second front matter"
        raise _refused(file, "identity", new[0], told, "begin with the title, and leave `---` out above it")


def _fences_below(document: MarkdownFile) -> list[int]:
    """Lines like the fence of a front matter, between it and the first heading."""
    found = []
    for number, line in enumerate(document.lines[document.front :], document.front + 1):
        if line.startswith("#"):
            break
        if line.rstrip() in ("---", "..."):
            found.append(number)
    return found


def _fences(document: MarkdownFile) -> tuple[str, str]:
    return document.lines[0], document.lines[document.front - 1]


def _identity_lines(document: MarkdownFile) -> list[str]:
    """In their order, with the lines that go on with them."""
    found, last = [], ""
    for line in document.lines[1 : document.front - 1]:
        key = _KEY.match(line)
        last = key[1] if key is not None else last
        if last in IDENTITY:
            found.append(line)
    return found


def _check_anchors(file: FileChange, before: MarkdownFile, after: MarkdownFile, kind: str) -> None:
    have, want = Counter(after.anchors), Counter(before.anchors)
    for section in before.sections:
        if section.anchor and have[section.anchor] < want[section.anchor]:
            told = f"the anchor `{section.anchor}` would be removed, altered or hidden"
            raise _refused(
                file, "anchors", section.body, told, f"keep {_spelled(section.anchor)} below its heading"
            )
    _check_single(file, after, want)
    kept = [section for section in after.sections if section.anchor in want]
    for section, anchor in zip(kept, before.anchors, strict=True):
        if section.anchor != anchor:
            told = f"the anchor `{section.anchor}` would stand where `{anchor}` does"
            raise _refused(file, "anchors", section.body, told, "leave sections where they are")
    _check_anchor_lines(file, before, after)
    _check_headings(file, before, after, kind)
    _check_strays(file, {before.lines[number].strip() for number in before.strays}, after)


def _check_anchor_lines(file: FileChange, before: MarkdownFile, after: MarkdownFile) -> None:
    """To the byte, and the end of the line above: a program that knows no CR alone would find the anchor on its heading's line."""
    for anchor, old in before.anchored.items():
        new = after.anchored[anchor]
        was, now = before.lines[old.body - 2 : old.body], after.lines[new.body - 2 : new.body]
        ends = [
            (one[len(one.rstrip("\r\n")) :], two[len(two.rstrip("\r\n")) :])
            for one, two in zip(was, now, strict=True)
        ]
        if any(one != two and one and two for one, two in ends):  # the last line of a file may have had none
            told = f"the line of the anchor `{anchor}` would end in another way"
            raise _refused(file, "anchors", new.body, told, "leave its line end as it is")
        if was[-1].rstrip("\r\n") != now[-1].rstrip("\r\n"):
            told = f"the line of the anchor `{anchor}` would be altered"
            raise _refused(file, "anchors", new.body, told, "leave it as it is, blanks included")


def _check_headings(file: FileChange, before: MarkdownFile, after: MarkdownFile, kind: str) -> None:
    """Also in two steps, by way of a third name: a canonical heading belongs to its anchor."""
    owners = {_words(section.heading): section.anchor for section in before.sections}
    owners |= {_words(heading): anchor for anchor, heading in CANONICAL[kind].items()}
    was = {section.anchor: _words(section.heading) for section in reversed(before.sections)}
    for section in after.sections:
        now, anchor = _words(section.heading), section.anchor
        if not anchor or anchor not in was or now == was[anchor]:
            continue
        if any(owner != anchor and lookalikes.taken_for(now, name) for name, owner in owners.items()):
            told = f"the anchor `{anchor}` would be moved to the section {section.heading!r}"
            raise _refused(file, "anchors", section.body, told, "leave it below its own heading")
        if anchor == CHANGE_LOG:
            told = f"the Change Log would be called {section.heading!r}"
            raise _refused(file, "anchors", section.body, told, "leave its heading as it is")
    _check_borrowed(file, before, after, {name: owner for name, owner in owners.items() if owner})


def _check_borrowed(
    file: FileChange, before: MarkdownFile, after: MarkdownFile, owners: dict[str, str]
) -> None:
    """A heading put between another one and its anchor leaves that one behind, without it: the anchor has moved."""

    def borrowed(document: MarkdownFile) -> list[tuple[int, str]]:
        return [
            (one.start, name)
            for one in document.sections
            for name, owner in owners.items()
            if owner not in (one.anchor, CHANGE_LOG) and lookalikes.taken_for(_words(one.heading), name)
        ]

    left = Counter(name for _, name in borrowed(before))
    for line, name in borrowed(after):
        left[name] -= 1
        if left[name] < 0:
            told = f"a section called {name!r} would stand without the anchor `{owners[name]}`"
            raise _refused(
                file, "anchors", line + 1, told, "leave the anchor below its heading, or use another name"
            )


def _words(heading: str) -> str:
    """What a reader sees of a heading: its letters and digits, without markup and what has no shape."""
    plain = _LINKED.sub(r"\1", _TAG.sub("", grammar.without_unseen(unescape(heading))))
    folded = "".join(
        one if one.isalnum() or unicodedata.category(one)[0] == "M" else " " if one.isspace() else ""
        for one in plain.casefold()
    )
    return " ".join(folded.split()) or heading


def _check_strays(file: FileChange, old: set[str], after: MarkdownFile) -> None:
    for number in after.strays:
        if after.lines[number].strip() not in old:
            told = "this looks like an anchor, where none can be"
            raise _refused(file, "anchors", number + 1, told, "leave it out, or put it into a code fence")


def _check_single(file: FileChange, after: MarkdownFile, want: dict[str, int]) -> None:
    seen: Counter[str] = Counter()
    for section in after.sections:
        seen[section.anchor] += 1
        if section.anchor and seen[section.anchor] > max(want.get(section.anchor, 1), 1):
            told = f"the anchor `{section.anchor}` would be there twice"
            raise _refused(file, "anchors", section.body, told, "give a new section an anchor of its own")


def _check_log(file: FileChange, before: MarkdownFile | None, after: MarkdownFile, tool: str) -> None:
    """Its lines stay as they are, and the garden's own edits alone add to it: one line, at its end."""
    old, new = _logged(before) if before else [], _logged(after)
    same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(old))
    line = after.anchored[CHANGE_LOG].body + 1 if CHANGE_LOG in after.anchored else 1
    if (same < len(old) and old[same] not in new[same:]) or len(new) < len(old):
        lost = next(one for one in old if old.count(one) > new.count(one))
        told = f"the Change Log would lose {lost.strip()[:60]!r}"
        raise _refused(file, "change-log", line, told, "leave it out of the edit; what is there stays")
    if same < len(old) or len(new) > len(old) + (tool in EDITS):
        told = f"the Change Log would be given {new[same].strip()[:60]!r}"
        raise _refused(file, "change-log", line, told, "use `md.*`: the garden adds a line for each edit")
    if _false_logs(after) > (_false_logs(before) if before else 0):
        told = "a second section would be called Change Log"
        raise _refused(file, "change-log", line, told, "give it another heading")


def _logged(document: MarkdownFile) -> list[str]:
    section = document.anchored.get(CHANGE_LOG)
    lines = document.lines[section.body : section.end] if section else ()
    return [line.rstrip() for line in lines if line.strip()]


def _false_logs(document: MarkdownFile) -> int:
    return sum(
        one.anchor != CHANGE_LOG and lookalikes.taken_for(_words(one.heading).replace(" ", ""), _LOG)
        for one in document.sections
    )


def _check_caps(
    file: FileChange, before: MarkdownFile | None, after: MarkdownFile, place: Place, tool: str
) -> None:
    for cap in lint.passed(before, after, place.kind) if tool not in EDITS else ():
        how = "use `md.curate_list` or `md.patch_section` with `override_rationale`, or shorten it"
        raise _refused(file, "cap", cap.line, cap.message, how)


def _spelled(anchor: str) -> str:
    return f"`<!-- @anchor: {anchor} -->`"


def _line_of(document: MarkdownFile, key: str) -> int:
    lines = enumerate(document.lines[: document.front], 1)
    return next((number for number, line in lines if line.startswith(f"{key}:")), 1)


def _outside(file: FileChange) -> BlockedPath:
    fix = "use users/{id}/overview.md, notes.md, parts/{id}/profile.md or relationships/{id}/profile.md"
    return _refused(file, "roots", 0, "it is none of the files that a garden has", fix)


def _refused(file: FileChange, rule: str, line: int, told: str, fix: str) -> BlockedPath:
    where = f"{file.path.shown}, line {line}" if line else file.path.shown
    data = {"rule": f"garden:{rule}", "path": file.path.shown, "line": line}
    return BlockedPath(f"{where}: {told} (rule garden:{rule})", fix, data=data)
