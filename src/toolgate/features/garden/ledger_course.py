"""Course of the ledger as a garden sees it: calls that changed files, notes of people's edits, and what is still open."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from toolgate.core.change import DIRECTORY
from toolgate.core.errors import LedgerBroken
from toolgate.core.names import HUMAN
from toolgate.ledger.chain import fault_of
from toolgate.ledger.effects import Effect
from toolgate.ledger.ledger import Ledger
from toolgate.storage.port import Filter, Row

PERSON_EDIT = "person_edit"
_KINDS = ("started", "committed", "failed", "unknown", "resolved", "noted")
_BATCH = 5_000


class LedgerCourse:
    """The ledger read onwards: calls as they happen, and files that a call which has not ended may be changing."""

    def __init__(self, ledger: Ledger, after: int = 0) -> None:
        self._ledger, self._after = ledger, after
        self._begun: dict[str, Row] = {}
        self._unknown: set[str] = set()
        self._held: list[Effect] = []

    async def onwards(self) -> AsyncIterator[Effect | Row]:
        """What happened since the last time: a call, or a note of a person's edit. Calls that changed one file come as
        they began: that is how they changed it, also where an earlier one is recorded later than one on top of it."""
        async for row in self._rows():
            if row.kind == "started":
                if '"effectful":true' in row.body and '"change":' in row.body:
                    self._begun[row.call] = row
            elif row.kind == "unknown":
                self._unknown.add(row.call)  # nobody waits for it: it may stay so
            elif row.kind == "committed" or (row.kind == "resolved" and '"outcome":"happened"' in row.body):
                if row.call in self._begun:
                    self._held.append(Effect(self._begun.pop(row.call), row))
            elif row.kind != "noted":
                self._begun.pop(row.call, None)
            elif not row.tool and f'"op":"{PERSON_EDIT}"' in row.body:
                yield row
            self._after = row.seq
            for effect in self._free() if self._held and row.kind not in ("started", "noted") else ():
                yield effect

    def _free(self) -> list[Effect]:
        """Those that no open call may come before."""
        before = [row for call, row in self._begun.items() if call not in self._unknown]
        if not before and len(self._held) == 1:
            return [self._held.pop()]
        taken = [(row.seq, _paths(json.loads(row.body))) for row in before]
        free, held = [], []
        for effect in sorted(self._held, key=lambda one: one.started.seq):
            paths = _paths(effect.body)
            if any(seq < effect.started.seq and not paths.isdisjoint(other) for seq, other in taken):
                held.append(effect)
                taken.append((effect.started.seq, paths))
            else:
                free.append(effect)
        self._held = held
        return free

    async def _rows(self) -> AsyncIterator[Row]:
        """Checked against their seals: provenance that anybody can write into a database is none."""
        while page := await self._ledger.backend.rows(Filter(kinds=_KINDS, after=self._after, limit=_BATCH)):
            for row in page:
                fault = fault_of(row, row.seq, row.prev, self._ledger.keys)
                if fault:
                    raise LedgerBroken(
                        f"event {row.seq} cannot be relied on: {fault}", "run `toolgate ledger verify`"
                    )
                yield row

    @property
    def settled(self) -> int:
        """The event up to which no call is open."""
        return min((row.seq - 1 for row in self._begun.values()), default=self._after)

    @property
    def busy(self) -> frozenset[str]:
        """Files that an open call may be changing; one whose outcome is unknown changes nothing any more."""
        bodies = (json.loads(row.body) for call, row in self._begun.items() if call not in self._unknown)
        return frozenset(path for body in bodies for path in _paths(body))

    @property
    def doubted(self) -> frozenset[tuple[str, str | None]]:
        """Files and hashes that calls of unknown outcome were about to bring: no person's edit, if it is that."""
        bodies = (json.loads(row.body) for call, row in self._begun.items() if call in self._unknown)
        return frozenset(
            (entry["path"], entry["after"]) for body in bodies for entry in body.get("change", ())
        )


def _paths(body: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        entry["path"]
        for entry in body.get("change", ())
        if DIRECTORY not in (entry["before"], entry["after"])
    )


class ExpectedFiles:
    """What the ledger alone says that each file is now: its hash, and the event that made it so."""

    def __init__(self, ledger: Ledger, counts: Callable[[str], bool]) -> None:
        """`counts` says of a path whether it is one of a garden's files."""
        self._course, self._counts = LedgerCourse(ledger), counts
        self.found: dict[str, tuple[str | None, int]] = {}

    async def look(self) -> None:
        """Take in what has happened since the last look."""
        async for step in self._course.onwards():
            if isinstance(step, Effect):
                for entry in step.manifest:
                    if self._counts(entry["path"]):
                        self.found[entry["path"]] = (entry["after"], step.event)
            else:
                path, before, after = person_edit(step)
                # one that was noticed after a later edit is not what the file is now
                if before == (self.found.get(path, ("", 0))[0] or ""):
                    self.found[path] = (after, step.seq)

    @property
    def busy(self) -> frozenset[str]:
        return self._course.busy


def person_edit(row: Row) -> tuple[str, str, str]:
    """The path, and the hashes before and after, of a noted edit."""
    body = json.loads(row.body)
    return str(body.get("file_path", "")), str(body.get("before_hash", "")), str(body.get("after_hash", ""))


def op_of(tool: str, args: Mapping[str, Any]) -> str:
    """Of a call whose result was lost with its process."""
    if tool == "md.patch_section":
        given = {**args, **(args.get("change") or {})}
        return "replace_section" if given.get("replace") is not None else "append_section"
    if tool == "md.curate_list" and len(set(args.get("ops") or ())) == 1:
        return f"{args['ops'][0]}_item"
    return tool.rpartition(".")[2]


def trust_of(effect: Effect) -> str:
    """System-stamped: by who made the call and where its evidence comes from, never by what a model says of it."""
    if effect.started.persona == HUMAN:
        return "person"
    return "outside" if any("://" in one for one in refs_of(effect)) else "agent"


def refs_of(effect: Effect) -> list[str]:
    return [str(one) for one in (effect.body.get("args") or {}).get("evidence_refs") or ()]
