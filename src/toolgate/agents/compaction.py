"""Compaction: a conversation cut to what a model can take.

Only what tools returned and what was said long ago is left out. Rules, plan and open questions are not in these messages:
they are in the system message, which is made anew for every request. Nothing in a message authorises anything, so an old
approval that stays in the text, or a new one that somebody wrote into a file, counts for nothing at the gate.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

CHARS_A_TOKEN = 4
KEEP_LAST = 4
"""Messages at the end that are shortened last, and only as far as they must be."""
LEFT_OUT = 200
"""Characters that stay of an old one."""
TOLD = 200
"""Characters that at most go into saying how much was left out."""


def tokens_of(message: dict[str, Any]) -> int:
    """About how many tokens it is."""
    return len(json.dumps(message, ensure_ascii=False, default=str)) // CHARS_A_TOKEN + 1


def compacted(messages: Sequence[dict[str, Any]], most: int, question: int = 0) -> list[dict[str, Any]]:
    """The same messages with results shortened until they fit, the oldest first; pairs of call and result stay pairs, and
    the question, which is the message of that number, stays whole."""
    kept, size = list(messages), sum(map(tokens_of, messages))
    old = len(kept) - KEEP_LAST
    for index, message in enumerate(messages):
        if size <= most:
            break
        if index == question:
            continue
        tokens = tokens_of(message)
        kept[index] = _shortened_message(message, 0 if index < old else max(1 - (size - most) / tokens, 0))
        size += tokens_of(kept[index]) - tokens
    return kept


def _shortened_message(message: dict[str, Any], share: float) -> dict[str, Any]:
    """Of what the model said only the words: the arguments of its calls must stay JSON."""
    if isinstance(message.get("output"), list) and "type" not in message:
        return message  # items of a response: its calls, beside few words
    if message.get("role") != "assistant":
        return {key: _shortened(item, share) for key, item in message.items()}
    said = message.get("content")
    return message | {"content": _shortened(said, share)} if isinstance(said, str) else message


def _shortened(value: Any, share: float) -> Any:
    """Long texts in it cut, its shape untouched: an API that pairs calls with results by their ids still finds them."""
    if isinstance(value, dict):
        return {key: _shortened(item, share) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item, share) for item in value]
    if isinstance(value, str):
        room = max(LEFT_OUT, int(len(value) * share) - TOLD)
        if len(value) > room + TOLD:
            return f"{value[:room]}… [{len(value) - room:,} characters left out; call again to see them]"
    return value
