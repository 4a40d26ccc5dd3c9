"""A question as plain text, for a form in somebody's client: nothing hidden, nothing that could pose as more."""

from __future__ import annotations

import json
from typing import Any

from toolgate.core.clock import iso
from toolgate.core.display import visible
from toolgate.core.lookalikes import decidable
from toolgate.core.ports import Question
from toolgate.faces.mcp.jsonrpc import Message
from toolgate.kits import pieces
from toolgate.kits.words import finding_in_words, lookalikes, secrets_in_words

LONGEST_TEXT = 20_000
"""Characters. What cannot be shown whole is not asked here: nobody approves what they have not seen."""
ANSWER = "approval"
SCHEMA: Message = {
    "type": "object",
    "properties": {
        "answer": {
            "type": "string",
            "title": "Answer",
            "description": "`approve` runs exactly the call above, once.",
            "enum": ["approve", "refuse"],
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


def text(question: Question) -> str:
    parts = [f"toolgate asks: {question.persona} wants to call {question.tool}"]
    if question.args:
        shown = json.dumps(dict(question.args), indent=2, ensure_ascii=False, default=str)
        parts.append(f"with\n{_quoted(shown)}")
    if question.preview:
        parts.append(f"which would do\n{_quoted(question.preview)}")
    if question.findings:
        parts.append("in which was found\n" + _quoted("\n".join(map(finding_in_words, question.findings))))
    if alike := lookalikes(question):
        parts.append("in which characters may be taken for others\n" + _quoted("\n".join(alike)))
    parts.append("\n".join(f"{name}: {visible(value)}" for name, value in _facts(question)))
    parts.append("Approving runs exactly this call, once. It is recorded either way.")
    return "\n\n".join(parts)


def fits(question: Question) -> bool:
    """Whether a form can show all of it; measured before it is made."""
    lines, chars = pieces.extent_of(question)
    return lines + chars <= LONGEST_TEXT and len(text(question)) <= LONGEST_TEXT


def _quoted(value: str) -> str:
    """Every line marked, so that a text cannot pose as the words around it."""
    return "\n".join(f"  │ {line}" for line in decidable(value, keep_lines=True).split("\n"))


def _facts(question: Question) -> list[tuple[str, str]]:
    facts = [
        ("effects", question.effects.sentence()),
        ("asked because", f"{question.reason} ({question.rule})"),
        (
            "can be undone",
            "yes" if question.undoable else f"NO: {question.unkept}" if question.unkept else "NO",
        ),
    ]
    if question.secrets:
        facts.append(("secrets shown by name", secrets_in_words(question)))
    if question.rationale:
        facts.append((f"{question.persona} says", f"“{question.rationale}”"))
    if question.again:
        facts.append(("asked again", question.again))
    return [*facts, ("expires", iso(question.expires_at)), ("question", question.id)]


def form(question: Question) -> Message:
    return {"message": text(question), "requestedSchema": SCHEMA}


def answer(given: Any) -> tuple[bool, str] | None:
    """What the user said: approve or not, and why. None where there is no clear answer; that approves nothing."""
    if not isinstance(given, dict):
        return None
    if given.get("action") == "decline":
        return False, "declined in the client"
    content = given.get("content")
    if given.get("action") != "accept" or not isinstance(content, dict):
        return None
    reason = content.get("reason")
    reason = reason[:500] if isinstance(reason, str) else ""
    said = content.get("answer")
    return (said == "approve", reason) if said in ("approve", "refuse") else None
