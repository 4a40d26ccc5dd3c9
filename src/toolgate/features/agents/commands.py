"""`toolgate run`, `toolgate chat` and `toolgate runs`: personas at work, seen from a terminal."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from toolgate.agents.budget import RunLimits
from toolgate.core.call import new_id
from toolgate.core.clock import SECOND
from toolgate.features.agents.attending import WAITING, Plain, Usd, attended, opened, until_later
from toolgate.features.agents.view import RunView, cost, short, spelled
from toolgate.kits.terminal import failures, options, project, results, speech
from toolgate.kits.terminal.command import Argument, CommandGroup, Option, command
from toolgate.kits.words import ago

if TYPE_CHECKING:
    from toolgate.facade import Gate
    from toolgate.features.agents.runs import Runs
    from toolgate.kits.terminal.prompt import Terminal

app = CommandGroup("Runs of personas.")
Words = Annotated[str, Argument(metavar="QUESTION", help="What is to be found out or done; - reads stdin.")]
ModelName = Annotated[str, Option("--model", "-m", help="Which model; default: the persona's.")]
Tokens = Annotated[int, Option("--tokens", help="Tokens it may use at most.", min=0)]
Calls = Annotated[int, Option("--calls", help="Tool calls it may make at most.", min=0)]
Rounds = Annotated[
    int, Option("--rounds", help="Rounds of tool calls; default: as toolgate.yaml says.", min=0, max=100)
]
Ident = Annotated[str, Argument(metavar="RUN", help="The run: r_…")]
Talk = Annotated[str, Option("--conversation", help="Which conversation it is part of.")]
NEW = "/new"
_BAD = frozenset({"failed", "stopped", "budget", "cancelled"})


@command(epilog='Example: toolgate run "where is the total computed?" --persona reviewer')
def run(
    question: Words,
    persona: options.Persona = "",
    model: ModelName = "",
    conversation: Talk = "",
    rounds: Rounds = 0,
    usd: Usd = 0.0,
    tokens: Tokens = 0,
    calls: Calls = 0,
    plain: Plain = False,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Ask a persona something. It works with tools through the gate; what policy asks about is asked here."""
    words = sys.stdin.read() if question == "-" else question
    more = {"persona": persona, "model": model, "conversation": conversation, "rounds": rounds}
    project.run(_run(words, more, RunLimits(tokens, usd, 0.0, calls), plain, root))


@command(epilog="Example: toolgate chat --persona reviewer")
def chat(
    persona: options.Persona = "",
    model: ModelName = "",
    conversation: Talk = "",
    plain: Plain = False,
    root: options.Root = None,
) -> None:
    """Talk with a persona. Each line is a run of one conversation; an empty line or Ctrl-D ends it.

    With --conversation an earlier one goes on, as far as its session goes; `/new [name]` begins a new session.
    """
    project.run(_chat(persona, model, conversation, plain, root))


