"""A question as a human sees it, wherever it is shown: one sentence, what would happen, and why it is asked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolgate.core.clock import iso
from toolgate.core.display import visible
from toolgate.core.late_pattern import late_pattern
from toolgate.core.lookalikes import decidable
from toolgate.core.records import dataclass
from toolgate.kits import diffs, pieces
from toolgate.kits.terminal.speech import ENDLESS, pairs, safe
from toolgate.kits.words import (
    PROGRAMS,
    change_in_words,
    changes_nothing,
    finding_in_words,
    lookalikes,
    moves_in_words,
    program_in_words,
    secrets_in_words,
    span,
    undo_in_words,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult

    from toolgate.core.decision import Question

_DIFF = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
_FOLDED = "   ↪ "
_UNRECORDED = late_pattern(r"hmac:[0-9a-f]{64}")
MOST_LINES = 2000
MOST_CHARS = 200_000
"""What one argument, or the change, may have to be shown whole."""
CUT = 2000
_SCREEN = 40
"""Lines of a preview beyond which its beginning has left the screen when the answer is given."""


def sentence(question: Question) -> str:
    """One line that says who wants what, and to which files, for lists; values are shortened."""
    program = program_in_words(question.args)
    said = PROGRAMS if program else ()
    given = {
        name: value
        for name, value in question.args.items()
        if not pieces.is_empty(value) and name not in said
    }
    shown = ", ".join(f"{name}={_short(value)}" for name, value in given.items())
    files = change_in_words(question.preview)
    asked = (
        _who(question)
        + (f" to {program}" if program else "")
        + (f" with {shown}" if shown else "")
        + (f", to {files}" if files else "")
    )
    if question.cut:
        asked += (
            f"; this is its beginning, `toolgate approvals {question.id}` shows all {question.cut:,} bytes"
        )
    return asked + (f"; asked again: {question.again}" if question.again else "")


def _who(question: Question) -> str:
    return f"{question.persona} wants to call {question.tool}"


def _short(value: Any, limit: int = 40) -> str:
    """Quoted, so that a text with `, name=` in it cannot pose as another argument."""
    if isinstance(value, str) and (lines := value.rstrip("\n").count("\n") + 1) > 2:
        return f"({lines} lines)"  # a diff or a whole file is shown below, line by line
    if isinstance(value, str) and _UNRECORDED.fullmatch(value):
        return (
            "(shown with the question)"  # the list has the record, in which a keyed hash stands for the text
        )
    if isinstance(value, str):
        return pieces.as_json(value) if len(value) <= limit else pieces.as_json(value[: limit - 1]) + "…"
    return pieces.beginning(value, limit)


def is_short(question: Question) -> bool:
    """Whether a terminal shows all of it: what is approved is what was shown."""
    lines, chars = pieces.extent_of(question)
    return lines <= MOST_LINES and chars <= MOST_CHARS


def page(question: Question) -> Group:
    """The question. What is too long is cut, and says how to see the rest."""
    from rich.console import Group
    from rich.text import Text

    asked = _who(question) + (" with" if question.args else " without arguments")
    parts: list[RenderableType] = [safe(asked, "bold"), Text()]
    if question.args:
        parts += [preview(_arguments(question)), Text()]
    if question.preview:
        parts += _headed("which would do", _preview(question))
    if question.problem:
        parts += [
            safe(f"only the beginning is shown, so it cannot be approved: {question.problem}", "bold red"),
            Text(),
        ]
    if question.findings:
        parts += _headed("in which was found", found(question.findings), "bold red")
    if alike := lookalikes(question):
        parts += _headed("in which characters may be taken for others", Preview(alike, False), "bold red")
    parts.append(pairs(_facts(question)))
    return Group(*parts)


def _headed(words: str, item: RenderableType, style: str = "bold") -> list[RenderableType]:
    from rich.text import Text

    return [safe(words, style), Text(), item, Text()]


def found(findings: Iterable[Mapping[str, Any]]) -> Preview:
    """One line for each finding: what kind, by which rule, where, and what it looks like."""
    return Preview([visible(finding_in_words(one)) for one in findings], False)


def _arguments(question: Question) -> str:
    def cut(name: str, value: Any) -> str:
        extent = pieces.extent(value)
        if extent.lines <= MOST_LINES and extent.chars <= MOST_CHARS:
            return ""
        return f"{pieces.beginning(value, CUT)} {_rest(question, name, extent)}"

    return pieces.arguments(question, cut)


def _rest(question: Question, name: str, extent: pieces.Extent) -> str:
    """Without quotes, which every value has."""
    return f"(cut: {extent.lines:,} lines, {extent.chars:,} characters; toolgate approvals {question.id} --args {name})"


def _preview(question: Question) -> Preview | Group:
    text, extent = question.preview, pieces.extent(question.preview)
    if extent.lines <= MOST_LINES and extent.chars <= MOST_CHARS:
        return preview(text)
    kept = preview("\n".join(line[:CUT] for line in islice(pieces.lines(text), MOST_LINES))[:MOST_CHARS])
    told = (
        f"(cut: {extent.lines:,} lines, {extent.chars:,} characters; toolgate approvals {question.id} --all)"
    )
    from rich.console import Group

    return Group(kept, safe(f"  {told}", "bold"))


def preview(text: str, is_diff: bool = False) -> Preview:
    lines = decidable(text, keep_lines=True).split("\n")
    return Preview(lines, is_diff or bool(diffs.parse(text)))


@dataclass(frozen=True)
class Preview:
    """A diff in colour; anything else as it is. A folded line is marked: its rest must not pass for a line.

    In a pipe nothing is folded, and tabs stay.
    """

    lines: list[str]
    is_diff: bool

    @property
    def plain(self) -> str:
        return "\n".join(f"  {line}" for line in self.lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import chop_cells
        from rich.text import Text

        for line in self.lines:
            style = (
                next((style for mark, style in _DIFF if line.startswith(mark)), "") if self.is_diff else ""
            )
            if options.max_width >= ENDLESS:
                yield from Text(f"  {line}", style).render(console, end="\n")
                continue
            room = max(20, options.max_width - len(_FOLDED))
            first, *rest = chop_cells(line.expandtabs(4), room) or [""]
            yield Text(f"  {first}", style)
            for piece in rest:
                yield Text(_FOLDED + piece, style)


def _facts(question: Question) -> Iterable[tuple[str, object]]:
    if question.preview.count("\n") > _SCREEN and (files := change_in_words(question.preview)):
        yield "in short", files
    if moves := moves_in_words(question.preview):
        yield "moves", moves
    yield "effects", question.effects.sentence()
    if question.secrets:
        yield "secrets shown by name", secrets_in_words(question)
    yield "asked because", f"{question.reason} ({question.rule})"
    if question.rationale:
        yield f"{question.persona} says", f"“{question.rationale}”"
    if question.again:
        yield "asked again", question.again
    yield "can be undone", safe(undo_in_words(question), _undo_style(question))
    if question.conversation:
        yield "conversation", question.conversation
    if question.channels:
        yield "answer in", " or ".join(question.channels)
    yield "expires", f"{iso(question.expires_at)} (in {span(question.expires_at - now())})"
    yield "question", question.id


def _undo_style(question: Question) -> str:
    if question.undoable:
        return "yellow" if question.unkept else "green"
    return "" if changes_nothing(question.effects) else "bold yellow"


def now() -> int:
    return time.time_ns() // 1000


def print_page(console: Console, question: Question, *, whole: bool = False) -> None:
    """With `whole`, what is too long for a page is written line by line, without colours, before the rest."""
    if whole and not is_short(question):
        print_text(console, question)
    console.print(page(question), soft_wrap=False)


def print_text(console: Console, question: Question, only: str = "") -> None:
    for line in pieces.as_text(question, only):
        console.file.write(f"{line}\n")
