"""What a result was made from, so that it can be served again for exactly as long as that holds.

While a tool with `cache_s` runs, whatever reads files for it notes here what it saw. The gate keeps the notes with
the result and asks every one of them before it serves the result again. A reader that cannot say what it depends
on spoils the evidence, and the result is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from toolgate.core.records import dataclass, field


class Proof(Protocol):
    """One thing that a result depends on."""

    def stood(self) -> bool:
        """Asked right after the run: whether it was so from the note to the end, as far as that is in our hands."""
        ...

    async def holds(self) -> bool:
        """Whether a run right now would see the very same. Raising is a no."""
        ...


@dataclass(slots=True)
class Evidence:
    again: bool = False
    """The same call was made a short time ago, so a dear proof may pay."""
    proofs: list[Proof] = field(default_factory=list)
    spoiled: bool = False

    def add(self, proof: Proof) -> None:
        self.proofs.append(proof)

    def spoil(self) -> None:
        self.spoiled = True


_gathering: ContextVar[Evidence | None] = ContextVar("toolgate-evidence", default=None)


def gathering() -> Evidence | None:
    """Where to note what is read right now; None if nobody wants to know."""
    return _gathering.get()


def spoil() -> None:
    """What is being read now cannot be proven later."""
    found = _gathering.get()
    if found is not None:
        found.spoil()


@contextmanager
def gather(again: bool = False) -> Iterator[Evidence]:
    """Collect what is read within."""
    found = Evidence(again)
    token = _gathering.set(found)
    try:
        yield found
    finally:
        _gathering.reset(token)
