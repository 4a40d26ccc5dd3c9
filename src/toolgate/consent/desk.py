"""The desk where questions lie: opened here, answered from any channel or process, waited for here.

asyncio is imported where something waits: whoever lists, answers or pauses on a ledger file needs no event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.consent.works import AnswerWork, AskWork, RevokeWork, Scope, close_due
from toolgate.core.clock import SECOND
from toolgate.core.decision import Question
from toolgate.core.effects import Effects
from toolgate.core.errors import CallError, Denied, Expired, NotFound, Unavailable
from toolgate.core.event import Paused, Resumed
from toolgate.core.records import dataclass, replace
from toolgate.ledger.attachments import whole_body
from toolgate.ledger.ledger import Ledger, View, Work, all_questions, no_question
from toolgate.ledger.state import Grant, Open, State, parsed
from toolgate.storage.port import Filter, Row

if TYPE_CHECKING:
    import asyncio
    import logging

    from toolgate.core.ports import Channel, Notice

DENIED = "Access denied by creator."
CLOSING = 5.0


@dataclass(frozen=True, slots=True)
class Settings:
    expires_s: float = 900
    max_open: int = 25
    unattended: bool = False
    """Nobody is there to answer: a call that would ask is refused at once."""


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """Some of the open questions."""

    questions: list[Question]
    total: int
    next: int | None
    """The event after which the next page begins; None at the end."""


class Desk:
    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        channels: Sequence[Channel] = (),
        notices: Sequence[Notice] = (),
    ) -> None:
        self.ledger = ledger
        self.settings = settings
        self.channels = list(channels)
        self.notices = list(notices)
        self._telling: set[asyncio.Task[None]] = set()
        self._news: asyncio.Event | None = None

    def _listen(self) -> asyncio.Event:
        """Set whenever something has happened to a question or a grant, in any thread of this process."""
        if self._news is None:
            import asyncio

            news = self._news = asyncio.Event()
            loop = asyncio.get_running_loop()
            self.ledger.moved.append(lambda: loop.call_soon_threadsafe(news.set))
        return self._news

    async def ask(self, work: AskWork) -> str:
        if work.is_large():
            await work.prepare(self.ledger)
        ident = await self.ledger.do(work)
        if self.notices and any(row.ref == ident and row.kind == "asked" for row in work.rows):
            self._announce(await self.question(ident))
        return ident

    def _announce(self, question: Question | None) -> None:
        for notice in self.notices if question is not None else ():
            import asyncio

            assert question is not None
            task = asyncio.create_task(self._tell(notice, question))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, notice: Notice, question: Question) -> None:
        try:
            await notice.tell(question)
        except Exception as error:
            _log().warning("%s could not be told of question %s: %s", notice.name, question.id, error)

    async def close(self) -> None:
        """Let notices that are on their way arrive, within reason."""
        if self._telling:
            import asyncio

            _, late = await asyncio.wait(self._telling, timeout=CLOSING)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def wait(self, ident: str, own: Channel | None = None) -> None:
        """Until approved; refusal and expiry raise. Channels, and the caller's own, are asked meanwhile; the first
        answer wins."""
        import asyncio

        news = self._listen()
        question = await self.question(ident)
        channels = self.channels if own is None else [*self.channels, own]
        asking = [asyncio.create_task(self._ask_in(channel, question)) for channel in channels if question]
        try:
            while True:
                news.clear()
                found, now = await self.ledger.look(
                    lambda state, now: (state.questions.get(ident), now), refs=lambda state, now: (ident,)
                )
                if found is None or found.state != "open" or found.expires <= now:
                    return await self._outcome(ident, found, now)
                await self._until(news, (found.expires - now) / SECOND)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def _until(self, event: asyncio.Event, seconds: float) -> None:
        import asyncio

        news = asyncio.create_task(event.wait())
        others = asyncio.create_task(self.ledger.backend.changed(min(seconds, 30.0) + 0.001))
        try:
            await asyncio.wait((news, others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (news, others):
                task.cancel()
            await asyncio.gather(news, others, return_exceptions=True)

    async def _outcome(self, ident: str, found: Open | None, now: int) -> None:
        if found is not None and found.state == "approved" and found.expires > now:
            return
        await self.ledger.do(Work(close_due, refs=no_question))
        rows = await self.ledger.backend.rows(Filter(ref=ident))
        for row in reversed(rows):
            if row.kind == "refused":
                raise refusal(row)
            if row.kind in ("approved", "started"):
                return  # approved and perhaps used by a twin: `begin` decides
        raise Expired(f"nobody answered question {ident} in time", "call again to ask again")

    async def _ask_in(self, channel: Channel, question: Question | None) -> None:
        if question is None:
            return
        import asyncio

        elsewhere = bool(question.channels) and channel.name not in question.channels
        if elsewhere and getattr(channel, "answers", True):
            return  # one that also tells where to answer is told of every question
        try:
            await channel.ask(question)
        except asyncio.CancelledError:
            raise
        except Exception:
            _log().exception("the channel %s could not ask", channel.name)

    # --- for humans ---------------------------------------------------------------------------------------

    async def questions(self, include_approved: bool = False) -> list[Question]:
        """Oldest first. Of long ones only the beginning: `question` has all of one."""
        return (await self.page(0, include_approved=include_approved)).questions

    async def waiting(self) -> list[Question]:
        """Open questions, oldest first, each with every byte of it."""
        return (await self.page(0, whole=True)).questions

    async def page(
        self,
        limit: int,
        after: int = 0,
        include_approved: bool = False,
        persona: str = "",
        whole: bool = False,
    ) -> QuestionPage:
        """So many questions that were asked after the event `after`, oldest first; 0 means all of them. Only those on
        the page are read, unless one persona's are wanted; of long ones only the beginning, unless `whole`."""
        states = ("open", "approved") if include_approved else ("open",)

        def there(state: State, now: int) -> list[Open]:
            found = [one for one in state.questions.values() if one.state in states and one.expires > now]
            return [one for one in found if one.row.persona == persona] if persona else found

        def on_page(state: State, now: int) -> list[Open]:
            found = [one for one in there(state, now) if one.seq > after]
            return found[:limit] if limit else found

        def read(state: State, now: int) -> tuple[list[Open], int, int | None]:
            found, shown = there(state, now), on_page(state, now)
            more = bool(shown) and shown[-1].seq < found[-1].seq
            return shown, len(found), shown[-1].seq if more else None

        def refs(state: State, now: int) -> Iterable[str]:
            return all_questions(state, now) if persona else [one.id for one in on_page(state, now)]

        shown, total, following = await self.ledger.look(read, refs)
        questions = [await self._whole(one) if whole else as_question(one) for one in shown]
        return QuestionPage(questions, total, following)

    async def open_ids(self) -> list[str]:
        """Oldest first."""
        return await self.ledger.look(
            lambda state, now: [
                one.id for one in state.questions.values() if one.state == "open" and one.expires > now
            ],
            no_question,
        )

    async def question(self, ident: str) -> Question | None:
        """One question with every byte of it, or with the `problem` that keeps it from being approved."""
        found = await self.ledger.look(
            lambda state, now: state.questions.get(ident), refs=lambda state, now: (ident,)
        )
        return await self._whole(found) if found else None

    async def _whole(self, found: Open) -> Question:
        if "cut" not in found.body:
            return as_question(found)
        try:
            return as_question(found, await whole_body(self.ledger.backend, found.row))
        except CallError as error:
            return replace(as_question(found), problem=error.message)

    async def answer(
        self, ident: str, approve: bool, *, by: str = "", channel: str = "library", reason: str = "",
        scope: Scope | None = None,
    ) -> str:  # fmt: skip
        asked = await self.question(ident) if approve else None
        if asked is not None and asked.problem:
            raise Unavailable(
                f"question {ident} cannot be approved, because it cannot be shown: {asked.problem}",
                "refuse it, and let the call be made again",
            )
        return await self.ledger.do(
            AnswerWork(ident, approve, by or whoami(), channel, reason, scope, self.settings.expires_s)
        )

    async def grants(self) -> list[Grant]:
        def read(state: State, now: int) -> list[Grant]:
            live = [grant for grant in state.grants.values() if grant.expires > now]
            return [grant for grant in live if not 0 < grant.body.get("max_uses", 0) <= grant.uses]

        return await self.ledger.look(read)

    async def revoke(self, ident: str, *, by: str = "", channel: str = "library", reason: str = "") -> None:
        await self.ledger.do(RevokeWork(ident, by or whoami(), channel, reason))

    async def pause(self, persona: str, *, by: str = "", reason: str = "") -> None:
        event = Paused(persona=persona, by=by or whoami(), reason=reason)
        await self.ledger.do(Work(lambda view: view.emit(event)))

    async def resume(self, persona: str, *, by: str = "") -> None:
        def decide(view: View) -> None:
            if persona not in view.state.paused:
                raise NotFound(f"{persona or 'everything'} is not paused", "there is nothing to resume")
            view.emit(Resumed(persona=persona, by=by or whoami()))

        await self.ledger.do(Work(decide))

    async def sweep(self) -> None:
        await self.ledger.do(Work(close_due, durable=False, refs=no_question))


