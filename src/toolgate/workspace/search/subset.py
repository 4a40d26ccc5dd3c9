"""Which patterns mean the same to RE2 and to rg, and how RE2 must be told.

rg removes the line ending from everything a pattern could match; RE2 searches whole files, so negated sets are
given the line ending to exclude. What is not plainly equal in both is refused here and left to rg: flags, named
groups, sets of sets, Unicode classes, large repeats, repeats of what can be empty.
"""

from __future__ import annotations

import string

from toolgate.core.records import dataclass, field

MAX_LENGTH = 300
MAX_REPEAT = 50
MAX_SIZE = 1000
_ESCAPED = frozenset(r"\.+*?()|[]{}^$#&-~/")
_PLAIN = frozenset(string.ascii_letters + string.digits + " \t!\"#%&',-/:;<=>@_`~")
_BRANCHING = frozenset("[{*+?|.\\")
_LIGHT = 12
"""RE2 makes one state of many, as long as there is room for all that come up: with so few there always is, and with
nothing but plain characters too. Otherwise a byte may take as many steps as the pattern has places."""
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\x0b\f\r "}  # RE2's own \s lacks the vertical tab
_END_OF_RANGE = frozenset(string.ascii_letters + string.digits)


@dataclass(frozen=True, slots=True)
class Plan:
    source: str
    ascii_only: bool
    """Equal only on files without characters beyond ASCII."""
    weight: int
    """How many steps a byte may take."""


class _OnlyForRg(Exception):
    pass


@dataclass(slots=True)
class _Group:
    """What has been read of one group: whether it, or the branch at hand, can match nothing; its size."""

    empty: bool = False
    branch_empty: bool = True
    size: int = 0
    opened_at: int = 0


@dataclass(slots=True)
class _Atom:
    empty: bool
    size: int
    at: int
    """Where it begins in the output."""
    repeatable: bool = True


