"""A question as plain text, for a form in somebody's client: nothing hidden, nothing that could pose as more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from toolgate.consent.grants import GrantChoice
from toolgate.consent.works import Scope, covered
from toolgate.core.clock import SECOND, iso
from toolgate.core.display import visible
from toolgate.core.lookalikes import decidable
from toolgate.core.ports import Question
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.kits import pieces
from toolgate.kits.words import finding_in_words, grant_in_words, lookalikes, secrets_in_words, undo_in_words

LONGEST_TEXT = 20_000
"""Characters. What cannot be shown whole is not asked here: nobody approves what they have not seen."""
ANSWER = "approval"
SESSION_SECONDS, ALONE_SECONDS = 8 * 3600, 3600
"""How long a grant for a session lasts at most, and one of a client that has no sessions."""


@dataclass(frozen=True, slots=True)
class SessionGrant:
    """A grant that the form offers: the word that chooses it, and all that it covers, in words."""

    word: str
    told: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    approve: bool
    reason: str = ""
    scope: Scope | None = None


def session_grants(
    question: Question, choices: Iterable[GrantChoice], conversation: str
) -> list[SessionGrant]:
    span, seconds = ("this session", SESSION_SECONDS) if conversation else ("an hour", ALONE_SECONDS)
    found = []
    for choice in choices:
        scope = Scope(choice.args, choice.paths, conversation, seconds)
        body = covered(scope, question.args, question.effects)
        told = grant_in_words(question.persona, question.tool, body, question.asked_at + seconds * SECOND)
        found.append(SessionGrant(f"approve for {span}: {choice.label}", told, scope))
    return found


def schema(offered: Iterable[SessionGrant] = ()) -> Message:
    words = ["approve", *(each.word for each in offered), "refuse"]
    more = " `approve for …` also allows such calls, as told above." if len(words) > 2 else ""
    return {
        "type": "object",
        "properties": {
            "answer": {
                "type": "string",
                "title": "Answer",
                "description": f"`approve` runs exactly the call above, once.{more}",
                "enum": words,
            },
            "reason": {
                "type": "string",
                "title": "Reason",
                "description": "Optional. If you refuse, the agent is told.",
                "maxLength": 500,
            },
        },
        "required": ["answer"],
    }


def text(question: Question, offered: Iterable[SessionGrant] = ()) -> str:
    parts = [f"toolgate asks: {question.persona} wants to call {question.tool}"]
    if question.args:
        parts.append(f"with\n{_quoted(pieces.arguments(question))}")
    if question.preview:
        parts.append(f"which would do\n{_quoted(question.preview)}")
    if question.findings:
        parts.append("in which was found\n" + _quoted("\n".join(map(finding_in_words, question.findings))))
    if alike := lookalikes(question):
        parts.append("in which characters may be taken for others\n" + _lines("\n".join(alike)))
    parts.append("\n".join(f"{name}: {visible(value)}" for name, value in _facts(question)))
    parts.append("Approving runs exactly this call, once. It is recorded either way.")
    told = [f"{each.word}\n{_quoted(each.told)}" for each in offered]
    if told:
        parts.append("Besides, you can\n" + "\n".join(told))
    return "\n\n".join(parts)


def fits(question: Question) -> bool:
    """Whether a form can show all of it; measured before it is made."""
    lines, chars = pieces.extent_of(question)
    return lines + chars <= LONGEST_TEXT and len(text(question)) <= LONGEST_TEXT


def _quoted(value: str) -> str:
    return _lines(decidable(value, keep_lines=True))


def _lines(value: str) -> str:
    """Every line marked, so that a text cannot pose as the words around it."""
    return "\n".join(f"  │ {line}" for line in visible(value, keep_lines=True).split("\n"))


def _facts(question: Question) -> list[tuple[str, str]]:
    facts = [
        ("effects", question.effects.sentence()),
        ("asked because", f"{question.reason} ({question.rule})"),
        ("can be undone", _loud(undo_in_words(question))),
    ]
    if question.secrets:
        facts.append(("secrets shown by name", secrets_in_words(question)))
    if question.rationale:
        facts.append((f"{question.persona} says", f"“{question.rationale}”"))
    if question.again:
        facts.append(("asked again", question.again))
    return [*facts, ("expires", iso(question.expires_at)), ("question", question.id)]


def _loud(undone: str) -> str:
    """A form has no colours."""
    return f"NO{undone[2:]}" if undone == "no" or undone.startswith("no:") else undone


def form(question: Question, offered: Sequence[SessionGrant] = ()) -> Message:
    """Grants are left out where they would not fit any more: the question itself always does."""
    shown = text(question, offered)
    if len(shown) > LONGEST_TEXT:
        return {"message": text(question), "requestedSchema": schema()}
    return {"message": shown, "requestedSchema": schema(offered)}


def answer(given: Any, offered: Iterable[SessionGrant] = ()) -> ClientAnswer | None:
    """What the user said: approve or not, and why. None where there is no clear answer; that approves nothing."""
    if not isinstance(given, dict):
        return None
    if given.get("action") == "decline":
        return ClientAnswer(False, "declined in the client")
    content = given.get("content")
    if given.get("action") != "accept" or not isinstance(content, dict):
        return None
    reason = content.get("reason")
    reason = reason[:500] if isinstance(reason, str) else ""
    said = content.get("answer")
    if said in ("approve", "refuse"):
        return ClientAnswer(said == "approve", reason)
    chosen = next((each for each in offered if each.word == said), None)
    return ClientAnswer(True, reason, chosen.scope) if chosen is not None else None
