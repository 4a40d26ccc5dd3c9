"""Conditions on arguments.

A missing argument satisfies nothing but `exists: false`. For a list or an object, however deeply nested, a deny or ask
rule looks for any element that satisfies the condition, an allow rule needs every element to. What cannot be judged (too
much text, no number where one is compared) satisfies a deny or ask and never an allow, so that padding or another
spelling cannot slip past a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import canonical
from toolgate.policy.endpoints import caught, leads, names_place, places, reaches_only, takes_place, within
from toolgate.policy.globs import text_glob
from toolgate.policy.linear import Linear
from toolgate.policy.readings import readings

if TYPE_CHECKING:
    from toolgate.policy.model import ConditionSpec, Scalar

MAX_TEXT = 4096
MAX_JUDGED = 64 * 1024
"""Characters of one argument that one condition looks at; a list of many texts must not take seconds."""
_DEAR = 4
"""What a character counts in a text beyond ASCII: such names are read in several ways."""
_NETWORK = frozenset({"hosts", "methods"})
"""The keys of a network grant: its methods narrow what its hosts allow."""
_MISSING = object()
_PROJECT = "project:"
_COMPARE: dict[str, Callable[[float | Decimal, float], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}

Test = Callable[[Any, bool], bool]
"""Of a value, and whether there is too much of it to be judged as a place on the network."""


class Condition:
    """A compiled condition on one argument; `strict` is whether its rule denies or asks."""

    def __init__(self, name: str, spec: ConditionSpec, strict: bool) -> None:
        self.name = name
        self.strict = strict
        self._exists = spec.exists
        self._hashes = frozenset(spec.sha256 or ())
        self._begins = list(spec.begins or ())
        self._by_host = spec.host is not None
        self._tests = _tests(name, spec, strict)
        self._texts = _text_tests(name, spec, strict)

    def holds(self, args: Mapping[str, Any]) -> bool:
        value = args.get(self.name, _MISSING)
        present = value is not _MISSING and value is not None
        if self._exists is not None and present is not self._exists:
            return False
        if self._hashes and not (present and self._is_hashed(value)):
            return False
        if self._begins and not (present and self._begins_so(value)):
            return False
        if not self._tests and not self._texts:
            return True
        if value is _MISSING:
            return False
        if self._by_host and not self.strict and isinstance(value, Mapping) and value.keys() <= _NETWORK:
            value = value.get("hosts", ())
        if isinstance(value, list | tuple):
            return self._any_or_all(value)
        if isinstance(value, Mapping):  # itself, and what stands in it
            return self._any_or_all((value,))
        return self._fits(value, 0)

    def _begins_so(self, value: Any) -> bool:
        """What is no list has no beginning that could be judged."""
        if not isinstance(value, list | tuple):
            return self.strict
        return list(value[: len(self._begins)]) == self._begins

    def _is_hashed(self, value: Any) -> bool:
        """The whole of it; for a deny or ask also any text in it."""
        if hash_of(value) in self._hashes:
            return True
        inner = _elements((value,)) if self.strict and not isinstance(value, str) else ()
        return any(isinstance(item, str) and hash_of(item) in self._hashes for item in inner)

    def _any_or_all(self, items: list[Any] | tuple[Any, ...]) -> bool:
        found = False
        judged = 0
        for item in _elements(items):
            found = True
            if isinstance(item, str):
                judged += len(item) + 1 if item.isascii() else _DEAR * len(item) + 1
            if self._fits(item, judged) is self.strict:  # the first that fits a deny, or that an allow lacks
                return self.strict
        return found and not self.strict

    def _fits(self, value: Any, judged: int) -> bool:
        too_much = judged > MAX_JUDGED or (isinstance(value, str) and len(value) > MAX_TEXT)
        for test in self._tests:
            if not test(value, too_much):
                return False
        if not self._texts:
            return True
        if not isinstance(value, str):
            return False
        if too_much:
            return self.strict
        spellings = _spellings(value)
        return all(any(map(test, spellings)) for test in self._texts)


def hash_of(value: Any) -> str:
    """Of a text its UTF-8; of anything else its canonical JSON after a byte that no text has, so that a list and the text
    that spells it are not the same."""
    if isinstance(value, str):
        return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return sha256(b"\xff" + canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def _elements(items: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    """The elements of nested lists and objects, in order; without recursion, which deep nesting would exhaust."""
    waiting = [iter(items)]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list | tuple):
                waiting.append(iter(item))
                break
            yield item
            if isinstance(item, Mapping):
                waiting.append(iter(item.values()))
                break
        else:
            waiting.pop()


def _tests(name: str, spec: ConditionSpec, strict: bool) -> list[Test]:
    said = spec.model_fields_set
    found: list[Test] = []
    if "equals" in said:
        found.append(_is_one(name, (spec.equals,), strict))
    if spec.one_of is not None:
        found.append(_is_one(name, spec.one_of, strict))
    if "differs" in said:
        others = spec.differs if isinstance(spec.differs, tuple) else (spec.differs,)
        # an allow of all but these: what could lead to one of them is not among the rest
        excepted = _is_one(name, others, not strict)
        found.append(lambda value, too_much: not excepted(value, too_much))
    if spec.host is not None:
        found.append(_host_test(spec.host, strict))
    return found + [_number_test(name, getattr(spec, name), strict) for name in _COMPARE if name in said]


def _is_one(name: str, wanted: Sequence[Scalar], strict: bool) -> Test:
    """Whether a value is one of these; strictly, also whether it leads to one of them that is a host."""
    texts = [text for text in wanted if isinstance(text, str) and text] if strict else []
    named = takes_place(name)
    always = [one for text in texts if named or names_place(text) for one in places(text, True)]
    leading = [one for text in texts for one in places(text, True)]

    def test(value: Any, too_much: bool) -> bool:
        if any(_same(value, each) for each in wanted):
            return True
        if not texts or isinstance(value, bool) or not isinstance(value, str | int):
            return False
        text = str(value)
        leading_on = leads(text)
        found = leading if leading_on else always
        if too_much:  # prose that is longer than any host is none
            prose = len(text) > MAX_TEXT and text.isascii() and not named and not leading_on
            return bool(found) and not prose
        return bool(found) and caught(found, text, named)

    return test


def _host_test(entries: Sequence[str], strict: bool) -> Test:
    found = [one for entry in entries for one in places(entry, True)]

    def test(value: Any, too_much: bool) -> bool:
        if isinstance(value, bool) or not isinstance(value, str | int):
            return False
        if too_much:
            return strict
        return caught(found, str(value)) if strict else reaches_only(entries, str(value))

    return test


def _text_tests(name: str, spec: ConditionSpec, strict: bool) -> list[Callable[[str], bool]]:
    found: list[Callable[[str], bool]] = []
    if spec.glob is not None:
        globs = [_glob_test(name, text, strict) for text in spec.glob]
        found.append(lambda text: any(test(text) for test in globs))
    if spec.matches is not None:
        found.append(_pattern_test(name, Linear(spec.matches), strict))
    return found


def _glob_test(name: str, pattern: str, strict: bool) -> Callable[[str], bool]:
    glob, found = text_glob(pattern), places(pattern)
    if not strict:
        return lambda text: glob.matches(text) and within(found, pattern, name, text)
    named = takes_place(name)
    about = named or names_place(pattern)
    return lambda text: glob.catches(text) or ((about or leads(text)) and caught(found, text, named))


def _pattern_test(name: str, pattern: Linear, strict: bool) -> Callable[[str], bool]:
    named = takes_place(name)
    if not strict:
        # whatever stands for a wildcard must fit, not only the star that was written
        return lambda text: pattern.search(text) and not (named and "*" in text)

    def test(text: str) -> bool:
        if pattern.search(text):
            return True
        for one in readings(text, named) if named or leads(text) else ():
            hosts = (f"{start}{host}" for host in one.names for start in ("", f"{one.scheme}://"))
            if any(map(pattern.search, hosts)) or any(map(pattern.search_behind_anything, one.tails)):
                return True
            if "" in one.tails:  # a star alone reaches everything
                return True
        return False

    return test


def _same(value: Any, wanted: Scalar) -> bool:
    """Equal, without Python's `True == 1`; a path of the project also by its short spelling."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, str) and isinstance(wanted, str):
        return wanted in _spellings(value)
    return bool(value == wanted)


def _spellings(text: str) -> tuple[str, ...]:
    return (text, text[len(_PROJECT) :]) if text.startswith(_PROJECT) else (text,)


def _number_test(name: str, bound: float | None, strict: bool) -> Test:
    compare = _COMPARE[name]

    def holds(value: Any, too_much: bool) -> bool:
        if bound is None or value is None:  # null is an argument that was left out
            return False
        number = _number(value)
        return strict if number is None else compare(number, bound)

    return holds


def _number(value: Any) -> float | Decimal | None:
    """The number that a value is or spells; a Decimal reaches policy as text. None if it cannot be judged."""
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        try:
            value = Decimal(value)
        except InvalidOperation:
            return None
        return None if value.is_nan() else value
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return value
