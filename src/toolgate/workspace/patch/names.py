"""File names as diffs spell them: quoted with octal escapes, prefixed with `a/` and `b/`, followed by a date."""

from __future__ import annotations

import re
from datetime import datetime

from toolgate.core.errors import OutsideMount
from toolgate.core.paths import MountPath
from toolgate.workspace.patch.model import malformed, shown

NOWHERE = "/dev/null"
_PREFIXES = frozenset("abciow12")  # a/ b/, and git's mnemonic ones
_SINGLE = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb'\\(?:([0-3][0-7]{2})|([abtnvfr"\\])|)')
_DATE = re.compile(
    r"[ \t](\d{4}-\d\d-\d\d[ \t]{1,4}\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:[ \t]{1,4}[-+]\d\d:?\d\d)?)$"
)
_LONGEST_DATE = 64


def name_in(raw: bytes, line: int) -> str:
    """The name in a `rename from` or similar line: all of it, or what its quotes hold."""
    if raw.startswith(b'"'):
        name, rest = unquoted(raw, line)
        if rest.strip():
            raise malformed(f"{shown(rest)} follows the quoted name", line, "remove it")
        return name
    return _decoded(raw, line)


def file_header(raw: bytes, line: int) -> tuple[str, str]:
    """The name and the date of a `---` or `+++` line; the date is empty where there is none."""
    if raw.startswith(b'"'):
        name, rest = unquoted(raw, line)
        return name, _decoded(rest, line).strip()
    text = _decoded(raw, line)
    name, tab, date = text.partition("\t")
    if tab:
        return name, date.strip()
    found = _DATE.search(text, max(len(text) - _LONGEST_DATE, 0))
    return (text[: found.start()].rstrip(" \t"), found[1]) if found else (text, "")


def both_names(raw: bytes, line: int) -> tuple[str, str] | None:
    """The two names of a `diff --git` line; None where blanks make it ambiguous and other lines must tell."""
    if raw.startswith(b'"'):
        old, rest = unquoted(raw, line)
        return (old, name_in(rest[1:], line)) if rest.startswith(b" ") else None
    if raw.endswith(b'"') and b' "' in raw:
        at = raw.index(b' "')
        return _decoded(raw[:at], line), name_in(raw[at + 1 :], line)
    text = _decoded(raw, line)
    if text.count(" ") == 1:
        old, _, new = text.partition(" ")
        return old, new
    # two names that are the same but for their prefixes can only meet in the middle
    middle = len(text) // 2
    places = [at for at in range(max(middle - 2, 0), min(middle + 3, len(text))) if text[at] == " "]
    pairs = [(text[:at], text[at + 1 :]) for at in places]
    same = [pair for pair in pairs if _tail(pair[0]) == _tail(pair[1])]
    return same[0] if len(same) == 1 else None


def unquoted(raw: bytes, line: int) -> tuple[str, bytes]:
    """What a C-style quoted name stands for, and what follows it."""
    found = _QUOTED.match(raw)
    if found is None:
        raise malformed(f"the quoted name {shown(raw)} does not end", line, "close its quotes")

    def one(escape: re.Match[bytes]) -> bytes:
        if escape[1]:
            return bytes([int(escape[1], 8)])
        if escape[2]:
            return bytes([_SINGLE[escape[2].decode()]])
        raise malformed(f"the quoted name {shown(raw)} has an unknown escape", line, "quote it as git does")

    return _decoded(_ESCAPE.sub(one, found[1]), line), raw[found.end() :]


def without_prefixes(old: str, new: str) -> tuple[str, str]:
    """Take `a/` and `b/` off. Only where both sides have one: other first names are real directories."""
    first, second = _prefix(old), _prefix(new)
    sides = {first, second} - {NOWHERE}
    known = sides <= _PREFIXES and (len(sides) == 2 or sides <= {"a", "b"})
    return (_cut(old), _cut(new)) if known and sides else (old, new)


def located(name: str, line: int) -> MountPath:
    if name in ("", ".") or name.endswith("/"):
        raise malformed(f"{shown(name)} does not name a file", line, "name the file")
    try:
        return MountPath.parse(name)
    except OutsideMount as error:
        raise OutsideMount(f"line {line} of the diff: {error.message}", error.fix) from None


def is_epoch(date: str) -> bool:
    """How `diff -N` says that there is no file on this side."""
    text = re.sub(r"\.\d+", "", date).strip()
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S %z").timestamp() == 0
    except ValueError:
        return False


def _prefix(name: str) -> str:
    if name == NOWHERE:
        return NOWHERE
    head, slash, _ = name.partition("/")
    return head if slash else ""


def _cut(name: str) -> str:
    return name if name == NOWHERE else name.partition("/")[2]


def _tail(name: str) -> str:
    return _cut(name) if _prefix(name) in _PREFIXES else name


def _decoded(raw: bytes, line: int) -> str:
    if raw.endswith(b"\r"):
        raise malformed(
            "a header ends in CRLF, so the diff itself was converted", line, "give headers with plain LF ends"
        )
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise malformed(f"the name {shown(raw)} is not UTF-8", line, "rename the file first") from None
