"""Regular expressions for rules, matched in time linear in the text.

Python parses the pattern; what it parsed is run as a set of states over the text (Thompson's construction), so
no pattern and no argument can make a decision hang. What needs backtracking (back-references, look-around) is
refused when the policy is loaded.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, Literal

from toolgate.core.errors import ConfigError

MAX_PATTERN = 500
MAX_STATES = 1000
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": lambda char: char.isdecimal(),
    "CATEGORY_SPACE": lambda char: char.isspace(),
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
}
_parser: Any = importlib.import_module("re._parser")

Test = Callable[[str], bool]
Need = Test | Literal["start"] | int | None
Edge = tuple[Need, int]
"""What a step needs (a test of one character, an anchor, or nothing) and the state it leads to."""
_NEWLINE, _END = 1, 2
"""How far a text has ended: `$` also holds before a last newline."""


class Linear:
    """A compiled pattern; `search` finds it anywhere in the text, as `re.search` does."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self._edges: list[list[Edge]] = [[]]
        self._end = self._add(_parse(pattern), 0)

    def search(self, text: str) -> bool:
        return self._search(text, set())

    def search_behind_anything(self, text: str) -> bool:
        """Whether it could be found in a text that ends so, whatever stands before."""
        states: set[int] = set()
        waiting = [0]
        while waiting:
            state = waiting.pop()
            if state not in states:
                states.add(state)
                waiting += [target for test, target in self._edges[state] if not isinstance(test, int)]
        return self._search(text, states)

    def _search(self, text: str, states: set[int]) -> bool:
        for at in range(len(text) + 1):
            self._close(states, 0, at == 0, _ending(text, at))
            if self._end in states:
                return True
            if at < len(text):
                states = self._step(states, text[at], _ending(text, at + 1))
        return False

    def _step(self, states: set[int], char: str, ending: int) -> set[int]:
        found: set[int] = set()
        for state in states:
            for test, target in self._edges[state]:
                if callable(test) and test(char):
                    self._close(found, target, False, ending)
        return found

    def _close(self, states: set[int], state: int, first: bool, ending: int) -> None:
        """Add a state and all it reaches without a character."""
        waiting = [state]
        while waiting:
            state = waiting.pop()
            if state in states:
                continue
            states.add(state)
            for test, target in self._edges[state]:
                if test is None or (test == "start" and first) or (isinstance(test, int) and test <= ending):
                    waiting.append(target)

    def _state(self) -> int:
        self._edges.append([])
        if len(self._edges) > MAX_STATES:
            raise ConfigError(
                f"the pattern {self.text!r} is too large", "make it shorter, or use `glob` or `in`"
            )
        return len(self._edges) - 1

    def _link(self, source: int, test: Need, target: int) -> int:
        self._edges[source].append((test, target))
        return target

    def _add(self, items: Any, state: int) -> int:
        for kind, value in items:
            state = self._one(str(kind), value, state)
        return state

    def _one(self, kind: str, value: Any, state: int) -> int:
        if kind == "SUBPATTERN" and not value[1] and not value[2]:
            return self._add(value[3], state)
        if kind == "BRANCH":
            end = self._state()
            for branch in value[1]:
                self._link(self._add(branch, self._link(state, None, self._state())), None, end)
            return end
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, body = value
            return self._repeat(low, high, body, state)
        if kind == "AT" and str(value) in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
            return self._link(state, "start", self._state())
        if kind == "AT" and str(value) in ("AT_END", "AT_END_STRING"):
            return self._link(state, _NEWLINE if str(value) == "AT_END" else _END, self._state())
        return self._link(state, _test(kind, value, self.text), self._state())

    def _repeat(self, low: int, high: int, body: Any, state: int) -> int:
        for _ in range(low):  # a state of its own each time, so that a huge count ends at MAX_STATES
            state = self._add(body, self._link(state, None, self._state()))
        if high == _parser.MAXREPEAT:
            loop = self._link(state, None, self._state())
            self._link(self._add(body, self._link(loop, None, self._state())), None, loop)
            return self._link(loop, None, self._state())
        end = self._state()
        for _ in range(high - low):
            self._link(state, None, end)
            state = self._add(body, self._link(state, None, self._state()))
        return self._link(state, None, end)


def _ending(text: str, at: int) -> int:
    if at == len(text):
        return _END
    return _NEWLINE if at == len(text) - 1 and text[at] == "\n" else 0


def _parse(pattern: str) -> Any:
    if len(pattern) > MAX_PATTERN:
        raise ConfigError(
            f"a pattern has {len(pattern)} characters, the limit is {MAX_PATTERN}", "make it shorter"
        )
    try:
        parsed = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError, ValueError, Warning) as error:
        raise ConfigError(
            f"the pattern {pattern!r} is broken: {error}", "write a valid regular expression"
        ) from None
    if parsed.state.flags & ~re.UNICODE:
        raise ConfigError(
            f"the pattern {pattern!r} sets flags", "leave `(?i)` and its like out, spell both cases"
        )
    return parsed


def _test(kind: str, value: Any, pattern: str) -> Test:
    if kind == "LITERAL":
        return chr(value).__eq__
    if kind == "NOT_LITERAL":
        return chr(value).__ne__
    if kind == "ANY":
        return "\n".__ne__
    if kind == "IN":
        negated = str(value[0][0]) == "NEGATE"
        tests = [_member(str(part), item, pattern) for part, item in value[negated:]]
        return lambda char: any(test(char) for test in tests) is not negated
    raise ConfigError(
        f"the pattern {pattern!r} uses {kind.lower().replace('_', ' ')}, which takes unbounded time or is not supported",
        "use plain characters, sets, groups, `|`, `*`, `+`, `?`, `{m,n}`, `^` and `$`",
    )


def _member(part: str, item: Any, pattern: str) -> Test:
    if part == "RANGE":
        low, high = map(chr, item)
        return lambda char: low <= char <= high
    if part == "CATEGORY":
        name = str(item).replace("_NOT_", "_")
        test = _CATEGORIES[name]
        return (lambda char: not test(char)) if "_NOT_" in str(item) else test
    return _test(part, item, pattern)
