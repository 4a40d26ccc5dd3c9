"""Conversation at the terminal about a question: from the menu to an answer, or to a grant. It is loaded when there is a
question: a call that asks nobody does without all that draws one."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any

from toolgate.consent import grants
from toolgate.consent.works import Scope, covered
from toolgate.core.clock import SECOND, iso
from toolgate.core.errors import CallError
from toolgate.kits import words
from toolgate.kits.terminal import question as questions
from toolgate.kits.terminal import speech
from toolgate.kits.terminal.prompt import Keyboard
from toolgate.ledger.state import parsed
from toolgate.storage.port import Filter

if TYPE_CHECKING:
    from toolgate.core.ports import Question
    from toolgate.facade import Gate
    from toolgate.kits.terminal.prompt import Terminal

MENU = "[a]pprove once  [r]efuse  [g]rant  [l]ater"
LONG = "[s]how all  [r]efuse  [l]ater"
"""Of what was cut nothing can be approved before the rest was shown."""
PATIENCE = 5.0


def announce(question: Question) -> None:
    """Where and until when it can be answered, if not here."""
    where = f" (must be answered in: {', '.join(question.channels)})" if question.channels else ""
    files = words.change_in_words(question.preview)
    would = f"; it would {files}" if files else ""
    again = f"; asked again: {question.again}" if question.again else ""
    until = f"{iso(question.expires_at)} (at most {words.span(question.expires_at - questions.now())})"
    speech.note(
        f"waiting until {until} for approval of {question.tool}: {question.reason}{where}{would}{again}",
        "",
    )
    speech.note(f"  toolgate approvals {question.id} approve   (or refuse)", "")


def show(question: Question, *, whole: bool = False) -> None:
    from rich.rule import Rule

    console = speech.err()
    console.print(Rule("toolgate asks", style="yellow", characters="─"))
    questions.print_page(console, question, whole=whole)


async def say_who(gate: Gate, question: Question) -> None:
    """Another channel was first, or the call was given up; the ledger knows."""
    sys.stderr.write("\n")  # the menu still waits on its line
    with contextlib.suppress(CallError, TimeoutError):
        async with asyncio.timeout(PATIENCE):
            rows = await gate.events(Filter(ref=question.id))
        for row in reversed(rows):
            if row.kind in ("approved", "refused"):
                body = parsed(row)
                why = f": {body['reason']}" if body.get("reason") else ""
                speech.note(f"{row.kind} {words.by_whom(body['by'], body['channel'])}{why}", style="yellow")
                return
            if row.kind == "expired":
                speech.note("nobody answered in time", style="yellow")
                return
        speech.note(f"it is still open: toolgate approvals {question.id}", "")


class TerminalConversation:
    """From the menu to an answer."""

    def __init__(self, terminal: Terminal, question: Question) -> None:
        self.terminal = terminal
        self.question = question
        self.keyboard = Keyboard()
        self.seen = questions.is_short(question)

    async def run(self) -> None:
        """Ends with an answer, or with `later`, which leaves the question open."""
        every = {"a": self._approve, "r": self._refuse, "g": self._grant, "s": self._show_all}
        self.keyboard.forget()
        while True:
            reply = await self._read(f"{MENU if self.seen else LONG} > ")
            choices = {letter: every[letter] for letter in ("arg" if self.seen else "rs")}
            letter = (
                "l"
                if reply is None
                else _letter(reply, "approve", "refuse", "grant", "later", "show all", "show")
            )
            if letter == "l":
                self.terminal.later.set()
                return
            chosen = choices.get(letter)
            if chosen is None and reply:
                speech.note("that is none of these: type a letter or its word", style="yellow")
            if chosen is not None and await chosen():
                return

    async def _read(self, label: str) -> str | None:
        """None at the end of input."""
        sys.stderr.write(label)
        sys.stderr.flush()
        line = await self.keyboard.line()
        return line.strip() if line else None

    async def _show_all(self) -> bool:
        await asyncio.to_thread(questions.print_page, speech.err(), self.question, whole=True)
        self.seen = True
        return False

    async def _approve(self) -> bool:
        return await self.terminal.answer(self.question, True)

    async def _refuse(self) -> bool:
        reason = await self._read("why (the model is told) > ")
        return await self.terminal.answer(self.question, False, reason or "")

    async def _grant(self) -> bool:
        scope = await self._scope()
        if scope is None:
            return False
        question = self.question
        body = covered(scope, question.args, question.effects)
        expires = questions.now() + round(scope.seconds * SECOND)
        told = words.grant_in_words(question.persona, question.tool, body, expires)
        speech.note(f"this call, and from now on: {told}", style="bold")
        if question.findings:
            speech.note("what has findings is asked about each time: no grant covers it", style="bold")
        if (await self._read("give this grant? [y/N] > ") or "").lower() not in ("y", "yes"):
            return False
        return await self.terminal.answer(question, True, scope=scope)

    async def _scope(self) -> Scope | None:
        minutes = _minutes(await self._read("for how many minutes? [60] > "))
        if minutes is None:
            speech.note("that is not a number of minutes", style="yellow")
            return None
        spoken = self.question.conversation
        program = grants.program_of(self.question)
        kinds = ("[c]onversation  " if spoken else "") + "[p]ath glob  [s]ame arguments  "
        kinds += ("[t]his program with any arguments  " if program else "") + "[a]ny arguments > "
        typed = await self._read(f"for what? {kinds}") or ""
        kind = _letter(typed, "conversation", "path", "same", "this", "any")
        if kind == "c" and spoken:
            return Scope(seconds=minutes * 60, conversation=spoken)
        if kind == "p":
            globs = await self._globs()
            return Scope(seconds=minutes * 60, paths=globs) if globs else None
        if kind == "s":
            return Scope(await self._same(), seconds=minutes * 60)
        if kind == "t" and program is not None:
            return Scope(self._kept() | {grants.ARGV: program}, seconds=minutes * 60)
        return Scope(seconds=minutes * 60) if kind == "a" else None

    async def _globs(self) -> tuple[str, ...]:
        """What is typed, or else the files of this very call."""
        assert self.terminal.gate is not None
        tool = await self.terminal.gate.find_tool(self.question.tool)
        own = grants.globs(grants.paths_of(self.question, tool))
        if own:
            speech.note(f"this call is on {' and '.join(own)}", "")
        typed = await self._read(
            "path glob, such as docs/**" + (", or nothing for these" if own else "") + " > "
        )
        return (typed,) if typed else tuple(own)

    def _kept(self) -> dict[str, Any]:
        return {limit.name: dict(limit.condition) for limit in grants.limits(self.question)}

    async def _same(self) -> dict[str, Any]:
        """Every argument as it is, but for those that are named."""
        found = self._kept()
        for name, condition in found.items():
            speech.note(f"  {name} {words.condition_in_words(condition)}", "")
        freed = (await self._read("which of these may differ? names, or nothing for none > ") or "").split()
        return {name: condition for name, condition in found.items() if name not in freed}


def _letter(reply: str, *words: str) -> str:
    """The letter of the word that was typed, whole or as its letter. Nothing else counts: `abort` is no approval."""
    return next((word[0] for word in words if reply in (word, word[0])), "")


def _minutes(text: str | None) -> float | None:
    try:
        minutes = float(text or 60)
    except ValueError:
        return None
    return minutes if 0 < minutes <= 525_600 else None
