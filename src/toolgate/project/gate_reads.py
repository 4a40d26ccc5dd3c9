"""GateReads: what is read of a gate besides calling it: questions, pauses, the record and its proof.

It decides nothing and writes nothing. `Gate` inherits it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolgate.consent.desk import QuestionPage
from toolgate.core.errors import CallError, ToolgateError
from toolgate.core.ports import Question
from toolgate.core.result import Result, of_data, of_error
from toolgate.core.tool import Tool
from toolgate.feature import load
from toolgate.gate.earned import STEPS, earned, raised
from toolgate.gate.flow import Services
from toolgate.gate.reconcile import still_runs
from toolgate.gate.redact import shown_diff
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.chain import fault_of
from toolgate.ledger.ledger import no_question
from toolgate.ledger.state import State
from toolgate.storage.port import Filter, Row
from toolgate.workspace.files import WorkspaceFiles

if TYPE_CHECKING:
    from toolgate.core.rendering import Rendering
    from toolgate.feature import FeatureContext
    from toolgate.ledger.checkpoint import Checkpoint


class GateReads:
    services: Services
    features: dict[str, FeatureContext]

    # --- tools --------------------------------------------------------------------------------------------

    def tool(self, name: str) -> Tool | None:
        """The tool of this name or alias, whoever may call it; None where there is none."""
        with suppress(CallError):
            return self.services.registry.resolve(name)
        return None

    def tool_names(self) -> list[str]:
        """What there is at this moment, whoever may call it. Loads no tool."""
        return self.services.registry.names()

    # --- as models read it --------------------------------------------------------------------------------

    def rendered(self, result: Result, args: Mapping[str, Any]) -> str:
        """A result as models read it, where its tool's feature says how; else as plain lines."""
        args = self._named(result.tool, args) if result.text is None else args
        if result.text is not None:
            said = result.text
        elif result.error is None:
            said = self.render(result.tool, result.data, args)
        else:
            told = self._rendered(result.tool, result.data, args) if result.data else None
            said = of_error(result.error, result.data, told)
        return f"{said}\n(The gate: {result.note})" if result.note else said

    def render(self, tool: str, data: Any, args: Mapping[str, Any]) -> str:
        told = self._rendered(tool, data, args)
        return of_data(data) if told is None else told

    def own_rendering(self, result: Result, args: Mapping[str, Any]) -> str | None:
        """As `rendered`, where its tool says how."""
        return self._rendered(result.tool, result.data, self._named(result.tool, args))

    def _named(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Arguments as a caller spelled them, under their own names."""
        found = self.tool(tool)
        return (
            args
            if found is None
            else {found.spellings.get(name, name): value for name, value in args.items()}
        )

    def _rendered(self, tool: str, data: Any, args: Mapping[str, Any]) -> str | None:
        """None where nobody says how, or where the result was cut until it lost its shape."""
        for context in self.features.values():
            named = context.feature.renderings
            if named and any(tool in family.names for family in context.feature.families):
                rendering: Rendering | None = load(named).get(tool)
                with suppress(LookupError, TypeError, ValueError, AttributeError):
                    return str(rendering(data, args)) if rendering is not None else None
        return None

    # --- consent ------------------------------------------------------------------------------------------

    async def open_questions(self) -> list[str]:
        """The ids of the open questions, oldest first."""
        return await self.services.desk.open_ids()

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

    def mac(self, purpose: str, body: bytes, version: int | None = None) -> tuple[int, str]:
        """See `Keys.mac_for`."""
        return self.services.ledger.keys.mac_for(purpose, body, version)

    async def head(self) -> int:
        """The number of the newest event."""
        return (await self.services.ledger.backend.head()).seq

    async def life(self, ident: str) -> list[Row]:
        """Every event about a call, a question or a grant, or about that of an event given by its number."""
        from toolgate.project.record import Record

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

    async def events(self, wanted: Filter | None = None) -> list[Row]:
        return await self.services.ledger.backend.rows(wanted or Filter(newest_first=True, limit=50))

    async def whole(self, row: Row) -> Mapping[str, Any]:
        """All of what an event recorded; NotFound where it was long and only its beginning is still kept."""
        return await whole_body(self.services.ledger.backend, row)

    async def stats(self, period: str = "1day", persona: str = "") -> dict[str, Any]:
        ledger = self.services.ledger
        from toolgate.ledger import stats

        return await stats.usage(ledger.backend, period, persona, ledger.clock.now())

    async def earned(self, persona: str) -> dict[str, Any] | None:
        """What its record of the last day raises a persona's own limits by; None where they do not adapt."""
        rules = self.services.rules()
        every = rules.earns.get(persona)
        if every is None:
            return None
        found = await earned(self.services.ledger, persona, every)
        windows = [
            one
            for one in rules.windows(persona, "")
            if one.most > one.limit and one.scope == f"persona/{persona}"
        ]
        now = raised(windows, {f"persona/{persona}": found.step})
        limits = [
            {"limit": one.name, "says": one.limit, "now": high.limit, "most": one.most}
            for one, high in zip(windows, now, strict=True)
        ]
        return {**found._asdict(), "of": STEPS, "limits": limits}

    async def checkpoint(self, project: str = "") -> Checkpoint:
        from toolgate.ledger import checkpoint as checkpoints

        ledger = self.services.ledger
        return checkpoints.sign(await ledger.backend.head(), project, ledger.keys)

    def export(self) -> AsyncIterator[str]:
        from toolgate.ledger.verify import export

        return export(self.services.ledger.backend)

    async def running(self) -> tuple[set[str], list[Row]]:
        """The calls that run, and the starts of those that have run for longer than they may."""
        return await self.services.ledger.look(
            lambda state, now: (
                set(state.live),
                [item.row for item in state.live.values() if not still_runs(self.services, item, now)],
            )
        )

    async def unknown_calls(self) -> list[str]:
        """The calls whose outcome nobody knows, oldest first."""
        return await self.services.ledger.look(lambda state, now: list(state.doubts))

    async def ledger_state(self) -> dict[str, Any]:
        ledger = self.services.ledger
        head = await ledger.backend.head()
        live, open_questions = await ledger.look(
            lambda state, now: (len(state.live), sum(q.state == "open" for q in state.questions.values())),
            no_question,
        )
        return {
            "backend": ledger.backend.name,
            "events": head.seq,
            "bytes": await ledger.backend.size(),
            "running": live,
            "open_questions": open_questions,
        }

    async def stores(self) -> dict[str, Any]:
        """How large the ledger and the images are."""
        files = self.services.files
        found: dict[str, Any] = {"ledger": await self.ledger_state()}
        if isinstance(files, WorkspaceFiles):
            from dataclasses import asdict

            found["images"] = asdict(await files.run(files.images.usage))
        return found


def _standing(state: State, now: int) -> set[int]:
    asked = (one.seq for one in state.questions.values() if one.state == "open" and one.expires > now)
    return {*asked, *(one.row.seq for one in state.live.values()), *state.doubts.values()}