def _log() -> logging.Logger:
    import logging

    return logging.getLogger("toolgate.consent")


def refusal(row: Row) -> Denied:
    body = parsed(row)
    why = body.get("reason") or "no reason was given"
    return Denied(
        f"{DENIED} {body['by']} refused {row.tool}: {why}", "do not repeat it; go on without it, or ask for something else",
        data={"question": row.ref, "reason": body.get("reason", "")},
    )  # fmt: skip


def as_question(item: Open, whole: Mapping[str, Any] | None = None) -> Question:
    body: Any = item.body if whole is None else whole
    shown = body.get("shown") or body
    return Question(
        id=item.id,
        digest=item.digest,
        tool=item.row.tool,
        args=shown.get("args", {}),
        persona=item.row.persona,
        preview=shown.get("preview", ""),
        effects=Effects.recorded(body["effects"]),
        reason=body["reason"],
        rule=body["rule"],
        asked_at=item.row.at,
        expires_at=item.expires,
        undoable=body.get("undoable", False),
        state=item.state,
        conversation=item.row.conversation,
        rationale=body.get("trail", {}).get("rationale", ""),
        channels=tuple(body.get("channels", ())),
        again=body.get("again", ""),
        repeats=tuple(body.get("repeats", ())),
        findings=tuple(body.get("findings", ())),
        secrets=body.get("secrets", {}),
        unkept=body.get("unkept", ""),
        cut=body["cut"]["bytes"] if "cut" in body else 0,
    )


def whoami() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
