"""Regular expressions of rules and schemas, matched by RE2 in time linear in the text.

They are written as Python's are, and mean the same: what RE2 spells otherwise is translated. Whatever needs
backtracking (back-references, look-around), flags and patterns that take too much room are refused when they are read.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any, NoReturn

from toolgate.core.errors import ConfigError
from toolgate.core.late_pattern import late_pattern
from toolgate.core.named_tuples import NamedTuple

MAX_PATTERN = 500
MAX_MEMORY = 16 << 20
"""Bytes that one compiled pattern may take: `\\w{500}` needs so many."""
_CLASSES = {
    "d": r"\p{Nd}",
    "s": r"\t-\r\x1c-\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}",
    "w": r"\p{L}\p{N}_",
}
"""RE2's own know ASCII only."""
_NOT_SPACE = (
    r"\x00-\x08\x0e-\x1b\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}"
)
_CONTROL = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_END = r"(?:\n?\z)"
"""`$` also holds before a newline that ends the text."""
_ESCAPE = late_pattern(r"x..|u.{4}|U.{8}|0[0-7]{0,2}|[0-3][0-7]{2}|.", re.DOTALL)
_COUNTS = late_pattern(r"\{(?=[\d,])(\d*)(,?)(\d*)\}|([*+?])")
_SURROGATE = late_pattern("[\ud800-\udfff]")


class Linear:
    """A compiled pattern; `search` finds it anywhere in the text, as `re.search` does."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        _check(pattern)
        self._parts = _PatternTranslator(pattern).read()
        self._whole = _compiled(self._parts.source)
        if self._whole is None:
            raise ConfigError(
                f"the pattern {pattern!r} is too large", "make it shorter, or use `glob` or `in`"
            )

    def search(self, text: str) -> bool:
        return self._whole.search(_encoded(text)) is not None

    def search_behind_anything(self, text: str) -> bool:
        """Whether it could be found in a text that ends so, whatever stands before."""
        if self.search(text):
            return True
        rest = _compiled(self._parts.rest)
        return rest is None or rest.match(_encoded(text)) is not None


class _Parts(NamedTuple):
    source: str
    """In RE2's words."""
    rest: str
    """The same for what may be left of it, where a text that nobody has seen matched its beginning."""


class _PatternTranslator:
    """Reads a pattern that Python understands."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def read(self) -> _Parts:
        branches = [self._sequence()]
        while self._takes("|"):
            branches.append(self._sequence())
        return _Parts(*("(?:" + "|".join(each) + ")" for each in zip(*branches, strict=True)))

    def _sequence(self) -> _Parts:
        source = rest = ""
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            item = self._repeated()
            source += item.source
            rest = f"(?:{rest}{item.source}|{item.rest})"
        return _Parts(source, rest)

    def _takes(self, word: str) -> bool:
        found = self._text.startswith(word, self._at)
        self._at += len(word) if found else 0
        return found

    def _next(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _repeated(self) -> _Parts:
        item = self._item()
        counts = _COUNTS.match(self._text, self._at)
        if counts is None:
            return item
        self._at = counts.end()
        if self._takes("+"):
            self._refuse("a possessive repeat")
        self._takes("?")  # the shortest match is found where a longer one is
        low, comma, high, sign = counts.groups()
        if sign:
            low, high = {"*": ("0", ""), "+": ("1", ""), "?": ("0", "1")}[sign]
        elif not comma:
            high = low
        if high == "0":
            return _Parts("", "")
        more = f"{{0,{int(high) - 1}}}" if high else "*"
        rest = f"(?:{item.rest}(?:{item.source}){more})" + ("?" if int(low or 0) == 0 else "")
        return _Parts(f"(?:{item.source}){{{int(low or 0)},{high}}}", rest)

    def _item(self) -> _Parts:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "^":
            return _Parts("^", "")
        if char == "$":
            return _Parts(_END, _END)
        if char == "[":
            return _one(self._set())
        if char == "\\":
            return self._escape()
        return _one(r"[^\n]" if char == "." else _literal(ord(char)))

    def _group(self) -> _Parts:
        if self._takes("?P<"):
            self._at = self._text.index(">", self._at) + 1
        elif not self._takes("?:") and self._takes("?"):
            self._refuse(f"`(?{self._text[self._at]}`")
        found = self.read()
        self._at += 1
        return found

    def _escape(self) -> _Parts:
        letter = self._text[self._at]
        if letter == "A":
            found = _Parts("^", "")
        elif letter in "Zz":
            found = _Parts(r"\z", r"\z")
        elif letter.lower() in _CLASSES:
            found = _one(f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]")
        elif letter in "bB":
            self._refuse(f"`\\{letter}`")
        else:
            return _one(_literal(self._code()))
        self._at += 1
        return found

    def _code(self) -> int:
        """The character that an escape stands for, behind its backslash."""
        found = _ESCAPE.match(self._text, self._at)
        assert found is not None
        word = found[0]
        self._at = found.end()
        if word[0] in "xuU":
            return int(word[1:], 16)
        if word[0] == "0" or (len(word) == 3 and word.isdigit()):
            return int(word, 8)
        if word.isdigit() or word == "N":
            self._refuse(f"`\\{word}`")
        return _CONTROL.get(word, ord(word))

    def _set(self) -> str:
        negated, members = self._takes("^"), ""
        while not members or self._text[self._at] != "]":
            members += self._member()
            if self._text[self._at] == "-" and self._text[self._at + 1] != "]":
                self._at += 1
                members += "-" + self._member()
        self._at += 1
        return f"[{'^' if negated else ''}{members}]"

    def _member(self) -> str:
        char = self._next()
        if char != "\\":
            return _literal(ord(char))
        letter = self._text[self._at]
        if letter.lower() not in _CLASSES:
            return _literal(self._code())
        self._at += 1
        if letter in _CLASSES:
            return _CLASSES[letter]
        return {"D": r"\P{Nd}", "S": _NOT_SPACE}.get(letter) or _not_word()

    def _refuse(self, what: str) -> NoReturn:
        raise ConfigError(
            f"the pattern {self._text!r} uses {what}, which takes unbounded time or is not supported",
            "use plain characters, sets, groups, `|`, `*`, `+`, `?`, `{m,n}`, `^` and `$`",
        )


def _check(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise ConfigError(
            f"a pattern has {len(pattern)} characters, the limit is {MAX_PATTERN}", "make it shorter"
        )
    try:
        flags = re.compile(pattern).flags
    except (re.error, RecursionError, OverflowError, ValueError, Warning) as error:
        raise ConfigError(
            f"the pattern {pattern!r} is broken: {error}", "write a valid regular expression"
        ) from None
    if flags & ~re.UNICODE:
        raise ConfigError(
            f"the pattern {pattern!r} sets flags", "leave `(?i)` and its like out, spell both cases"
        )


def _one(source: str) -> _Parts:
    return _Parts(source, f"{source}?")


def _literal(code: int) -> str:
    return f"\\x{{{code:x}}}"


@cache
def _not_word() -> str:
    r"""The ranges of `\W`: RE2 has no sets in sets, and no name for all that is neither letter, number nor underscore."""
    runs = re.findall(r"\W+", "".join(map(chr, range(sys.maxunicode + 1))))
    return "".join(f"{_literal(ord(run[0]))}-{_literal(ord(run[-1]))}" for run in runs)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a pair is one character, which no pattern names
        return _SURROGATE.sub("\ufffd", text).encode()


@cache
def _compiled(source: str) -> Any:
    """None where it takes too much room."""
    import re2  # a policy without patterns does without

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    try:
        return re2.compile(source, options)
    except re2.error:
        return None
