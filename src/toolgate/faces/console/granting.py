"""What a grant would cover, in words, before it is given; and how many past calls it would have covered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolgate.consent import grants
from toolgate.consent.grants import check_scope, fits
from toolgate.consent.works import Scope, covered
from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs
from toolgate.core.paths import MountPath
from toolgate.core.ports import Question
from toolgate.core.tool import Tool
from toolgate.facade import Gate
from toolgate.faces.console.calls import body_of
from toolgate.kits import words
from toolgate.storage.port import Filter

SPANS = {"15 minutes": 900, "1 hour": 3600, "8 hours": 28_800, "1 day": 86_400, "7 days": 604_800}
LOOKED_AT = 500
PROGRAM = "program"
SAME = "same."
"""Before the names of arguments in the form, so that none of them can pose as another field."""


@dataclass(frozen=True)
class Offer:
    """What the form proposes: its paths, one to a line, and arguments that may be kept as they are."""

    paths: str
    rows: int
    same: list[tuple[str, str, bool]]
    """Names, in words what keeping them means, and whether that is proposed: of a move its direction, and where no path
    narrows the grant, all of them."""
    program: str
    """In words, what keeping the program alone means; empty where there is none."""
    on_paths: bool
    """Whether such calls have paths at all: a pattern would fit no call without one."""


@dataclass(frozen=True)
class Told:
    words: str
    past: int
    looked_at: int


def offer(question: Question, tool: Tool | None) -> Offer:
    """The narrowest grant that is more than this one call: its files, or else its arguments."""
    paths = grants.paths_of(question, tool)
    globs = grants.globs(paths)
    sides = grants.sides(question, paths) if globs else {}
    same = [(name, words.condition_in_words(condition), True) for name, condition in sides.items()]
    same += [
        (limit.name, words.condition_in_words(limit.condition), not globs)
        for limit in grants.limits(question, paths if globs else ())
        if limit.name not in sides
    ]
    program = grants.program_of(question)
    told = words.condition_in_words(program) if program is not None else ""
    return Offer("\n".join(globs), max(1, len(globs)), same, told, bool(paths) or tool is None)


def scope_of(form: Mapping[str, str], question: Question) -> Scope:
    """What was chosen. Only what the form offers can be chosen."""
    try:
        seconds = int(form.get("seconds", "3600"))
        uses = int(form.get("uses") or "0")
    except ValueError:
        raise InvalidArgs("a grant's time and uses are whole numbers", "choose from the list") from None
    # one to a line: a comma is a letter like any other in a name
    lines = (line.strip(" \t\r") for line in form.get("paths", "").split("\n"))
    kept = grants.same(question, [name.removeprefix(SAME) for name in form if name.startswith(SAME)])
    program = grants.program_of(question) if form.get(PROGRAM) else None
    if program is not None:
        kept[grants.ARGV] = program
    conversation = question.conversation if form.get("conversation") else ""
    return Scope(kept, tuple(line for line in lines if line), conversation, seconds, uses)


async def told(gate: Gate, question: Question, scope: Scope, now: int) -> Told:
    check_scope(scope.args, scope.paths)
    body = covered(scope, question.args, question.effects)
    said = words.grant_in_words(question.persona, question.tool, body, now + round(scope.seconds * SECOND))
    rows = await gate.events(
        Filter(
            persona=question.persona,
            tool=question.tool,
            kinds=("started",),
            newest_first=True,
            limit=LOOKED_AT,
        )
    )
    past = 0
    for row in rows:
        recorded = body_of(row)
        paths = tuple(MountPath(entry["path"]) for entry in recorded.get("change", ()))
        past += fits(body, row.conversation, paths, recorded.get("args", {}))
    return Told(said, past, len(rows))
