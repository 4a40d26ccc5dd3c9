"""Calendar periods of summaries: days, ISO weeks, months, quarters and years, and the keys that name them.

Keys are calendar-aligned: `2025-12-31`, `2026-W01` (ISO weeks are Monday to Sunday, and belong to the year that has
their Thursday), `2025-12`, `2025-Q4`, `2025`. A key that names no real period is refused. Moments are turned into days
in a stated time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs

CONVERSATION, DAILY, WEEKLY, MONTHLY, QUARTERLY, YEARLY = SUMMARY_TYPES = (
    "conversation-summary",
    "daily-summary",
    "weekly-summary",
    "monthly-summary",
    "quarterly-summary",
    "yearly-summary",
)
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_WEEK = re.compile(r"(\d{4})-W(\d{2})")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_YEAR = re.compile(r"\d{4}")
_FORMS = "`2025-12-31`, `2025-W50`, `2025-12`, `2025-Q4` or `2025`"
PREFIX = re.compile(r"\d{1,4}(-(Q[1-4]?|W\d{0,2}|\d{0,2}(-\d{0,2})?))?")


class CalendarPeriod(NamedTuple):
    """A stretch of whole days."""

    key: str
    type: str
    first: date
    last: date

    def contains(self, other: CalendarPeriod) -> bool:
        return self.first <= other.first and other.last <= self.last


def period_of(type_: str, day: date) -> CalendarPeriod:
    """The period of this type of summary that a day lies in; a conversation's is its day."""
    if type_ in (CONVERSATION, DAILY):
        return CalendarPeriod(day.isoformat(), type_, day, day)
    if type_ == WEEKLY:
        year, week, weekday = day.isocalendar()
        first = day - timedelta(days=weekday - 1)
        return CalendarPeriod(f"{year:04}-W{week:02}", type_, first, _plus(first, 6))
    if type_ == MONTHLY:
        return CalendarPeriod(f"{day:%Y-%m}", type_, day.replace(day=1), _last_of_month(day.year, day.month))
    if type_ == QUARTERLY:
        quarter = (day.month - 1) // 3 + 1
        first = date(day.year, quarter * 3 - 2, 1)
        return CalendarPeriod(
            f"{day.year:04}-Q{quarter}", type_, first, _last_of_month(day.year, quarter * 3)
        )
    return CalendarPeriod(f"{day.year:04}", YEARLY, date(day.year, 1, 1), date(day.year, 12, 31))


def parse(key: str, type_: str = "") -> CalendarPeriod:
    """The period that a key names. With a type, only that type's form is taken."""
    try:
        found = _parsed(key)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise InvalidArgs(f"{key[:40]!r} names no period of the calendar", f"write {_FORMS}")
    if type_ and type_ != found.type and not (type_ == CONVERSATION and found.type == DAILY):
        wanted = period_of(type_, date(2025, 12, 31)).key
        raise InvalidArgs(
            f"{key!r} is the key of a {found.type}, not of a {type_}", f"write it as `{wanted}`"
        )
    return found


def _parsed(key: str) -> CalendarPeriod | None:
    if found := _DAY.fullmatch(key):
        return period_of(DAILY, date(int(found[1]), int(found[2]), int(found[3])))
    if found := _WEEK.fullmatch(key):  # fromisocalendar refuses a week 53 in years that have none
        return period_of(WEEKLY, date.fromisocalendar(int(found[1]), int(found[2]), 4))
    if found := _MONTH.fullmatch(key):
        return period_of(MONTHLY, date(int(found[1]), int(found[2]), 1))
    if found := _QUARTER.fullmatch(key):
        return period_of(QUARTERLY, date(int(found[1]), int(found[2]) * 3, 1))
    return period_of(YEARLY, date(int(key), 1, 1)) if _YEAR.fullmatch(key) else None


def as_prefix(text: str) -> CalendarPeriod | None:
    """The period that a filter means; None for the beginning of a key, such as `202`. Other texts are refused."""
    if not PREFIX.fullmatch(text):
        raise InvalidArgs(f"{text[:40]!r} is not the beginning of a period key", f"write {_FORMS}")
    try:
        return _parsed(text)
    except (ValueError, OverflowError):
        raise InvalidArgs(f"{text!r} names no period of the calendar", f"write {_FORMS}") from None


def zone_of(name: str) -> tzinfo:
    if name.upper() == "UTC":  # known without a database of time zones
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidArgs(
            f"there is no time zone {name[:60]!r}", "write one such as Europe/Berlin, or UTC"
        ) from None


def day_of(micros: int, zone: tzinfo) -> date:
    return datetime.fromtimestamp(micros / SECOND, zone).date()


def begin_of(day: date, zone: tzinfo, at: time = time()) -> int:
    """The moment when a day begins there, in microseconds. A time that a change of clocks leaves out is the moment after."""
    moment = datetime.combine(day, at, zone)
    try:
        return round(moment.astimezone(UTC).timestamp() * SECOND)
    except OverflowError:  # the first or last day that there is, in a zone beside UTC
        return round(moment.replace(tzinfo=UTC).timestamp() * SECOND)


def moments(period: CalendarPeriod, zone: tzinfo) -> tuple[int, int]:
    """From its beginning to before the beginning of what follows."""
    return begin_of(period.first, zone), begin_of(_plus(period.last, 1), zone)


def moment(text: str, zone: tzinfo) -> int:
    """The microseconds of an ISO time; one without an offset is meant in this zone, a day is its beginning."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            found = found.replace(tzinfo=zone)
        return round(found.astimezone(UTC).timestamp() * SECOND)
    except (ValueError, OverflowError):
        raise InvalidArgs(
            f"{text[:40]!r} is not a time", "write one such as 2026-01-31T12:00:00Z or 2026-01-31"
        ) from None


def _last_of_month(year: int, month: int) -> date:
    return date(year, 12, 31) if month == 12 else date(year, month + 1, 1) - timedelta(days=1)


def _plus(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:  # the last week of the year 9999
        return date.max
