"""The transitions of questions and grants, each decided and recorded in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgate.core.apart import apart, large
from toolgate.core.call import Call, new_id
from toolgate.core.canonical import canonical
from toolgate.core.clock import SECOND
from toolgate.core.effects import Effects
from toolgate.core.errors import Conflict, InvalidArgs, NotAllowed, NotFound, RateLimited, TooLarge
from toolgate.core.event import Approved, Asked, Expired, Granted, Refused, Revoked
from toolgate.core.finding import recorded
from toolgate.core.records import dataclass, field
from toolgate.ledger.attachments import ROW_BYTES, Shortened, shortened
from toolgate.ledger.ledger import DUE, Ledger, View, Work, all_questions
from toolgate.ledger.limits import USUAL, Allowance
from toolgate.ledger.state import Grant, Open, State

if TYPE_CHECKING:
    from toolgate.core.decision import Decision

MAX_GRANT_SECONDS = 366 * 24 * 3600
MASK = "[masked]"
LOOK_BACK = 50
"""Questions of a persona that a new one is compared with, to say why it is asked again."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a grant covers: calls of the question's persona and tool, narrowed by these."""

    args: Mapping[str, Any] = field(default_factory=dict)
    """Conditions on arguments, as in policy rules; empty means any arguments."""
    paths: tuple[str, ...] = ()
    """Path globs; every path of the call must match one."""
    conversation: str = ""
    seconds: float = 3600
    uses: int = 0
    """0 means as often as wanted until it expires."""


def covered(scope: Scope, args: Mapping[str, Any], effects: Effects) -> dict[str, Any]:
    """What a grant of this scope, given for a call with these arguments and effects, records and is told to cover."""
    return {
        "args": dict(scope.args), "paths": list(scope.paths), "only_conversation": scope.conversation,
        "max_uses": scope.uses, "takes": sorted(args), "effects": effects.described(),
    }  # fmt: skip


