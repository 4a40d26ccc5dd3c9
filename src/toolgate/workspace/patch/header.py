"""What a file's header says: its names, what happens to it, and its mode."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from toolgate.workspace.patch import names
from toolgate.workspace.patch.model import REGULAR, FilePatch, Hunk, Op, malformed, shown
from toolgate.workspace.patch.names import NOWHERE

LONGEST = 1 << 16
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

    def patch(self, hunks: tuple[Hunk, ...]) -> FilePatch:
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
            op, names.located(old, self.line), names.located(new, self.line), hunks, self.line,
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
            old, new = (names.name_in(*self.said[f"{op} {side} ".encode()]) for side in ("from", "to"))
            told.append((old, new))
        if b"+++ " in self.said:
            told.append(self._shown_names(op))
        if self.names is not None:
            told.append(names.without_prefixes(*self.names))
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
        old, new = (names.file_header(*self.said[mark])[0] for mark in (b"--- ", b"+++ "))
        for side, name, wanted in (("---", old, op == "create"), ("+++", new, op == "delete")):
            if (name == NOWHERE) != wanted:
                word = {"---": "new file mode", "+++": "deleted file mode"}[side]
                what = f"`{side}` says {shown(name)}, but {NOWHERE} and `{word}` go together"
                raise malformed(what, self.line, "use both or neither")
        old, new = names.without_prefixes(old, new)
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
    header = GitHeader(at + 1, names.both_names(_rest(lines, at, b"diff --git "), at + 1))
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


def plain_patch(lines: list[bytes], at: int, hunks: tuple[Hunk, ...]) -> FilePatch:
    """A file whose header is only `---` and `+++`."""
    old, old_date = names.file_header(_rest(lines, at, b"--- "), at + 1)
    new, new_date = names.file_header(_rest(lines, at + 1, b"+++ "), at + 2)
    op: Op = "modify"
    if old == NOWHERE or names.is_epoch(old_date):
        op = "create"
    elif new == NOWHERE or names.is_epoch(new_date):
        op = "delete"
    old, new = names.without_prefixes(old, new)
    old, new = (new if old == NOWHERE else old), (old if new == NOWHERE else new)
    if old != new:
        fix = "give both sides the same name after `a/` and `b/`"
        raise malformed(f"the names {shown(old)} and {shown(new)} differ", at + 1, fix)
    path = names.located(new, at + 1)
    return FilePatch(op, path, path, hunks, at + 1, guessed=may_create(op, hunks))


def may_create(op: Op, hunks: tuple[Hunk, ...]) -> bool:
    return op == "modify" and len(hunks) == 1 and not hunks[0].old_count


def _rest(lines: list[bytes], at: int, word: bytes) -> bytes:
    if not lines[at].endswith(b"\n"):
        raise malformed("the diff ends in the middle of a line", at + 1, "end the diff with a line end")
    if len(lines[at]) > LONGEST:
        raise malformed(f"a header of {len(lines[at]):,} bytes", at + 1, "give the names of real files")
    return lines[at][len(word) : -1]
