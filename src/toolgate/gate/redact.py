"""Stage 9: secrets out of whatever leaves the gate, whether it goes to the model, the journal or a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from toolgate.core import diff
from toolgate.core.apart import apart
from toolgate.core.context import Trail
from toolgate.core.errors import CallError
from toolgate.core.records import fields_of, replace
from toolgate.gate.flow import Broke, Done, Flow, Outcome, Services, large

if TYPE_CHECKING:
    from toolgate.core.change import Change
    from toolgate.core.ports import Redactor

_LONG = 500_000
"""Microseconds after which secrets may have been set that the call's beginning did not know of."""
_LONGEST = 8000
"""Characters of what is said about a failure; a tool may say megabytes."""
_WORDS = tuple(fields_of(Trail))


def redact(services: Services, flow: Flow) -> Coroutine[Any, Any, None] | None:
    outcome = flow.outcome
    if (services.redactor.searches or flow.hidden) and large(_said(outcome)):
        return _redacted_aside(services, flow)
    _redact(services, flow)
    return None


async def _redacted_aside(services: Services, flow: Flow) -> None:
    """Looking for secrets in megabytes takes seconds, which nobody else shall wait for. It has run by now, so whoever
    is no longer interested gets it settled all the same."""
    looking = asyncio.get_running_loop().run_in_executor(None, _redact, services, flow)
    try:
        await asyncio.shield(looking)
    except asyncio.CancelledError:
        await asyncio.wait((looking,))
        looking.result()
        flow.cancelled = True


def _redact(services: Services, flow: Flow) -> None:
    outcome = flow.outcome
    if flow.duration_us > _LONG:
        with suppress(CallError):  # it has run and must be settled; what was known stays masked
            services.redactor.refresh()
    if type(outcome) is Done:
        flow.data = services.redactor.redact(outcome.value, flow.hidden)
    elif outcome is not None:
        message, fix = services.redactor.redact([outcome.message, outcome.fix], flow.hidden)
        flow.outcome = replace(outcome, message=_cut(str(message)), fix=_cut(str(fix)))
        if isinstance(flow.outcome, Broke) and flow.outcome.data is not None:
            flow.data = services.redactor.redact(flow.outcome.data, flow.hidden)


def _said(outcome: Outcome | None) -> Any:
    if outcome is None or isinstance(outcome, Done):
        return outcome and outcome.value
    return [outcome.message, outcome.fix, getattr(outcome, "data", None)]


async def clean_error(redactor: Redactor, error: CallError, hidden: tuple[str, ...]) -> None:
    """A plan, a preview or a check of the arguments may have quoted a secret."""
    said = [error.message, error.fix, error.data]
    look = partial(redactor.redact, said, hidden)
    message, fix, error.data = await apart(look) if large(said) else look()
    error.message, error.fix = _cut(message), _cut(fix)


def _cut(text: str) -> str:
    """After secrets were looked for: the half of one would not be found."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… [{len(text) - _LONGEST:,} more characters]"


def clean_trail(redactor: Redactor, trail: Trail) -> Trail:
    """What a caller says about a call is recorded with it."""
    words = {name: getattr(trail, name) for name in _WORDS}
    clean = redactor.redact(words)
    return trail if clean is words else Trail(**clean)


def with_contents(change: Change, clean: Callable[[bytes], bytes]) -> Change:
    """The same with other contents, to be shown or recorded. Names stay: a human must know which file it is."""
    files = []
    for file in change.files:
        before, after = (None if side is None else clean(side) for side in (file.before, file.after))
        same = before == file.before and after == file.after
        files.append(file if same else replace(file, before=before, after=after))
    return replace(change, files=tuple(files))


def shown_diff(redactor: Redactor, change: Change) -> str:
    """What a human decides on: the diff of the very bytes, in which only values of the vault stand by their names.
    The contents are searched and not the diff, in which the lines of a value stand apart."""
    return diff.render(with_contents(change, redactor.shown))


Progress = Callable[[float, str], None]


def clean_part(redactor: Redactor, flow: Flow, part: Callable[[Any], None]) -> Callable[[Any], None]:
    """A part of a result is held to what the whole is held to."""
    return lambda value: part(redactor.redact(value, flow.hidden))


def clean_progress(redactor: Redactor, progress: Progress) -> Progress:
    return lambda fraction, message: progress(fraction, str(redactor.redact(str(message))))
