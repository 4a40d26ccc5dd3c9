"""Which walls are left out. None, except in tests that show what each of them stops."""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.sandbox.inside.order import LAYERS


@dataclass(frozen=True, slots=True)
class Walls:
    """No setting, argument of a call or environment variable leads here: only code that constructs a Host with it."""

    off: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := self.off - LAYERS:
            raise ValueError(
                f"there is no layer {sorted(unknown)[0]!r}; there are: {', '.join(sorted(LAYERS))}"
            )


ALL = Walls()
