"""Query analysis: what a question names, quotes, counts and dates, so that each of them can count in a score."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from toolgate.recall.text import ANSWERING, ASKING, STOP_WORDS, telling, terms

MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name and name != "May"}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_QUOTED = re.compile(
    r"\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|`([^`\n]{2,200})`|(?<!\w)'([^'\n]{2,200})'(?!\w)"
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:/-]\d+)*(?![\w])")
_NAME = re.compile(r"\b[A-Z][\w'’.-]*[\w]")
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?,?(?: (\d{{4}}))?|"
    rf"\b({_MONTH})\b\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? (\d{{4}}))?",
    re.IGNORECASE,
)
_MONTH_YEAR = re.compile(rf"\b({_MONTH})\b\.?,?(?: of)?(?: (\d{{4}}))?", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:in|of|during|since|year) ((?:19|20)\d\d)\b", re.IGNORECASE)
ASKING_MOST = 20
"""Words of a turn that only asks: a longer one tells what the question is about."""
_WHEN = re.compile(
    r"\b(when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|how many (?:days|weeks|months|years))\b",
    re.IGNORECASE,
)
_I = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU_SAID = re.compile(
    r"\b(?:did|have|had) you\b|\byou (?:\w+ed|said|told|gave|wrote|made)\b|\byours?\b", re.IGNORECASE
)
_TIME_WORDS = re.compile(
    rf"\b(today|yesterday|tomorrow|tonight|ago|last|next|since|until|week|weekend|month|year|day|morning|evening|"
    rf"monday|tuesday|wednesday|thursday|friday|saturday|sunday|{_MONTH}|(?:19|20)\d\d|\d{{1,2}}(?:st|nd|rd|th))s?\b",
    re.IGNORECASE,
)


class Period(NamedTuple):
    """A time that a query names. Without a year it is that of every year."""

    start: datetime
    end: datetime
    every_year: bool = False

    def contains(self, at: datetime) -> bool:
        if not self.every_year:
            return self.start <= at < self.end
        day = (at.month, at.day)
        return (self.start.month, self.start.day) <= day <= _last_day(self.end)


class Query(NamedTuple):
    text: str
    terms: tuple[str, ...]
    """For the lexical index; stop words only if there is nothing else."""
    phrases: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    periods: tuple[Period, ...]
    asks_when: bool


def parse(text: str) -> Query:
    phrases = tuple(
        next(part for part in match.groups() if part).casefold() for match in _QUOTED.finditer(text)
    )
    names = tuple(dict.fromkeys(name for name in _names(text)))
    numbers = tuple(dict.fromkeys(_NUMBER.findall(text)))
    return Query(
        text,
        tuple(telling(terms(text))),
        phrases,
        numbers,
        names,
        tuple(_periods(text)),
        bool(_WHEN.search(text)),
    )


def naming(query: Query, speakers: Iterable[str]) -> Query:
    """The query with the names of those who talk, also where they are written small. In a chat with an assistant it is
    known who `I` and `you` are."""
    roles = ANSWERING if _YOU_SAID.search(query.text) else ASKING if _I.search(query.text) else frozenset()
    small = [name for name in speakers if name.lower() in query.terms or name.lower() in roles]
    return query._replace(names=tuple(dict.fromkeys((*query.names, *small)))) if small else query


def says_time(text: str) -> bool:
    return bool(_TIME_WORDS.search(text))


def only_asks(text: str) -> bool:
    """Whether a turn asks and says nothing itself."""
    if not text.rstrip().endswith("?") or len(text.split()) > ASKING_MOST:
        return False
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]
    asking = sum(part.endswith("?") for part in sentences)
    return bool(sentences) and sentences[-1].endswith("?") and asking * 2 >= len(sentences)


def _names(text: str) -> list[str]:
    found: list[str] = []
    for match in _NAME.finditer(text):
        name = re.sub(r"['’]s$", "", match.group())
        opens = not text[: match.start()].rstrip() or text[: match.start()].rstrip()[-1] in '.?!:"“'
        lower = name.lower()
        if (
            lower in STOP_WORDS
            or lower in MONTHS
            or (opens and not _is_code(name) and len(found) == 0 and _opener(lower))
        ):
            continue
        found.append(name)
    return found


def _is_code(name: str) -> bool:
    return any(c.isupper() or c.isdigit() or c == "_" for c in name[1:])


def _opener(word: str) -> bool:
    """Words that begin a question or an order and are no name."""
    return word in _OPENERS


_BEGINNING = """find show give list describe explain summarize summarise compare name look search is are was were do does did has
    have had can could will would should which what who whom whose where when why how in on at for from during since
    since both if anything anyone everything configure install use using set create make write run change update"""
_OPENERS = frozenset(_BEGINNING.split())


def _periods(text: str) -> list[Period]:
    found: list[Period] = []
    for match in _ISO.finditer(text):
        year, month, day = (int(part) if part else 0 for part in match.groups())
        found += _day(year, month, day) if day else _month(year, month)
    rest = _ISO.sub(" ", text)
    for match in _DAY_MONTH.finditer(rest):
        first = match.groups()
        number, name, written = (first[0], first[1], first[2]) if first[0] else (first[4], first[3], first[5])
        found += _day(int(written or 0), MONTHS[name.lower()], int(number))
    rest = _DAY_MONTH.sub(" ", rest)
    for match in _MONTH_YEAR.finditer(rest):
        if match.group(1).lower() != "may" or match.group(1)[0].isupper():
            found += _month(int(match.group(2) or 0), MONTHS[match.group(1).lower()])
    if not found:
        found += [p for match in _YEAR.finditer(rest) for p in _year(int(match.group(1)))]
    return found


_LEAP = 2000
"""Stands for every year: it has each day."""


def _day(year: int, month: int, day: int) -> list[Period]:
    try:
        start = datetime(year or _LEAP, month, day, tzinfo=UTC)
        return [Period(start, start + timedelta(days=1), not year)]
    except (ValueError, OverflowError):
        return []  # there is no such day


def _month(year: int, month: int) -> list[Period]:
    try:
        start = datetime(year or _LEAP, month, 1, tzinfo=UTC)
        return [Period(start, (start + timedelta(days=32)).replace(day=1), not year)]
    except (ValueError, OverflowError):
        return []


def _year(year: int) -> list[Period]:
    return [Period(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))]


def _last_day(end: datetime) -> tuple[int, int]:
    last = end - timedelta(days=1)
    return last.month, last.day
