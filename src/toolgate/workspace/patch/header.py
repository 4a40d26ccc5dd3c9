"""Parsed diffs as values, and the header of a file's patch: its names, what happens to it, and its mode.

Diffs spell names quoted with octal escapes, prefixed with `a/` and `b/`, followed by a date.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

from toolgate.core.display import visible
from toolgate.core.errors import InvalidArgs, OutsideMount
from toolgate.core.paths import MountPath
from toolgate.core.records import dataclass, field

# A diff, taken apart: files, and the hunks of each.

Op = Literal["modify", "create", "delete", "rename", "copy"]

REGULAR = frozenset({0o100644, 0o100755, 0o100664})


@dataclass(frozen=True, slots=True)
class PatchHunk:
    """Lines keep their line ends; one without an end is the last of its file."""

    number: int
    """Counted from 1 in its file."""
    line: int
    """Where its header is in the diff."""
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    old: list[bytes]
    new: list[bytes]
    leading: int
    """Context lines before the first change."""
    trailing: int
    """Context lines after the last change."""
    context: int


@dataclass(frozen=True, slots=True)
class FilePatch:
    op: Op
    old: MountPath
    new: MountPath
    """The same as `old`, except for a rename or a copy."""
    hunks: tuple[PatchHunk, ...]
    line: int
    new_mode: int = 0
    """The mode that the diff asks for; 0 where it says nothing."""
    guessed: bool = False
    """A plain diff cannot say whether a file without old lines is created: it is, where there is none."""

    @property
    def paths(self) -> tuple[MountPath, ...]:
        return (self.old,) if self.old == self.new else (self.old, self.new)


def malformed(what: str, line: int, fix: str, hunk: int = 0) -> InvalidArgs:
    where = f"line {line} of the diff" + (f", hunk {hunk}" if hunk else "")
    return InvalidArgs(f"{where}: {what}", fix, data={"line": line, "hunk": hunk or None, "problem": what})


def shown(text: bytes | str, limit: int = 80) -> str:
    """A line as a message quotes it."""
    text = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    text = visible(text.removesuffix("\n"))
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


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


LONGEST_HEADER = 1 << 16
"""Bytes: two names of the greatest length, every byte of them escaped."""
_WORDS = (
    b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ", b"copy from ", b"copy to ",
    b"rename from ", b"rename to ", b"similarity index ", b"dissimilarity index ", b"index ", b"--- ", b"+++ ",
)  # fmt: skip
_INDEX = re.compile(rb"[0-9a-f]+\.\.[0-9a-f]+(?: (.*))?")
_MODE = re.compile(rb"[0-7]{6}")
_KINDS = {0o120000: "a symbolic link", 0o160000: "a submodule"}


@dataclass
class GitHeader:
    """The lines between `diff --git` and the first hunk."""

    line: int
    names: tuple[str, str] | None
    said: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)

    def patch(self, hunks: tuple[PatchHunk, ...]) -> FilePatch:
        op = self._op()
        if hunks and b"+++ " not in self.said:
            raise malformed("hunks without `---` and `+++` before them", self.line, "give both")
        old, new = self._names(op)
        if old != new and op not in ("rename", "copy"):
            fix = "say `rename from` and `rename to`, or give both sides the same name"
            raise malformed(f"the names {shown(old)} and {shown(new)} differ", self.line, fix)
        modes = {word: self._mode(word) for word in (b"old mode ", b"new mode ", b"new file mode ")}
        self._mode(b"deleted file mode ")
        self._check_index()
        if bool(modes[b"old mode "]) != bool(modes[b"new mode "]):
            raise malformed("`old mode` and `new mode` go together", self.line, "give both")
        if modes[b"old mode "] and modes[b"old mode "] == modes[b"new mode "]:
            raise malformed("`old mode` and `new mode` are the same", self.line, "leave both out")
        if op == "modify" and not hunks and not modes[b"new mode "]:
            raise malformed("the file's header is followed by no hunk", self.line, "add one, or leave it out")
        return FilePatch(
            op, located(old, self.line), located(new, self.line), hunks, self.line,
            modes[b"new mode "] or modes[b"new file mode "],
        )  # fmt: skip

    def _op(self) -> Op:
        found: list[Op] = []
        for first, second, op in (
            (b"new file mode ", b"", "create"), (b"deleted file mode ", b"", "delete"),
            (b"rename from ", b"rename to ", "rename"), (b"copy from ", b"copy to ", "copy"),
        ):  # fmt: skip
            said = {word in self.said for word in (first, second) if word}
            if len(said) == 2:
                raise malformed(f"`{op} from` and `{op} to` go together", self.line, "give both")
            if True in said:
                found.append(op)  # type: ignore[arg-type]
        if len(found) > 1:
            raise malformed(f"a file cannot be both {found[0]}d and {found[1]}d", self.line, "choose one")
        return found[0] if found else "modify"

    def _names(self, op: Op) -> tuple[str, str]:
        """Every line that names the file must name the same one."""
        told: list[tuple[str, str]] = []
        if op in ("rename", "copy"):
            old, new = (name_in(*self.said[f"{op} {side} ".encode()]) for side in ("from", "to"))
            told.append((old, new))
        if b"+++ " in self.said:
            told.append(self._shown_names(op))
        if self.names is not None:
            told.append(without_prefixes(*self.names))
        if not told:
            raise malformed(
                "the header does not say which file it is", self.line, "add `---` and `+++` lines"
            )
        if len(set(told)) > 1:
            (old, new), (other, another) = sorted(set(told))[:2]
            what = f"one line names {shown(old)} → {shown(new)}, another {shown(other)} → {shown(another)}"
            raise malformed(what, self.line, "name the same file in all lines of its header")
        return told[0]

    def _shown_names(self, op: Op) -> tuple[str, str]:
        old, new = (file_header(*self.said[mark])[0] for mark in (b"--- ", b"+++ "))
        for side, name, wanted in (("---", old, op == "create"), ("+++", new, op == "delete")):
            if (name == NOWHERE) != wanted:
                word = {"---": "new file mode", "+++": "deleted file mode"}[side]
                what = f"`{side}` says {shown(name)}, but {NOWHERE} and `{word}` go together"
                raise malformed(what, self.line, "use both or neither")
        old, new = without_prefixes(old, new)
        return (new, new) if old == NOWHERE else (old, old) if new == NOWHERE else (old, new)

    def _check_index(self) -> None:
        """Hashes are not compared: context is. But a damaged line is a sign of a damaged diff."""
        text, line = self.said.get(b"index ", (b"0..0", 0))
        found = _INDEX.fullmatch(text)
        if found is None:
            raise malformed(f"{shown(text)} is not `hash..hash mode`", line, "leave the index line out")
        if found[1]:
            _checked_mode(found[1], line)

    def _mode(self, word: bytes) -> int:
        return _checked_mode(*self.said[word]) if word in self.said else 0


def _checked_mode(text: bytes, line: int) -> int:
    if not _MODE.fullmatch(text):
        raise malformed(f"{shown(text)} is not a mode", line, "write it like 100644")
    mode = int(text, 8)
    if mode not in REGULAR:
        kind = _KINDS.get(mode & 0o170000, "not a regular file")
        raise malformed(f"mode {shown(text)} is {kind}", line, "patch regular files only")
    return mode


def read_git_header(lines: list[bytes], at: int) -> tuple[GitHeader, int]:
    """From the `diff --git` line on; the index after the header."""
    header = GitHeader(at + 1, both_names(_rest(lines, at, b"diff --git "), at + 1))
    at += 1
    while at < len(lines):
        word = next((word for word in _WORDS if lines[at].startswith(word)), None)
        if word is None:
            break
        if word in header.said:
            raise malformed(f"{shown(word)} is said twice of one file", at + 1, "say it once")
        if word == b"+++ " and b"--- " not in header.said:
            raise malformed("`+++` without `---` before it", at + 1, "give both")
        header.said[word] = (_rest(lines, at, word), at + 1)
        at += 1
        if word == b"+++ ":
            break
        if word == b"--- " and not (at < len(lines) and lines[at].startswith(b"+++ ")):
            raise malformed("`---` without `+++` after it", at, "give both")
    return header, at


def plain_patch(lines: list[bytes], at: int, hunks: tuple[PatchHunk, ...]) -> FilePatch:
    """A file whose header is only `---` and `+++`."""
    old, old_date = file_header(_rest(lines, at, b"--- "), at + 1)
    new, new_date = file_header(_rest(lines, at + 1, b"+++ "), at + 2)
    op: Op = "modify"
    if old == NOWHERE or is_epoch(old_date):
        op = "create"
    elif new == NOWHERE or is_epoch(new_date):
        op = "delete"
    old, new = without_prefixes(old, new)
    old, new = (new if old == NOWHERE else old), (old if new == NOWHERE else new)
    if old != new:
        fix = "give both sides the same name after `a/` and `b/`"
        raise malformed(f"the names {shown(old)} and {shown(new)} differ", at + 1, fix)
    path = located(new, at + 1)
    return FilePatch(op, path, path, hunks, at + 1, guessed=may_create(op, hunks))


def may_create(op: Op, hunks: tuple[PatchHunk, ...]) -> bool:
    return op == "modify" and len(hunks) == 1 and not hunks[0].old_count


def _rest(lines: list[bytes], at: int, word: bytes) -> bytes:
    if not lines[at].endswith(b"\n"):
        raise malformed("the diff ends in the middle of a line", at + 1, "end the diff with a line end")
    if len(lines[at]) > LONGEST_HEADER:
        raise malformed(f"a header of {len(lines[at]):,} bytes", at + 1, "give the names of real files")
    return lines[at][len(word) : -1]
