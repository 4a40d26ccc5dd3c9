"""Garbage collection, put off while modules are loaded and a gate is opened: they make no garbage, and looking for it
takes a tenth of a short command."""

from __future__ import annotations

import gc
from threading import Lock

_YOUNG = 50_000
"""Objects of a program that has just begun."""


class NoCollection:
    """Several may be in it at once, in threads or tasks: the last to leave puts things as the first found them."""

    _turn = Lock()
    _inside = 0
    _was = False

    def __init__(self, *, lasting: bool = False) -> None:
        self._lasting = lasting and len(gc.get_objects()) < _YOUNG
        """Whether all that is there at the end stays and is not looked at again. Never what an older program brings:
        its own garbage would stay too."""

    def __enter__(self) -> None:
        with self._turn:
            if not NoCollection._inside:
                NoCollection._was = gc.isenabled()
                gc.disable()
            NoCollection._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._turn:
            NoCollection._inside -= 1
            if NoCollection._inside or not NoCollection._was:
                return
            if self._lasting:
                gc.freeze()
            gc.enable()
