"""Runs at a terminal: append-only, one line for each tool call, helpers with model, calls and cost. No cursor is moved.

The answer goes to stdout, everything else to stderr. Every text from outside is made harmless; `plain` has words instead
of signs and no colour, for screen readers and logs.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from toolgate.core.display import visible
from toolgate.features.agents.store import AgentRun
from toolgate.kits.terminal import speech

WIDE = 100
_STATES = {
    "done": "", "limit": "the rounds were used up", "budget": "the budget was used up", "stopped": "stopped",
    "failed": "failed", "waiting": "waits", "cancelled": "cancelled",
}  # fmt: skip


class RunView:
    def __init__(self, plain: bool = False, verbose: bool = False) -> None:
        self.plain, self.verbose = plain, verbose
        self._calls: dict[tuple[str, int, int], Mapping[str, Any]] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, kind: str, run: AgentRun, body: Mapping[str, Any]) -> None:
        if speech.mode.json:
            return
        tell = getattr(self, f"_{kind}", None)
        if tell is not None:
            tell(run, body)

    def begun(self, run: AgentRun, scripted: bool) -> None:
        if not speech.mode.json:
            said = " (scripted: it says what a file has, no model is asked)" if scripted else ""
            self._line("", f"{run.persona} with {run.model}{said}, run {run.id}", "dim")

    def _line(self, sign: str, text: str, style: str = "") -> None:
        shown = visible(text)
        if self.plain:
            sys.stderr.write(shown + "\n")
            sys.stderr.flush()
        else:
            speech.put_err(speech.StyledText(f"{sign} {shown}" if sign else shown, style), "")

    def _who(self, run: AgentRun) -> str:
        return f"{run.persona}: " if run.parent or run.room else ""

    def _reply(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        if body["calls"] and body["text"].strip():
            self._line("·", f"{self._who(run)}{short(body['text'], 400)}", "dim")
        for error in body["errors"]:
            self._line("!", f"{self._who(run)}could not be read as a call: {error['message']}", "yellow")

    def _call(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        self._calls[run.id, body["round"], body["index"]] = body

    def _result(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        self._counts[run.id] = self._counts.get(run.id, 0) + 1
        call = self._calls.pop((run.id, body["round"], body["index"]), {"args": {}})
        args = spelled(call["args"])
        ended = "ok" if body["ok"] else f"{body['code']}"
        sign, style = ("✓", "green") if body["ok"] else ("✗", "red")
        what = f"{self._who(run)}{body['tool'] or call.get('tool', '')} {args}"
        end = f" · {ended} · {body['ms']:.0f} ms"
        room = WIDE if self.plain else min(WIDE, max(shutil.get_terminal_size().columns - len(end) - 2, 40))
        self._line(sign, f"{short(what, room)}{end}", style)
        if not body["ok"]:
            self._line(" ", f"  {short(body['text'], 300)}", "dim")
        if body["note"]:
            self._line("!", f"  the gate told it: {short(body['note'], 200)}", "yellow")

    def _waiting(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        self._line("?", f"{self._who(run)}a human is asked: {body['question']}", "yellow")

    def _turn(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        self._line("#", f"{run.persona} with {run.model}", "bold")

    def _helper(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        self._line("↳", f"helper {run.persona} with {run.model}: {short(run.question, 200)}", "cyan")

    def _end(self, run: AgentRun, body: Mapping[str, Any]) -> None:
        if run.room and not run.parent:
            self._line(" ", f"{run.persona}: {short(run.answer or run.reason, 400)} · {cost(run)}", "dim")
        if run.parent:
            self._line("↰", f"helper {run.persona} {run.state}, {cost(run)}", "cyan")

    def answer(self, run: AgentRun) -> None:
        """The last word, on stdout; then what it took."""
        if run.answer:
            speech.put(speech.safe(run.answer, lines=True), whole=True)
        told = _STATES.get(run.state, run.state)
        if run.state not in ("done", "limit") or (run.state == "done" and run.reason):
            self._line("!", ": ".join(filter(None, (told, run.reason))), "yellow")
        if run.state in ("waiting", "failed"):
            self._line(" ", f"go on with: toolgate runs resume {run.id}", "")
        self._line("", f"{cost(run)} · run {run.id}", "dim")


def cost(run: AgentRun) -> str:
    spent = run.spent
    return (
        f"{counted(spent.get('calls', 0), 'call', 'calls')} · {counted(spent.get('asks', 0), 'reply', 'replies')} · {spent.get('tokens', 0):,} tokens · {paid(spent)}"
        f" · {spent.get('seconds', 0):.1f} s"
    )


def total(runs: Iterable[AgentRun]) -> str:
    """What they took together; a helper's part is in its parent's."""
    whole = [run.spent for run in runs if not run.parent]
    sums = {name: sum(one.get(name, 0) for one in whole) for name in ("tokens", "usd", "unpriced")}
    return f"{sums['tokens']:,} tokens · {paid(sums)}"


def paid(spent: Mapping[str, Any]) -> str:
    """Tokens without a known price are not free."""
    usd, unpriced = spent.get("usd", 0), spent.get("unpriced")
    if not usd and unpriced:
        return "price unknown"
    return f"{money(usd)} and {unpriced:,} tokens of unknown price" if unpriced else money(usd)


def counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def money(usd: float) -> str:
    return "< $0.0001" if 0 < usd < 0.0001 else f"${usd:.4f}"


def spelled(args: Mapping[str, Any], most: int = 160) -> str:
    """Arguments in one line."""
    return short(", ".join(f"{name}={short(value, 60)}" for name, value in args.items()), most)


def short(value: Any, most: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