@dataclass(slots=True)
class _PatternReader:
    text: str
    case_sensitive: bool
    at: int = 0
    out: list[str] = field(default_factory=list)
    stack: list[_Group] = field(default_factory=lambda: [_Group()])
    last: _Atom | None = None
    ascii_only: bool = False

    def read(self) -> Plan:
        while self.at < len(self.text):
            self._step()
        if len(self.stack) != 1:
            raise _OnlyForRg
        self._close_branch()
        if self.stack[0].size > MAX_SIZE:
            raise _OnlyForRg
        size = self.stack[0].size
        light = size <= _LIGHT or not set(self.text) & _BRANCHING
        return Plan("(?m:" + "".join(self.out) + ")", self.ascii_only, 1 if light else size)

    def _next(self) -> str:
        if self.at >= len(self.text):
            raise _OnlyForRg
        self.at += 1
        return self.text[self.at - 1]

    def _step(self) -> None:
        char = self._next()
        if char in "*+?{":
            self._repeat(char)
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            self._settle()
            self._close_branch()
            self.stack[-1].branch_empty = True
            self.out.append("|")
        elif char in "^$":
            self._atom(char, empty=True, repeatable=False)
        elif char == ".":
            self._atom(".")
        elif char == "[":
            self._atom(self._set())
        elif char == "\\":
            self._escape()
        else:
            self._atom(self._literal(char))

    def _atom(self, source: str, *, empty: bool = False, repeatable: bool = True) -> None:
        self._settle()
        self.last = _Atom(empty, 1, len(self.out), repeatable)
        self.out.append(source)

    def _settle(self) -> None:
        """The last atom can no longer be repeated: count it in its group."""
        if self.last is not None:
            group = self.stack[-1]
            group.branch_empty = group.branch_empty and self.last.empty
            group.size += self.last.size
            self.last = None

    def _close_branch(self) -> None:
        self._settle()
        group = self.stack[-1]
        group.empty = group.empty or group.branch_empty

    def _open(self) -> None:
        self._settle()
        if self.text.startswith("?", self.at):
            if not self.text.startswith("?:", self.at):
                raise _OnlyForRg
            self.at += 2
        self.stack.append(_Group(opened_at=len(self.out)))
        self.out.append("(?:")

    def _close(self) -> None:
        if len(self.stack) == 1:
            raise _OnlyForRg
        self._close_branch()
        group = self.stack.pop()
        self.out.append(")")
        self.last = _Atom(group.empty, group.size + 1, group.opened_at)

    def _repeat(self, char: str) -> None:
        atom = self.last
        if atom is None or atom.empty or not atom.repeatable:
            raise _OnlyForRg
        low, high, times = {"*": (0, 1, "*"), "+": (1, 1, "+"), "?": (0, 1, "?")}.get(char) or self._counts()
        if self.text.startswith("?", self.at):
            self.at += 1
            times += "?"
        self.out.append(times)
        self._settle_repeated(atom, low, high)

    def _settle_repeated(self, atom: _Atom, low: int, high: int) -> None:
        self.last = _Atom(low == 0, atom.size * max(high, 1), atom.at, repeatable=False)
        if self.last.size > MAX_SIZE:
            raise _OnlyForRg

    def _counts(self) -> tuple[int, int, str]:
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at : max(end, self.at)].partition(",")
        if not _number(low) or (high and not _number(high)):
            raise _OnlyForRg
        self.at = end + 1
        most = int(high) if high else int(low)
        if most > MAX_REPEAT or int(low) > most or most == 0:
            raise _OnlyForRg
        return int(low), most + (1 if comma and not high else 0), f"{{{low}{comma}{high}}}"

    def _escape(self) -> None:
        char = self._next()
        if char in _ESCAPED:
            self._atom("\\" + char)
        elif char == "t":
            self._atom(r"\t")
        elif char == "b":
            self.ascii_only = True
            self._atom(r"\b", empty=True, repeatable=False)
        elif char in _CLASSES:
            self.ascii_only = True
            self._atom(f"[{_CLASSES[char]}]")
        elif char.lower() in _CLASSES:
            self.ascii_only = True
            self._atom(rf"[^\n{_CLASSES[char.lower()]}]")
        else:
            raise _OnlyForRg

    def _literal(self, char: str) -> str:
        if char in _PLAIN:
            return char if char.isalnum() or char in " _" else f"\\x{ord(char):02x}"
        if char in "}]":
            return "\\" + char
        if char.isprintable() and not char.isascii() and self.case_sensitive:
            return char
        raise _OnlyForRg

    def _set(self) -> str:
        negated = self.text.startswith("^", self.at)
        self.at += negated
        items: list[str] = []
        while (char := self._next()) != "]":
            items.append(self._member(char, first=not items))
        if not items:
            raise _OnlyForRg  # `[]a]`: a bracket that is a member
        return "[" + (r"^\n" if negated else "") + "".join(items) + "]"

    def _member(self, char: str, first: bool) -> str:
        if char == "\\":
            return self._escaped_member()
        if char == "-":
            if first or self.text.startswith("]", self.at):
                return r"\-"
            raise _OnlyForRg
        if char in "[&~^" or char not in _PLAIN | frozenset(".*+?(){}|$"):
            raise _OnlyForRg
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            end = self._next()
            if char not in _END_OF_RANGE or end not in _END_OF_RANGE or end < char:
                raise _OnlyForRg
            return f"{char}-{end}"
        return char if char.isalnum() else f"\\x{ord(char):02x}"

    def _escaped_member(self) -> str:
        char = self._next()
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            raise _OnlyForRg
        if char in _ESCAPED:
            return f"\\x{ord(char):02x}"
        if char in _CLASSES:
            self.ascii_only = True
            return _CLASSES[char]
        if char == "t":
            return r"\t"
        raise _OnlyForRg


def plan(pattern: str, case_sensitive: bool) -> Plan | None:
    """How to ask RE2, or None where only rg may answer."""
    if len(pattern) > MAX_LENGTH:
        return None
    try:
        return _PatternReader(pattern, case_sensitive).read()
    except _OnlyForRg:
        return None


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 4
