"""Work that grows with what git printed, out of the way of everybody else when that is much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LARGE = 256 << 10
"""Bytes from which on the work is done in a thread; before, starting one would take longer."""


async def aside(size: int, work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work) if size >= LARGE else work()
