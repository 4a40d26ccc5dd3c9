"""Patterns that are compiled when they are first used: most calls meet few of them, and compiling takes a while."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast

_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class _LatePattern:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._pattern, self._flags = pattern, flags
        if not callable(pattern):
            self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        pattern = self._pattern() if callable(self._pattern) else self._pattern
        compiled = re.compile(pattern, self._flags)
        self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def late_pattern(pattern: AnyStr | Callable[[], AnyStr], flags: int = 0) -> re.Pattern[AnyStr]:
    """Stands in for `re.compile(pattern, flags)`; a function is asked for the pattern."""
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))
