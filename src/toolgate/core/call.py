"""A Call: a persona asks for a tool with final arguments. Its digest is its identity."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.canonical import canonical, sha256
from toolgate.core.context import Trail
from toolgate.core.finding import recorded
from toolgate.core.records import dataclass, field, replace

if TYPE_CHECKING:
    from toolgate.core.change import Change

_counter = itertools.count(int.from_bytes(os.urandom(2)))
_process = os.urandom(5).hex()


def _fresh_process() -> None:
    global _process
    _process = os.urandom(5).hex()


os.register_at_fork(after_in_child=_fresh_process)


def new_id(prefix: str) -> str:
    """Unique across processes and hosts, and sorted by time: `c_0192…`."""
    at, number = time.time_ns() // 1_000_000, next(_counter) & 0xFFFFFF
    return "%s_%011x%s%06x" % (prefix, at, _process, number)  # noqa: UP031 - three quarters of the cost of a format


@dataclass(slots=True)  # not frozen: one is made for every call, and freezing doubles its cost
class Call:
    id: str
    tool: str
    definition: str
    args: Mapping[str, Any]
    """Validated, defaulted, JSON."""
    args_json: str
    """The same, in canonical form."""
    persona: str
    trail: Trail = field(default_factory=Trail)
    change: Change | None = None
    digest: str = ""
    request: str = ""
    """The digest without the Change: what a caller who repeats a key asks for."""
    former: str = ""
    """The digest as it was made while it held every directory on the way; answers of that time still count."""

    sealed_json: str = ""
    """The arguments as the digest takes them, where they hold secrets: a keyed hash stands for each, so that nobody
    who reads the ledger can guess a short one from the digest."""

    @classmethod
    def make(
        cls,
        tool: str,
        definition: str,
        args: Mapping[str, Any],
        persona: str,
        trail: Trail,
        call_id: str = "",
        sealed: Mapping[str, Any] | None = None,
    ) -> Call:
        args_json = canonical(args)
        sealed_json = "" if sealed is None or sealed is args else canonical(sealed)
        digest = call_digest(tool, definition, sealed_json or args_json, persona, None)
        ident = call_id or new_id("c")
        return cls(
            ident, tool, definition, args, args_json, persona, trail, None, digest, digest, "", sealed_json
        )

    def planned(self, change: Change | None = None, preview: str = "") -> Call:
        """The same call with what it would do, which is then part of its identity."""
        spelled = self.sealed_json or self.args_json
        digest = call_digest(self.tool, self.definition, spelled, self.persona, change, preview)
        former = ""
        if change is not None and len(change.identity) != len(change.manifest):
            former = call_digest(self.tool, self.definition, spelled, self.persona, change, parents=True)
        return replace(self, change=change, digest=digest, former=former)

    @property
    def digests(self) -> tuple[str, ...]:
        """Under which an answer to this very call may be found."""
        return (self.digest, self.former) if self.former else (self.digest,)


def call_digest(
    tool: str, definition: str, args_json: str, persona: str, change: Change | None, preview: str = "",
    parents: bool = False,
) -> str:  # fmt: skip
    """SHA-256 over RFC 8785 JSON of what identifies a call. Names have no characters that JSON would escape."""
    planned = found = shown = unkept = ""
    if change is not None:
        planned = f',"change":{canonical(change.manifest if parents else change.identity)}'
        found = f',"findings":{canonical(recorded(change.findings))}' if change.findings else ""
        unkept = ',"unkept":true' if change.unkept else ""
    if preview:
        shown = f',"preview":"{sha256(preview)}"'
    told = f'{{"args":{args_json}{planned},"definition":"{definition}"{found},"persona":"{persona}"{shown},"tool":"{tool}"{unkept}}}'
    return sha256(told)
