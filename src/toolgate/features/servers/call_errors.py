"""How a call to a server can end, in words: held, late, lost; and what is heard of it on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

from toolgate.core.context import Context
from toolgate.core.errors import CallError, TimedOut, Unavailable, UnknownOutcome
from toolgate.features.servers.results import Scrub, defused

_DOUBT = "; whether it took effect is unknown"
MANY = 20
"""Reports of progress that are passed on as they come; after that, not more than 20 a second."""
LONGEST_PROGRESS = 4000
"""Characters of what is said with it; looking for secrets in more takes too long."""
_LOOK = "look at what it did before you call again; it is not sent again by itself"


def late(server: str, seconds: float, effectful: bool) -> CallError:
    message = f"{server} did not answer in {seconds:g} s"
    return (
        UnknownOutcome(message + _DOUBT, _LOOK)
        if effectful
        else TimedOut(message, "call again, or raise `timeout_s`")
    )


def lost(server: str, why: str) -> CallError:
    """After it was sent, and before it was answered."""
    return UnknownOutcome(
        f"the connection to {server} was lost after the call was sent: {why}{_DOUBT}", _LOOK
    )


def why_held(server: str, why: str) -> tuple[str, str]:
    fix = f"a human looks at it with `toolgate servers diff {server}` and approves it with `toolgate servers approve {server}`"
    return f"held: {why}", fix


def as_read(error: CallError) -> CallError:
    """Of a call that only reads there is no doubt: it gave nothing."""
    return Unavailable(error.message.removesuffix(_DOUBT), "call again")


def told(
    server: str, context: Context, scrub: Scrub
) -> Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]:
    last, heard = 0.0, 0

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        nonlocal last, heard
        now = time.monotonic()
        heard += 1
        if heard > MANY and now - last < 0.05 and progress != total:
            return  # a server may send thousands; people need a few
        last = now
        fraction = min(1.0, max(0.0, progress / total)) if total else 0.0
        words = message if message and len(message) <= LONGEST_PROGRESS else ""
        # cut last: half a secret would not be found
        context.progress(fraction, f"{server}: {defused(scrub(words))[:200]}")

    return tell
