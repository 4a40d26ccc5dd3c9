"""How much a program may use the network, and the count of what it has used."""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.core.errors import TooLarge


@dataclass(frozen=True, slots=True)
class EgressLimits:
    connections: int = 16
    """At once; further ones wait in the kernel's queue."""
    requests: int = 500
    """Of one program, refused ones too. Beyond, they are answered with 429."""
    patience: int = 50
    """So many are answered with 429; then nothing listens any more."""
    listed: int = 200
    """Requests that are kept one by one; the rest is counted."""
    names: int = 64
    """Different host names."""
    head_bytes: int = 32 << 10
    response_bytes: int = 32 << 20
    down_bytes: int = 128 << 20
    up_bytes: int = 32 << 20
    pieces: int = 200_000
    """Chunks of all messages: millions of chunks of a byte would keep the host busy."""
    connect_s: float = 10.0
    idle_s: float = 30.0
    total_s: float = 300.0


@dataclass(slots=True)
class Spent:
    """What one program has used so far."""

    limits: EgressLimits
    requests: int = 0
    up: int = 0
    down: int = 0
    pieces: int = 0

    def take_piece(self) -> None:
        self.pieces += 1
        if self.pieces > self.limits.pieces:
            raise TooLarge(
                f"this program's messages have more than {self.limits.pieces:,} chunks", "use larger ones"
            )

    def send(self, count: int) -> None:
        self.up += count
        if self.up > self.limits.up_bytes:
            raise TooLarge(f"this program has sent more than {self.limits.up_bytes:,} bytes", "send less")

    def receive(self, count: int) -> None:
        self.down += count
        if self.down > self.limits.down_bytes:
            raise TooLarge(
                f"this program has received more than {self.limits.down_bytes:,} bytes", "fetch less"
            )
