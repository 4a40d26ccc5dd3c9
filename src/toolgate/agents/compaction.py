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
"""Messages at the end that stay whole, as long as there is any room for them."""
LEFT_OUT = 200


def tokens_of(message: dict[str, Any]) -> int:
    """About how many tokens it is."""
    return len(json.dumps(message, ensure_ascii=False, default=str)) // CHARS_A_TOKEN + 1


def compacted(messages: Sequence[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """The same messages with the oldest results shortened until they fit; pairs of call and result stay pairs."""
    kept, size = list(messages), sum(map(tokens_of, messages))
    for index in range(max(len(kept) - KEEP_LAST, 0)):
        if size <= most:
            break
        if index == 0:
            continue  # the question
        shorter = _shortened_message(kept[index])
        size += tokens_of(shorter) - tokens_of(kept[index])
        kept[index] = shorter
    return kept


def _shortened_message(message: dict[str, Any]) -> dict[str, Any]:
    """Of what the model said only the words: the arguments of its calls must stay JSON."""
    if isinstance(message.get("output"), list):
        return message  # items of a response: its calls, beside few words
    if message.get("role") != "assistant":
        return {key: _shortened(item) for key, item in message.items()}
    said = message.get("content")
    return message | {"content": _shortened(said)} if isinstance(said, str) else message


def _shortened(value: Any) -> Any:
    """Long texts in it cut, its shape untouched: an API that pairs calls with results by their ids still finds them."""
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if isinstance(value, str) and len(value) > LEFT_OUT + 60:
        return f"{value[:LEFT_OUT]}… [{len(value) - LEFT_OUT:,} characters left out; call again to see them]"
    return value
