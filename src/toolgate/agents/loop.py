"""Agent loop: a generator without I/O that yields what is to be done next and is sent what came of it.

It asks the model, has tools called, and stops; whoever drives it does the asking and the calling. It looks at no clock
and knows no budget: a driver that finds one used up says so with what it sends (`over`). So the same answers always lead
to the same place, and a run that was killed is driven again through what was recorded and goes on where it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.agents.compaction import compacted, tokens_of

if TYPE_CHECKING:
    from toolgate.agents.wires import Parsed, WireCall, WireFormat

ROUNDS = 5
LEAST = 500
"""Tokens of the conversation that a model is given, however long the prompt is."""
MOST_MISTAKES = 3
"""Replies in a row of which nothing could be called, or equal malformed calls, before the run stops."""
EMPTY = "(Your reply was empty. Answer, or call a tool.)"
USED_UP = "the budget is used up, "

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """What a run begins with."""

    system: str
    question: str
    history: Sequence[Message] = ()
    rounds: int = ROUNDS
    context_tokens: int = 100_000
    """How much the model is given; results are left out beyond it, the oldest first."""


@dataclass(frozen=True, slots=True)
class AskModel:
    turn: int
    """How many times this run has asked before."""
    messages: Sequence[Message]
    final: bool
    """Tools are at an end: whatever comes is the answer."""
    spare: bool = False
    """The run is over and only its answer is missing: it ends without one where the model or the budget gives none."""


@dataclass(frozen=True, slots=True)
class CallTools:
    round: int
    calls: Sequence[WireCall]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the model said."""

    parsed: Parsed
    message: Message
    """The same, as the conversation keeps it."""
    over: str = ""
    """Which budget is used up, in words: nothing more may be asked or called."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of one call, as the model is told."""

    text: str
    ok: bool
    stop: str = ""
    """Why the run ends here, such as the gate's word that it goes round in circles."""
    malformed: bool = False
    """It never became a call, so the gate's guard against circles does not see it."""


@dataclass(frozen=True, slots=True)
class ToolsAnswered:
    answers: Sequence[ToolAnswer]
    standing: str = ""
    """Plan and open questions as they are now. Kept beside the messages, so that leaving some out loses none of it."""
    over: str = ""


@dataclass(frozen=True, slots=True)
class RunEnding:
    state: str
    """`done`, `limit` (rounds), `budget` or `stopped`."""
    answer: str
    reason: str = ""


Step = AskModel | CallTools
Sent = Answered | ToolsAnswered


def loop(task: Task, wire: WireFormat) -> Generator[Step, Any, RunEnding]:
    talk = _Talk(task, wire)
    mistakes = 0
    for number in range(task.rounds):
        said: Answered = yield talk.ask()
        talk.heard(said)
        parsed = said.parsed
        if said.over:
            return RunEnding("budget", talk.last_words(USED_UP + said.over), said.over)
        if not parsed.calls and not parsed.errors and parsed.text.strip():
            return RunEnding("done", parsed.text)
        mistakes = mistakes + 1 if not parsed.calls else 0
        if mistakes >= MOST_MISTAKES:
            wrong = parsed.errors[0].message if parsed.errors else "they were empty"
            reason = f"{mistakes} replies in a row held no answer and no call that could be read: {wrong}"
            return RunEnding("stopped", talk.last_words(reason), reason)
        told = ToolsAnswered(())
        if parsed.calls:
            told = yield CallTools(number, parsed.calls)
        talk.results(parsed, told)
        stop = next((answer.stop for answer in told.answers if answer.stop), "") or talk.circles(parsed, told)
        if stop:
            return (yield from talk.close("stopped", stop))
        if told.over:
            return (yield from talk.close("budget", told.over, USED_UP))
    return (yield from talk.close("limit", f"the {task.rounds} rounds of tool calls are used up"))


class _Talk:
    """The messages so far."""

    def __init__(self, task: Task, wire: WireFormat) -> None:
        self.task, self.wire = task, wire
        self.messages: list[Message] = [*task.history, {"role": "user", "content": task.question}]
        self.size = sum(map(tokens_of, self.messages))
        self.standing = ""
        self.turn = -1
        self.said = ""
        self.malformed: Counter[str] = Counter()

    def close(self, state: str, reason: str, what: str = "") -> Generator[Step, Answered, RunEnding]:
        """One more reply, without tools: it is the answer."""
        told = f"({what}{reason}. Answer now from what you know, without calling a tool.)"
        self.add({"role": "user", "content": told})
        said = yield self.ask(final=True, spare=state != "limit")
        text = said.parsed.text.strip()
        return RunEnding(state, text or self.last_words(what + reason), reason)

    def ask(self, *, final: bool = False, spare: bool = False) -> AskModel:
        self.turn += 1
        text = self.task.system + (f"\n\n{self.standing}" if self.standing else "")
        system = {"role": "system", "content": text}
        most = max(self.task.context_tokens - tokens_of(system), LEAST)
        question = len(self.task.history)
        kept = compacted(self.messages, most, question) if self.size > most else self.messages
        return AskModel(self.turn, [system, *kept], final, spare)

    def add(self, *messages: Message) -> None:
        self.messages += messages
        self.size += sum(map(tokens_of, messages))

    def heard(self, said: Answered) -> None:
        parsed = said.parsed
        if parsed.calls or parsed.errors or parsed.text.strip():
            self.add(said.message)
        else:  # APIs take no empty message
            self.add({"role": "user", "content": EMPTY})
        self.said = parsed.text.strip() or self.said

    def results(self, parsed: Parsed, told: ToolsAnswered) -> None:
        pairs = zip(parsed.calls, told.answers, strict=True)
        answers = [(call, answer.text, answer.ok) for call, answer in pairs]
        self.add(*self.wire.results(answers, parsed.errors))
        self.standing = told.standing or self.standing

    def circles(self, parsed: Parsed, told: ToolsAnswered) -> str:
        """Why the run ends, where the same call was malformed too often."""
        wrong = [pair for pair in zip(parsed.calls, told.answers, strict=True) if pair[1].malformed]
        for call, answer in wrong:
            same = json.dumps([call.name, call.args], sort_keys=True)
            self.malformed[same] += 1
            if self.malformed[same] >= MOST_MISTAKES:
                return f"it went round in circles: the same call failed {MOST_MISTAKES} times: {answer.text[:200]}"
        return ""

    def last_words(self, reason: str) -> str:
        """Where there is no answer: what was said last, and why there is no more."""
        return f"{self.said}\n\n(stopped: {reason})".strip()
