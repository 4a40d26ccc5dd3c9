"""GateReads: what faces read of a gate besides calling it: questions, pauses, the record and its proof.

It decides nothing and writes nothing. `Gate` inherits it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from toolgate.consent.desk import QuestionPage
from toolgate.core.errors import ToolgateError
from toolgate.core.ports import Question
from toolgate.gate.flow import Services
from toolgate.gate.redact import shown_diff
from toolgate.ledger.chain import fault_of
from toolgate.ledger.ledger import no_question
from toolgate.ledger.state import State
from toolgate.project.record import Record
from toolgate.storage.port import Row


class GateReads:
    services: Services

    # --- consent ------------------------------------------------------------------------------------------

    async def questions(
        self, limit: int, after: int = 0, *, persona: str = "", whole: bool = False
    ) -> QuestionPage:
        """A page of open questions that were asked after the event `after`; of long ones the beginning, unless `whole`."""
        return await self.services.desk.page(limit, after, persona=persona, whole=whole)

    async def question(self, ident: str) -> Question | None:
        """All of one question, until it is answered with no, used or expired."""
        return await self.services.desk.question(ident)

    async def answered(self, ident: str) -> None:
        """Until the question is approved; a refusal and an expiry raise."""
        await self.services.desk.wait(ident)

    async def paused(self) -> dict[str, str]:
        """Who is paused, and why; everybody is the empty name."""
        return await self.services.ledger.look(lambda state, now: dict(state.paused), no_question)

    # --- the record ---------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """By the ledger's clock, in microseconds."""
        return self.services.ledger.clock.now()

    async def head(self) -> int:
        """The number of the newest event."""
        return (await self.services.ledger.backend.head()).seq

    async def life(self, ident: str) -> list[Row]:
        """Every event about a call, a question or a grant, or about that of an event given by its number."""
        return await Record(self.services.ledger.backend, None, None, "").life(ident)

    async def standing(self) -> set[int]:
        """The events of questions that are open, of calls that run, and of outcomes in doubt."""
        return await self.services.ledger.look(_standing, no_question)

    def fault(self, row: Row, *, sealed: bool = True) -> str:
        """What is wrong with a row by itself, with `sealed` its seal too; empty if nothing is."""
        return fault_of(row, row.seq, row.prev, self.services.ledger.keys if sealed else None)

    async def change_diff(self, manifest: Sequence[Mapping[str, Any]]) -> str:
        """What a recorded Change did, from the kept images, redacted; empty where they are gone."""
        files, redactor = self.services.files, self.services.redactor
        if files is None:
            return ""
        try:
            return str(redactor.redact(shown_diff(redactor, await files.load(manifest))))
        except (ToolgateError, OSError):
            return ""

    def on_commit(self, hear: Callable[[Sequence[Row]], None]) -> Callable[[], None]:
        """Hear of rows once they are on disk, in the thread that committed them; what comes back ends it."""
        listeners = self.services.ledger.committed
        listeners.append(hear)

        def end() -> None:
            with suppress(ValueError):
                listeners.remove(hear)

        return end

    async def changed(self, seconds: float) -> None:
        """Until another process may have written, or so many seconds have passed."""
        await self.services.ledger.backend.changed(seconds)


def _standing(state: State, now: int) -> set[int]:
    asked = (one.seq for one in state.questions.values() if one.state == "open" and one.expires > now)
    return {*asked, *(one.row.seq for one in state.live.values()), *state.doubts.values()}
