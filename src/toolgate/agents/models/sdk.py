"""Requests through a provider's SDK: time-outs, retries after a broken stream, errors in our own words.

The SDK itself retries what never got an answer. A stream that breaks off is asked for again here: a reply has no effect
until it is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2

from toolgate.agents.models import ModelSettings
from toolgate.core.errors import CallError, Failed, NotAllowed, RateLimited, TimedOut, Unavailable

T = TypeVar("T")
FIRST_PAUSE = 0.2
SHOWN = 500
SHORTEST_KEY = 4
"""Local servers take any word for a key; one that is shorter hides nothing."""


class Broken(Exception):
    """A stream ended before the reply did."""


async def patiently(settings: ModelSettings, attempt: Callable[[], Awaitable[T]], errors: Any) -> T:
    """The reply of one attempt; `errors` is the SDK's module. A cancelled caller cancels the request."""
    pause = FIRST_PAUSE
    for left in range(settings.retries, -1, -1):
        try:
            async with asyncio.timeout(settings.timeout_s):
                return await attempt()
        except TimeoutError:
            raise TimedOut(
                f"{settings.model} did not answer in {settings.timeout_s:g} s",
                "try again, or allow more with `timeout_s`",
            ) from None
        except (Broken, httpx2.TransportError, errors.APIConnectionError) as error:
            if not left:
                raise Unavailable(
                    f"the connection to {settings.model} broke {settings.retries + 1} times: {_told(settings, error)}",
                    "try again later, or see whether its server runs",
                ) from None
        except errors.APIStatusError as error:
            raise _refused(settings, error) from None
        except errors.APIError as error:
            raise Failed(
                f"{settings.model} answered what cannot be used: {_told(settings, error)}", "try again"
            ) from None
        except (ValueError, TypeError, AttributeError, LookupError) as error:  # the SDK hands garbage on
            if not left:
                raise Failed(
                    f"{settings.model} answered what cannot be used: {type(error).__name__}: {_told(settings, error)}",
                    "see whether `base_url` names a server that speaks this protocol",
                ) from None
        await asyncio.sleep(pause)
        pause *= 2
    raise AssertionError("unreachable")


def _refused(settings: ModelSettings, error: Any) -> CallError:
    status, told = error.status_code, _told(settings, error)
    if status in (401, 403):
        return NotAllowed(
            f"{settings.model} refused the key ({status}): {told}", "correct the secret that `key` names"
        )
    if status == 429:
        return RateLimited(
            f"{settings.model} is asked too often or its quota is used up: {told}", "wait, then resume"
        )
    if status >= 500:
        return Unavailable(f"{settings.model} has trouble of its own ({status}): {told}", "try again later")
    return Failed(
        f"{settings.model} refused the request ({status}): {told}", "see `models:` in toolgate.yaml"
    )


def _told(settings: ModelSettings, error: BaseException) -> str:
    """In the provider's words, which may repeat the key: it is replaced before anything is cut, as half a key is found
    by nobody."""
    text = " ".join(str(error).split())
    if len(settings.key) >= SHORTEST_KEY:
        text = text.replace(settings.key, "[key]")
    return text[:SHOWN] or type(error).__name__
