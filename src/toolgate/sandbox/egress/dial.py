"""Connections to pinned addresses. A name is used for the certificate only, never looked up again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from functools import cache

from toolgate.core.errors import CallError, TimedOut, Unavailable
from toolgate.core.target import Target

from .addresses import Address
from .limits import EgressLimits

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_MOST_TRIED = 4


@cache
def _trust(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(
    target: Target, addresses: Sequence[Address], limits: EgressLimits, ca_file: str | None
) -> tuple[Streams, str]:
    """Streams to the first address that answers, and that address."""
    context = await asyncio.to_thread(_trust, ca_file) if target.scheme == "https" else None
    tried = addresses[:_MOST_TRIED]
    failure: CallError = Unavailable(f"{target.place} cannot be reached", "try again")
    for address in tried:
        try:
            async with asyncio.timeout(limits.connect_s / len(tried)):
                streams = await asyncio.open_connection(
                    str(address), target.port, ssl=context, limit=limits.head_bytes,
                    server_hostname=target.host if context else None,
                )  # fmt: skip
            return streams, str(address)
        except TimeoutError:
            failure = TimedOut(f"{target.place} did not answer in {limits.connect_s:g} s", "try again")
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message or "it does not verify"
            raise Unavailable(
                f"the certificate of {target.place}: {why}", "use the host's right name"
            ) from error
        except (OSError, ValueError) as error:
            failure = Unavailable(f"{target.place} cannot be reached: {type(error).__name__}", "try again")
    raise failure
