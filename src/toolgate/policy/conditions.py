"""Conditions on arguments.

A missing argument satisfies nothing but `exists: false`. For a list or an object, however deeply nested, a deny or ask
rule looks for any element that satisfies the condition, an allow rule needs every element to. What cannot be judged (too
much text, no number where one is compared) satisfies a deny or ask and never an allow, so that padding or another
spelling cannot slip past a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from toolgate.policy.globs import text_glob
from toolgate.policy.linear import Linear
from toolgate.policy.model import ConditionSpec, Scalar

MAX_TEXT = 4096
MAX_JUDGED = 64 * 1024
"""Characters of one argument that one condition looks at; a list of many texts must not take seconds."""
_MISSING = object()
_PROJECT = "project:"
_COMPARE: dict[str, Callable[[float | Decimal, float], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}

Test = Callable[[Any], bool]


class Condition:
    """A compiled condition on one argument; `strict` is whether its rule denies or asks."""

    def __init__(self, name: str, spec: ConditionSpec, strict: bool) -> None:
        self.name = name
        self.strict = strict
        self._exists = spec.exists
        self._tests = _tests(spec, strict)
        self._texts = _text_tests(spec, strict)

    def holds(self, args: Mapping[str, Any]) -> bool:
        value = args.get(self.name, _MISSING)
        present = value is not _MISSING and value is not None
        if self._exists is not None and present is not self._exists:
            return False
        if not self._tests and not self._texts:
            return True
        if value is _MISSING:
            return False
        if isinstance(value, list | tuple):
            return self._any_or_all(value)
        if isinstance(value, Mapping):  # itself, and what stands in it
            return self._any_or_all((value,))
        return self._fits(value, 0)

    def _any_or_all(self, items: list[Any] | tuple[Any, ...]) -> bool:
        found = False
        judged = 0
        for item in _elements(items):
            found = True
            judged += len(item) + 1 if isinstance(item, str) else 0
            if self._fits(item, judged) is self.strict:  # the first that fits a deny, or that an allow lacks
                return self.strict
        return found and not self.strict

    def _fits(self, value: Any, judged: int) -> bool:
        for test in self._tests:
            if not test(value):
                return False
        if not self._texts:
            return True
        if not isinstance(value, str):
            return False
        if len(value) > MAX_TEXT or judged > MAX_JUDGED:
            return self.strict
        spellings = _spellings(value)
        return all(any(map(test, spellings)) for test in self._texts)


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


def _tests(spec: ConditionSpec, strict: bool) -> list[Test]:
    said = spec.model_fields_set
    found: list[Test] = []
    if "equals" in said:
        found.append(lambda value: _same(value, spec.equals))
    if spec.one_of is not None:
        choices = spec.one_of
        found.append(lambda value: any(_same(value, choice) for choice in choices))
    if "differs" in said:
        others = spec.differs if isinstance(spec.differs, tuple) else (spec.differs,)
        found.append(lambda value: not any(_same(value, other) for other in others))
    return found + [_number_test(name, getattr(spec, name), strict) for name in _COMPARE if name in said]


def _text_tests(spec: ConditionSpec, strict: bool) -> list[Callable[[str], bool]]:
    found: list[Callable[[str], bool]] = []
    if spec.glob is not None:
        globs = [text_glob(text) for text in spec.glob]
        held = [glob.catches if strict else glob.matches for glob in globs]
        found.append(lambda text: any(test(text) for test in held))
    if spec.matches is not None:
        found.append(Linear(spec.matches).search)
    return found


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

    def holds(value: Any) -> bool:
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