class AskWork(Work[str]):
    """Open a question, or join the one that is open for the same digest."""

    def __init__(
        self, call: Call, args: Mapping[str, Any], effects: Effects, decision: Decision, rights: str,
        preview: str, undoable: bool, expires_s: float, max_open: int, again: str = "",
        repeats: Sequence[str] = (), allowance: Allowance = USUAL, secrets: Mapping[str, str] | None = None,
        shown: Mapping[str, Any] | None = None, unkept: str = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.unkept = unkept
        """Why it could not be undone, where its tool's calls can be."""
        self.call, self.args, self.effects, self.decision = call, args, effects, decision
        self.rights, self.preview, self.undoable = rights, preview, undoable
        self.expires_s, self.max_open, self.again = expires_s, max_open, again
        self.repeats, self.allowance, self.secrets = list(repeats), allowance, dict(secrets or {})
        self.whole = True
        self.shown = dict(shown or {})
        """Arguments and preview as a human sees them, where the journal keeps less of them."""
        self.ready: tuple[Asked, Shortened] | None = None
        """What is recorded, where that is made beforehand."""

    looks_at_questions = True

    def refs(self, state: State, now: int) -> Iterable[str]:
        return all_questions(state, now)

    def decide(self, view: View) -> str:
        close_due(view)
        call = self.call
        for question in view.state.questions_for(call.persona, call.digests):
            if question.expires > view.now and self._same(question):
                return question.id
        mine = view.state.questions_of(call.persona)
        waiting = len(mine)
        if waiting >= self.max_open:  # only then is it counted which of them are open
            waiting = sum(1 for question in mine if question.state == "open" and question.expires > view.now)
        if waiting >= self.max_open:
            raise RateLimited(
                f"{call.persona} has {waiting} open questions, the most it may have (consent.max_open is {self.max_open})",
                "wait until a human has answered some: `toolgate approvals`, or `toolgate approvals refuse --all`; "
                "the owner can raise consent.max_open in toolgate.yaml",
                data={"limit": "consent.max_open", "open": waiting},
            )
        full = self.allowance.refusal(view.state, call.persona, view.now) or self._no_room(mine)
        if full is not None:
            raise full
        if self.ready is not None:
            view.emit(*self.ready)
            return self.ready[0].ref
        asked = self._question(view.state, view.now)
        view.emit(asked)
        return asked.ref

    def is_large(self) -> bool:
        return large((self.call.args_json, self.preview, self.shown.get("preview", "")))

    async def prepare(self, ledger: Ledger) -> None:
        """Spell a large question where nobody waits for it, as of a moment before it is asked."""
        asked = await ledger.look(self._question, all_questions)
        self.ready = asked, await apart(_spelled, asked)
        self.heavy = True

    def _question(self, state: State, now: int) -> Asked:
        call, mine = self.call, state.questions_of(self.call.persona)
        return Asked(
            call=call.id, persona=call.persona, tool=call.tool, conversation=call.trail.conversation,
            ref=new_id("q"), digest=call.digest, definition=call.definition, args=self.args,
            effects=self.effects.described(),
            rule=self.decision.rule, rights=self.rights, reason=self.decision.reason,
            expires=now + round(self.expires_s * SECOND), preview=self.preview,
            undoable=self.undoable, channels=list(self.decision.channels), again=self.again or self._moved(mine),
            trail=call.trail.words(), repeats=self.repeats, secrets=self.secrets, whole=self.whole, shown=self.shown,
            request=call.request if self._long() else "",
            findings=recorded(call.change.findings) if call.change else [],
            unkept=self.unkept,
        )  # fmt: skip

    def _long(self) -> bool:
        return len(self.call.args_json) > ROW_BYTES // 8

    def _no_room(self, mine: Sequence[Open]) -> RateLimited | None:
        """All of an open question is kept until it is answered, so one persona may not have too much of it."""
        kept = sum(question.body["cut"]["bytes"] for question in mine if "cut" in question.body)
        size = len(self.call.args_json) + len(self.preview)
        if kept + size <= self.allowance.kept or (not kept and size <= ROW_BYTES):
            return None
        return RateLimited(
            f"the open questions of {self.call.persona} hold {kept:,} bytes, and this one has {size:,} more; "
            f"limits.journal_bytes.kept allows {self.allowance.kept:,}",
            "wait until a human has answered some (`toolgate approvals`), or send less",
            data={"limit": "limits.journal_bytes.kept"},
        )

    def _same(self, question: Open) -> bool:
        return bool(question.body["rule"] == self.decision.rule and question.body["rights"] == self.rights)

    def _moved(self, mine: Sequence[Open]) -> str:
        """Why a call that is made again is asked about again, though its words are the same: for a human who has
        answered, or has the older question before them."""
        call, args = self.call, dict(self.args)
        for question in reversed(mine[-LOOK_BACK:]):
            body = question.body
            alike = body["request"] == call.request if "request" in body else body.get("args") == args
            if question.row.tool != call.tool or not alike:
                continue
            since = "approved" if question.state == "approved" else "asked about"
            if question.body["definition"] != call.definition:
                return f"the tool has changed since it was {since}"
            if question.digest not in call.digests:
                return f"what it would do has changed since it was {since}"
        return ""


def _spelled(asked: Asked) -> Shortened:
    return shortened(asked, asked.text(), 0)


class AnswerWork(Work[str]):
    """The first answer wins; a late, foreign or misplaced one changes nothing."""

    def __init__(
        self, ident: str, approve: bool, by: str, channel: str, reason: str = "",
        scope: Scope | None = None, expires_s: float = 900,
    ) -> None:  # fmt: skip
        super().__init__()
        self.ident, self.approve, self.by, self.channel = ident, approve, by, channel
        self.reason, self.scope, self.expires_s = reason, scope, expires_s

    looks_at_questions = True

    def refs(self, state: State, now: int) -> Iterable[str]:
        return (self.ident,)

    def decide(self, view: View) -> str:
        close_due(view)
        question = view.state.questions.get(self.ident)
        if question is None or question.expires <= view.now:
            raise NotFound(
                f"there is no open question {self.ident}",
                "it was answered, used or expired: `toolgate approvals` lists the open ones",
            )
        if question.state != "open":
            raise Conflict(f"question {self.ident} is already {question.state}", "the first answer counts")
        allowed = question.body.get("channels") or ()
        if self.approve and allowed and self.channel not in allowed:
            raise NotAllowed(
                f"the rule {question.body['rule']} wants this approved by {' or '.join(allowed)}, not by {self.channel}",
                "answer it there",
            )
        if self.approve:
            _check_whole(question)
        row = question.row
        common = {
            "call": row.call, "persona": row.persona, "tool": row.tool, "conversation": row.conversation,
        }  # fmt: skip
        if not self.approve:
            view.emit(
                Refused(
                    **common,
                    ref=self.ident,
                    digest=question.digest,
                    by=self.by,
                    channel=self.channel,
                    reason=self.reason,
                )
            )
            return "refused"
        if self.scope is not None:
            view.emit(self._grant(question, view.now))
        view.emit(
            Approved(
                **common, ref=self.ident, digest=question.digest, by=self.by, channel=self.channel,
                reason=self.reason, expires=view.now + round(self.expires_s * SECOND),
            )
        )  # fmt: skip
        return "approved"

    def _grant(self, question: Open, now: int) -> Granted:
        scope = self.scope
        assert scope is not None
        from toolgate.consent.grants import check_scope  # the policy's models: few answers give a grant

        _check(scope)
        check_scope(scope.args, scope.paths)
        size = len(canonical([dict(scope.args), list(scope.paths)]).encode())
        if size > ROW_BYTES // 2:
            raise TooLarge(
                f"the grant's conditions have {size:,} bytes, {ROW_BYTES // 2:,} are allowed",
                "name fewer values, or use a glob",
            )
        return Granted(
            persona=question.row.persona, tool=question.row.tool, ref=new_id("g"), by=self.by,
            channel=self.channel, expires=now + round(scope.seconds * SECOND),
            definition=question.body["definition"], rights=question.body["rights"],
            question=self.ident, reason=self.reason,
            **covered(scope, question.body.get("args", {}), Effects.recorded(question.body["effects"])),
        )  # fmt: skip


def _check_whole(question: Open) -> None:
    """What cannot be shown cannot be approved, in no channel."""
    body = question.body
    if not body.get("whole") and MASK in canonical(
        {"args": body.get("args", {}), "preview": body.get("preview", "")}
    ):
        raise NotAllowed(
            f"question {question.id} was opened by an older version, which masked a part of it, so it cannot be approved",
            "refuse it, and make the call again: then all of it is shown",
        )


def _check(scope: Scope) -> None:
    """A grant is stored for long and obeyed to the letter: nothing in it may be of the wrong kind."""
    seconds, uses = scope.seconds, scope.uses
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= MAX_GRANT_SECONDS
    ):
        raise InvalidArgs(
            f"a grant of {seconds!r} s is not possible", f"give between 1 and {MAX_GRANT_SECONDS:,} seconds"
        )
    if isinstance(uses, bool) or not isinstance(uses, int) or uses < 0:
        raise InvalidArgs(
            f"a grant cannot have {uses!r} uses", "give a whole number; 0 means until it expires"
        )
    if not isinstance(scope.conversation, str) or not isinstance(scope.args, Mapping):
        raise InvalidArgs("a grant's conversation is a text and its args are a mapping", "see docs/policy.md")
    if isinstance(scope.paths, str) or not all(isinstance(path, str) for path in scope.paths):
        raise InvalidArgs("a grant's paths are a list of globs", 'write paths=["src/**"]')


