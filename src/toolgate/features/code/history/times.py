"""Dates as git takes them. Git reads any nonsense as "now", so nonsense is refused before it gets there."""

from __future__ import annotations

import re

from toolgate.core.errors import InvalidArgs

_LISTED = """
ago last now today yesterday noon midnight tea never am pm a an and at on the of t z utc gmt
one two three four five six seven eight nine ten
second seconds sec secs minute minutes min mins hour hours day days week weeks month months year years
monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
"""
_WORDS = frozenset(_LISTED.split())
_TOKEN = re.compile(r"[A-Za-z]+|\d+(?:st|nd|rd|th)?|[\s.,:/+-]+|.", re.S)


def check_time(text: str) -> str:
    for token in _TOKEN.findall(text):
        known = token.lower() in _WORDS or token[0].isdigit() or not token.strip(" .,:/+-")
        if not known:
            raise InvalidArgs(f"{text!r} is not a time", 'write a date (2026-01-31) or "2 weeks ago"')
    if text and not re.search(r"\w", text):
        raise InvalidArgs(f"{text!r} is not a time", 'write a date (2026-01-31) or "2 weeks ago"')
    return text
