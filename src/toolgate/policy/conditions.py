"""Conditions on arguments.

A missing argument satisfies nothing but `exists: false`. For a list, a deny or ask rule looks for any element
that satisfies the condition, an allow rule needs every element to. A text too long to judge satisfies a deny or
ask and never an allow, so that padding cannot slip past a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgate.policy.globs import text_glob
from toolgate.policy.linear import Linear
from toolgate.policy.model import ConditionSpec, Scalar

MAX_TEXT = 4096
_MISSING = object()
_PROJECT = "project:"
_COMPARE: dict[str, Callable[[float, float], bool]] = {
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
        self._tests = list(_tests(spec, strict))

    def holds(self, args: Mapping[str, Any]) -> bool:
        value = args.get(self.name, _MISSING)
        present = value is not _MISSING and value is not None
        if self._exists is not None and present is not self._exists:
            return False
        if not self._tests:
            return True
        if value is _MISSING:
            return False
        if isinstance(value, list | tuple):
            held = [self._all(item) for item in value]
            return any(held) if self.strict else bool(held) and all(held)
        return self._all(value)

    def _all(self, value: Any) -> bool:
        for test in self._tests:  # noqa: SIM110  the hot path
            if not test(value):
                return False
        return True


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
    if spec.glob is not None:
        globs = [text_glob(text) for text in spec.glob]
        held = [glob.catches if strict else glob.matches for glob in globs]
        found.append(_text_test(lambda text: any(test(text) for test in held), strict))
    if spec.matches is not None:
        found.append(_text_test(Linear(spec.matches).search, strict))
    return found + [_number_test(name, getattr(spec, name)) for name in _COMPARE if name in said]


def _same(value: Any, wanted: Scalar) -> bool:
    """Equal, without Python's `True == 1`; a path of the project also by its short spelling."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, str) and isinstance(wanted, str):
        return wanted in _spellings(value)
    return bool(value == wanted)


def _spellings(text: str) -> tuple[str, ...]:
    return (text, text[len(_PROJECT) :]) if text.startswith(_PROJECT) else (text,)


def _text_test(test: Callable[[str], bool], strict: bool) -> Test:
    def holds(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        if len(value) > MAX_TEXT:
            return strict
        return any(test(spelling) for spelling in _spellings(value))

    return holds


def _number_test(name: str, bound: float | None) -> Test:
    compare = _COMPARE[name]

    def holds(value: Any) -> bool:
        if bound is None or isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return compare(value, bound)

    return holds