class RevokeWork(Work[None]):
    def __init__(self, ident: str, by: str, channel: str, reason: str = "") -> None:
        super().__init__()
        self.ident, self.by, self.channel, self.reason = ident, by, channel, reason

    def decide(self, view: View) -> None:
        grant = view.state.grants.get(self.ident)
        if grant is None:
            raise NotFound(f"there is no live grant {self.ident}", "`toolgate grants` lists them")
        view.emit(
            Revoked(
                persona=grant.row.persona, tool=grant.row.tool, ref=self.ident, by=self.by,
                channel=self.channel, reason=self.reason,
            )
        )  # fmt: skip


def close_due(view: View) -> None:
    """Record what has run out of time, so that it is gone for everybody; some at a time, what is left counts no more."""
    for item in view.state.due(view.now, DUE):
        what = "grant" if isinstance(item, Grant) else ("question" if item.state == "open" else "approval")
        view.emit(
            Expired(call=item.row.call, persona=item.row.persona, tool=item.row.tool, ref=item.id, what=what)
        )


def approval_for(
    state: State, digests: Sequence[str], persona: str, now: int, rule: str | None = None, rights: str | None = None,
    channels: tuple[str, ...] = (),
) -> Open | None:  # fmt: skip
    """A live approval of exactly this call, by its digest; with `rule`, `rights` and `channels`, one that was given under these."""
    for question in state.questions_for(persona, digests):
        if (
            question.state == "approved"
            and question.expires > now
            and (rule is None or question.body["rule"] == rule)
            and (rights is None or question.body["rights"] == rights)
            and (not channels or question.channel in channels)
        ):
            return question
    return None
