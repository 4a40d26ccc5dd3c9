"""Transport to one server, and when one that fails is tried again: its references filled in, its environment made, its transport chosen."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.core.errors import Unavailable
from toolgate.features.servers.config import ServerSpec, Sources, filled, looks_secret

if TYPE_CHECKING:
    from toolgate.features.servers.streams import ServerProgram


INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")
"""All that a program gets of this user's environment without being told."""
SHORTEST_SECRET = 6


class ServerTransport:
    """Made for each start, so that a variable that was set meanwhile counts."""

    def __init__(self, spec: ServerSpec, root: Path, sources: Sources) -> None:
        self._spec = spec
        self._root = root
        self._sources = sources
        self._environ = sources.environ
        self._secrets: set[str] = set()
        self._program: ServerProgram | None = None

    def scrub(self, value: Any, hidden: tuple[str, ...] = ()) -> Any:
        """Without the values that environment, headers and arguments were filled with, and without the vault's: those
        are found as numbers and in pieces too, so a whole value is looked at, not each text in it."""
        value = self._sources.redact(value, hidden)
        secrets = sorted(self._secrets, key=len, reverse=True)
        return without(secrets, value) if secrets else value

    def last_words(self) -> list[str]:
        """The end of what the program wrote to stderr, which is where programs say why they end."""
        return list(self._program.tail)[-3:] if self._program is not None else []

    def transport(self, name: str, lost: Callable[[str], None]) -> Any:
        from toolgate.features.servers import streams

        spec = self._spec
        if spec.command is None:
            headers = {header: self._filled(text, secret=True) for header, text in spec.headers.items()}
            self._secrets |= {text for text in headers.values() if len(text) >= 2 * SHORTEST_SECRET}
            reach = streams.events if spec.kind == "sse" else streams.streamable
            return reach(self._filled(spec.url or ""), headers, spec.start_timeout_s)
        env = {one: self._environ[one] for one in INHERITED if one in self._environ}
        env |= {one: self._filled(text, secret=looks_secret(one)) for one, text in spec.env.items()}
        named = {
            env[one] for one in spec.env if looks_secret(one)
        }  # also those that stand in the file itself
        self._secrets |= {text for text in named if len(text) >= SHORTEST_SECRET}
        cwd = self._root / self._filled(spec.cwd or ".")
        if not cwd.is_dir():
            raise Unavailable(f"there is no directory {cwd}", "correct `cwd`")
        command = streams.found(self._filled(spec.command), env, cwd)
        argv = (command, *(self._filled(text) for text in spec.args))
        self._program = streams.ServerProgram(name, argv, env, cwd, self.scrub, lost)
        return streams.speaking(self._program)

    def _filled(self, text: str, *, secret: bool = False) -> str:
        """What is named like a secret is kept out of results and logs; a path that was filled in is not."""

        def used(name: str, value: str) -> None:
            if len(value) >= SHORTEST_SECRET and (secret or looks_secret(name)):
                self._secrets.add(value)

        return filled(text, self._sources, used)


def without(secrets: Sequence[str], value: Any) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[secret]")
        return value
    if isinstance(value, Mapping):
        return {without(secrets, key): without(secrets, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(secrets, item) for item in value]
    return "[secret]" if isinstance(value, int | float) and str(value) in secrets else value


# When a server that fails is tried again: later each time, and after many failures only once in a while.

FIRST, LONGEST = 0.5, 60.0
TRIPS_AT = 5


class Breaker:
    """Counts failures in a row. Only an answered call clears them: a server that starts well and dies in every
    call is broken too."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random
    ) -> None:
        self._now = now
        self._chance = chance
        self.failures = 0
        self._retry_at = 0.0

    @property
    def is_open(self) -> bool:
        return self.failures >= TRIPS_AT

    @property
    def wait(self) -> float:
        """Seconds until the next try; 0 means now. When an open breaker's time is over, one try decides."""
        return max(0.0, self._retry_at - self._now())

    def failed(self) -> None:
        self.failures += 1
        if self.failures == 1:
            return  # it may have been killed by hand: the next call tries at once
        longest = LONGEST if self.is_open else min(LONGEST, FIRST * 2 ** (self.failures - 2))
        self._retry_at = self._now() + longest * (0.5 + self._chance() / 2)

    def worked(self) -> None:
        self.failures, self._retry_at = 0, 0.0
