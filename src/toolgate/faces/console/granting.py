"""What a grant would cover, in words, before it is given; and how many past calls it would have covered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolgate.consent.cover import check_scope
from toolgate.consent.works import Scope
from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.core.ports import Question
from toolgate.facade import Gate
from toolgate.faces import diffs
from toolgate.faces.console.calls import body_of
from toolgate.faces.words import grant_in_words
from toolgate.policy.globs import path_glob
from toolgate.storage.port import Filter

SPANS = {"15 minutes": 900, "1 hour": 3600, "8 hours": 28_800, "1 day": 86_400, "7 days": 604_800}
LOOKED_AT = 500


@dataclass(frozen=True)
class Offer:
    """What the form proposes."""

    paths: str
    conversation: str


@dataclass(frozen=True)
class Told:
    words: str
    past: int
    looked_at: int


def offer(question: Question) -> Offer:
    """The narrowest pattern that is more than this one call: its file, or the directory its files share."""
    paths = (
        [file.path for file in diffs.parse(question.preview) if file.kind == "file"]
        if question.preview
        else []
    )
    if not paths and isinstance(question.args.get("path"), str):
        paths = [str(question.args["path"]).removeprefix("project:")]
    if len(set(paths)) == 1:
        return Offer(paths[0], question.conversation)
    parents = {path.rpartition("/")[0] for path in paths}
    shared = parents.pop() if len(parents) == 1 else ""
    return Offer(f"{shared}/**" if shared else "", question.conversation)


def scope_of(form: Mapping[str, str], question: Question) -> Scope:
    """What was chosen. Only what the form offers can be chosen."""
    try:
        seconds = int(form.get("seconds", "3600"))
        uses = int(form.get("uses") or "0")
    except ValueError:
        raise InvalidArgs("a grant's time and uses are whole numbers", "choose from the list") from None
    paths = tuple(part.strip() for part in form.get("paths", "").split(",") if part.strip())
    conversation = question.conversation if form.get("conversation") else ""
    return Scope(paths=paths, conversation=conversation, seconds=seconds, uses=uses)


async def told(gate: Gate, question: Question, scope: Scope, now: int) -> Told:
    check_scope(scope.args, scope.paths)
    body = {"paths": list(scope.paths), "only_conversation": scope.conversation, "max_uses": scope.uses}
    words = grant_in_words(question.persona, question.tool, body, now + round(scope.seconds * SECOND))
    rows = await gate.events(
        Filter(
            persona=question.persona,
            tool=question.tool,
            kinds=("started",),
            newest_first=True,
            limit=LOOKED_AT,
        )
    )
    globs = [path_glob(text) for text in scope.paths]
    past = 0
    for row in rows:
        paths = [MountPath(entry["path"]) for entry in body_of(row).get("change", ())]
        fits = all(any(glob.matches(path) for glob in globs) for path in paths) if globs else True
        past += fits and (bool(paths) or not globs) and scope.conversation in ("", row.conversation)
    return Told(words, past, len(rows))
