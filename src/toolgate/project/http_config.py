"""How much of the server one client may take, as `http:` in toolgate.yaml describes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolgate.policy.model import Strict

Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Wait = Annotated[float, Field(gt=0, le=3600, strict=True)]


class HttpSpec(Strict):
    connections: Count = 1000
    """Of all personas together."""
    reserved: Annotated[int, Field(ge=16, le=10_000, strict=True)] = 200
    """As many more for the human alone, and as many for connections that have not shown a token yet."""
    address_connections: Annotated[int, Field(ge=16, le=100_000, strict=True)] = 400
    """From one address that have not shown a token; the oldest of them goes."""
    persona_connections: Count = 200
    """Of one persona."""
    persona_streams: Count = 32
    """Of one persona: event streams, and streams and subscriptions of MCP."""
    persona_sessions: Count = 100
    """MCP sessions of one persona."""
    header_s: Wait = 10.0
    """For the whole of a request's head, and for the next one on a connection on which no token was shown."""
    body_s: Wait = 30.0
    """For a body, and as much more as it needs at 16 KiB a second."""
    idle_s: Wait = 75.0
    """A connection without a request. Clients keep theirs for 5 to 60: whoever lets go first, it should not be the server,
    or a call that is sent at that moment is lost on its way."""
    write_s: Wait = 20.0
    """A reader who takes less than 16 KiB a second for so long, where something waits for it, is dropped."""
    header_bytes: Annotated[int, Field(ge=4096, le=1 << 20, strict=True)] = 32 << 10
    body_bytes: Annotated[int, Field(ge=4096, le=8 << 20, strict=True)] = 8 << 20
