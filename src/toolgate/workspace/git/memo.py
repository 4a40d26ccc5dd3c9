"""What git printed, kept while it is useful. Only for commands whose arguments are object ids: they never go stale."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from toolgate.workspace.git.program import Output

MOST_BYTES = 32 << 20
MOST_OF_ONE = 2 << 20


@dataclass(slots=True)
class Memo:
    """The ones used longest ago are forgotten first."""

    _kept: OrderedDict[Hashable, Output] = field(default_factory=OrderedDict)
    _bytes: int = 0

    def get(self, key: Hashable) -> Output | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, output: Output) -> None:
        if len(output.data) > MOST_OF_ONE or key in self._kept:
            return
        self._kept[key] = output
        self._bytes += len(output.data)
        while self._bytes > MOST_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.data)
