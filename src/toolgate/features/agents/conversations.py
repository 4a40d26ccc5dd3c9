"""Conversations: what was said before, as far as the session goes that memory divides them into.

Memory says where a session begins (daily, weekly or not at all, and by `session.new`). A run of a conversation is handed
what was asked and answered since then by personas of the same user; what is older is no longer told, and stays on record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolgate.features.agents.store import AgentRun, RunStore

if TYPE_CHECKING:
    from toolgate.feature import FeatureContext

MOST = 50
"""Questions of a session that are told again, the newest."""


class DividedSession(Protocol):
    """As memory has it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


class Said(NamedTuple):
    """What a session holds so far."""

    session: str
    name: str
    messages: list[dict[str, Any]]
    asks: int
    """Replies that the persona's own model gave in it, not those of helpers: where a script stands."""


class Conversations:
    def __init__(self, context: FeatureContext, store: RunStore) -> None:
        self._gate, self._store = context.gate, store

    async def said(self, persona: str, conversation: str) -> Said:
        """Of the session that is under way now; one whose time is over ends, and another begins."""
        who = persona or self._gate.config.default_persona or ""
        session: DividedSession = await self._gate.feature("memory").session_of(who, conversation)
        runs = [
            run
            for run in reversed(await self._store.newest(MOST, conversation=conversation))
            if run.settings.get("session") == session.id and self._shared(run, who)
        ]
        told = [
            message
            for run in runs
            if run.answer
            for message in ({"role": "user", "content": run.question}, {"role": "assistant", "content": run.answer})
        ]  # fmt: skip
        asks = await self._store.replies([run.id for run in runs if run.persona == who])
        return Said(session.id, session.name, told, asks)

    def _shared(self, run: AgentRun, who: str) -> bool:
        return not run.parent and not run.room and self._gate.user_of(run.persona) == self._gate.user_of(who)
