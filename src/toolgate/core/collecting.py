"""Garbage collection, put off while modules are loaded and a gate is opened: they make no garbage, and looking for it
takes a tenth of a short command."""

from __future__ import annotations

import gc


class NoCollection:
    def __init__(self, *, lasting: bool = False) -> None:
        self._lasting = lasting
        """Whether all that is there at the end stays: it is not looked at again. Only where that happens a few times."""

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            if self._lasting:
                gc.freeze()
            gc.enable()
