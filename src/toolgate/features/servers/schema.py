"""Values against JSON schemas that a stranger wrote: nothing is fetched, nothing hangs.

Patterns run in linear time; one that needs backtracking is not checked here (the server will). The number of
steps is bounded, because schemas can refer to themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolgate.core.canonical import canonical
from toolgate.core.errors import CallError, ConfigError
from toolgate.policy.linear import Linear

MAX_STEPS = 50_000
MAX_PATTERN_TEXT = 10_000


class Unusable(Exception):
    """The schema itself is broken, or takes too long."""


class Checker:
    """One schema, compiled when it is first needed."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        self._validator: Any = None
        self._steps = 0

    def problems(self, value: Any, most: int = 5) -> list[str]:
        """What does not fit, each with its place; empty if it fits. Raises Unusable."""
        found: list[str] = []
        self._steps = 0
        try:
            for error in self._compiled().iter_errors(value):
                where = ".".join(map(str, error.absolute_path))
                found.append(f"{where}: {error.message[:200]}" if where else error.message[:200])
                if len(found) == most:
                    break
        except Unusable:
            raise
        except RecursionError:
            raise Unusable("it refers to itself without end") from None
        except (
            Exception
        ) as error:  # a schema is a stranger's program: whatever it breaks, it breaks only itself
            raise Unusable(f"{type(error).__name__}: {str(error)[:200]}") from None
        return found

    def check(self) -> None:
        """Raise Unusable if the schema is none."""
        self._compiled()

    def _compiled(self) -> Any:
        if self._validator is None:
            self._validator = self._compile()
        return self._validator

    def _compile(self) -> Any:
        from jsonschema import SchemaError, validators
        from referencing import Registry

        base = validators.validator_for(self._schema, default=validators.Draft202012Validator)
        try:
            base.check_schema(self._schema)
        except (SchemaError, RecursionError) as error:
            raise Unusable(str(getattr(error, "message", error))[:200]) from None
        own: dict[str, Any] = {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "uniqueItems": _unique,
        }
        words = {word: self._counted(own.get(word, check)) for word, check in base.VALIDATORS.items()}
        kind = validators.extend(base, words)
        return kind(self._schema, registry=Registry())  # an empty registry: no reference leads outside

    def _counted(self, check: Callable[..., Any]) -> Callable[..., Any]:
        def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise Unusable("it takes too many steps to check")
            yield from check(validator, wanted, value, schema) or ()

        return counted


def _linear(pattern: str) -> Linear | None:
    try:
        return Linear(pattern)
    except ConfigError:
        return None


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    linear = _linear(pattern) if isinstance(value, str) and len(value) <= MAX_PATTERN_TEXT else None
    if linear is not None and not linear.search(value):
        yield ValidationError(f"{value[:80]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    for pattern, part in wanted.items() if isinstance(value, dict) else ():
        linear = _linear(pattern)
        for name, item in value.items():
            if linear is not None and linear.search(name[:MAX_PATTERN_TEXT]):
                yield from validator.descend(item, part, path=name, schema_path=pattern)


def _unique(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not wanted or not isinstance(value, list):
        return
    try:
        repeats = len({canonical(item) for item in value}) < len(value)
    except CallError:
        return
    if repeats:
        yield ValidationError("it has an element twice")
