"""What stands, one by one: a running call, a question, a grant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolgate.core.records import dataclass

if TYPE_CHECKING:
    from toolgate.core.event import Event
    from toolgate.storage.port import Row


@dataclass(slots=True, eq=False, repr=False)
class Live:
    """A call that has started and is not settled."""

    row: Row
    owner: str
    request: str


@dataclass(slots=True)  # not frozen: thousands may be made when a ledger is opened
class Open:
    """A question that is open, or approved and not used yet. Its own rows are read when somebody needs them."""

    id: str
    seq: int
    state: str
    expires: int
    asked: Row | None = None
    known: Mapping[str, Any] | None = None
    channel: str = ""
    """Where it was approved."""

    @property
    def row(self) -> Row:
        assert self.asked is not None, "a Work names the questions it needs in `refs`"
        return self.asked

    @property
    def body(self) -> Mapping[str, Any]:
        assert self.known is not None, "a Work names the questions it needs in `refs`"
        return self.known

    @property
    def digest(self) -> str:
        return str(self.body["digest"])

    @property
    def stored(self) -> tuple[Any, ...]:
        return (self.id, self.seq, self.state, self.expires)


@dataclass(frozen=True, slots=True)
class Grant:
    id: str
    row: Row
    body: Mapping[str, Any]
    uses: int
    expires: int

    @property
    def stored(self) -> tuple[Any, ...]:
        return (self.id, self.row.seq, self.uses, self.expires)


def parsed(row: Row, event: Event | None = None) -> Mapping[str, Any]:
    if event is not None:
        return event.body()
    known: Mapping[str, Any] = json.loads(row.body)
    return known


def request_of(body: Mapping[str, Any]) -> str:
    """What a repeated key is compared with: the call's digest without its Change."""
    return str(body.get("request") or body["digest"])


def writes_of(body: str) -> tuple[str, ...]:
    """What a started call writes. The rows that limits count are not checked one by one: of one that is damaged, which
    `verify` finds, nothing is known."""
    try:
        return tuple(json.loads(body).get("writes", ()))
    except ValueError:
        return ()