@app.without_command(epilog="Example: toolgate runs --open")
def runs(
    open_only: Annotated[bool, Option("--open", help="Only those that have not ended.")] = False,
    limit: Annotated[int, Option("--limit", help="How many.", min=1, max=1000)] = 30,
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Runs of personas: without a subcommand, the newest."""
    project.run(_list(open_only, limit, root))


@app.command(epilog="Example: toolgate runs show r_0192")
def show(ident: Ident, root: options.Root = None, json: options.Json = False) -> None:
    """Everything about one run: what was said, called, answered, and by whom it was helped."""
    project.run(_show(ident, root))


@app.command(epilog="Example: toolgate runs resume r_0192")
def resume(ident: Ident, plain: Plain = False, root: options.Root = None, json: options.Json = False) -> None:
    """Go on with a run that waits or has failed, or whose process is gone."""
    project.run(_resume(ident, plain, root))


@app.command(epilog="Example: toolgate runs cancel r_0192")
def cancel(ident: Ident, root: options.Root = None, json: options.Json = False) -> None:
    """End a run that waits."""
    project.run(_cancel(ident, root))


async def _run(words: str, more: dict[str, Any], limits: RunLimits, plain: bool, root: Path | None) -> int:
    async with attended(root) as (agents, terminal):
        view = RunView(plain)
        talk = more.pop("conversation")
        made = await (
            agents.talk(words, talk, limits=limits, **more)
            if talk
            else agents.start(words, limits=limits, **more)
        )
        view.begun(made, agents.models.scripted(made.model))
        return await _finish(agents, agents.drive(made, view, attended=terminal.interactive), made.id, view, terminal)  # fmt: skip


async def _resume(ident: str, plain: bool, root: Path | None) -> int:
    async with attended(root) as (agents, terminal):
        view = RunView(plain)
        work = agents.resume(ident, view, attended=terminal.interactive)
        return await _finish(agents, work, ident, view, terminal)


async def _finish(agents: Runs, work: Any, ident: str, view: RunView, terminal: Terminal) -> int:
    done = await until_later(work, terminal, f"runs resume {ident}") or await agents.store.get(ident)
    if not speech.finish(done.shown(), ok=done.state not in _BAD):
        view.answer(done)
    if done.state == "waiting":
        return WAITING
    return failures.FAILED if done.state in _BAD else failures.OK


async def _chat(persona: str, model: str, conversation: str, plain: bool, root: Path | None) -> None:
    async with attended(root) as (agents, terminal):
        view, talk = RunView(plain), conversation or new_id("v")
        lines, made = _Lines(plain), None
        try:
            while words := await lines.next():
                if words.split()[0] == NEW:
                    await _new_session(agents.gate, persona, talk, words.removeprefix(NEW).strip())
                    continue
                made = await agents.talk(words, talk, persona=persona, model=model)
                view.begun(made, agents.models.scripted(made.model))
                work = agents.drive(made, view, attended=terminal.interactive)
                resume = f"runs resume {made.id}"
                done = await until_later(work, terminal, resume) or await agents.store.get(made.id)
                view.answer(done)
        finally:
            if made is not None and not conversation:
                speech.note(f"talk on with: toolgate chat --conversation {talk}")


async def _new_session(gate: Gate, persona: str, conversation: str, name: str) -> None:
    """By a call like any other, as the persona: the conversation is one with its user."""
    done = await gate.call(
        "session.new", {"name": name, "conversation": conversation}, persona=persona or gate.config.default_persona
    )  # fmt: skip
    if done.ok:
        speech.note(f"a new session begins: {name}" if name else "a new session begins")
    else:
        results.show(done)


class _Lines:
    """Lines from a person, with editing and history where the extra is there; else as they come."""

    def __init__(self, plain: bool) -> None:
        self._session: Any = None
        if sys.stdin.isatty() and not plain:
            try:
                from prompt_toolkit import PromptSession
            except ImportError:
                return
            self._session = PromptSession("> ")

    async def next(self) -> str:
        if self._session is not None:
            try:
                # Ctrl-C stays ours: it would take our handler away, and a run could not be interrupted any more
                return str(await self._session.prompt_async(handle_sigint=False)).strip()
            except EOFError:
                return ""
        from toolgate.kits.terminal.prompt import Keyboard

        if sys.stdin.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
            return (await Keyboard().line()).strip()
        return str(await asyncio.to_thread(sys.stdin.readline)).strip()


async def _list(open_only: bool, limit: int, root: Path | None) -> None:
    async with opened(root) as agents:
        found = await agents.store.newest(limit, open_only=open_only)
    if speech.finish([one.shown() for one in found]):
        return
    if not found:
        speech.say('nothing has run yet: toolgate run "where is …?"')
        return
    rows = [
        [one.id, ago(one.created_at / SECOND), one.persona, one.model, one.state, short(one.question, 120)]
        for one in found
    ]
    speech.put(speech.table(["run|whole", "when", "persona", "model", "state", "question|cut"], rows))


async def _show(ident: str, root: Path | None) -> None:
    async with opened(root) as agents:
        found = await agents.store.get(ident)
        steps = await agents.store.steps(ident)
        family = [one for one in await agents.store.family(found.root) if one.parent == ident]
    if speech.finish(found.shown() | {"steps": steps, "helpers": [one.shown() for one in family]}):
        return
    told = {
        name: ago(value / SECOND) if name == "created_at" else value
        for name, value in found.shown().items()
        if value and name not in ("spent", "answer")
    }
    speech.put(speech.pairs(told.items()))
    for step in steps:
        speech.say(_step_line(step["kind"], step["body"]))
    for one in family:
        speech.say(f"helper {one.persona} with {one.model}: {one.state}, {cost(one)}, {one.id}")
    speech.say(found.answer)
    speech.note(cost(found))


async def _cancel(ident: str, root: Path | None) -> None:
    async with opened(root) as agents:
        done = await agents.cancel(ident)
    if not speech.finish(done.shown()):
        speech.say(f"{done.id} is {done.state}")


def _step_line(kind: str, body: dict[str, Any]) -> str:
    if kind == "reply":
        asked = "".join(f"\n  requests {spelled(one, 400)}" for one in body.get("requests", ()))
        called = "".join(f"\n  calls {call['name']} {spelled(call['args'])}" for call in body["calls"])
        wrong = "".join(f"\n  not a call: {error['message']}" for error in body["errors"])
        return f"{body['model']} said: {body['text'][:400]}{asked}{called}{wrong}"
    if kind == "result":
        plan = f"\n  {body['standing']}" if body.get("standing") else ""
        return f"  {body['tool']}: {'ok' if body['ok'] else body['text'][:300]} (event {body['event']}){plan}"
    return kind
