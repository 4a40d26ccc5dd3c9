"""A call that leads to another: what a program changed is proposed as a write, which must pass the gate itself.

The first call is settled before the second begins, and each has its own decision, question and events. What became of
the second is told in the result of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.core.result import Result


@dataclass(frozen=True, slots=True)
class Follow:
    next: Callable[[Any], tuple[str, Mapping[str, Any]] | None]
    """From the first call's data, the tool and arguments of the second; None where there is nothing to do."""
    told: Callable[[Any, Result], Any]
    """The first call's data, with what became of the second."""
