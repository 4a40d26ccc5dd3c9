"""Calendar keys: right at the edges of years, in time zones, and refused where there is no such period."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from toolgate.core.clock import SECOND
from toolgate.core.errors import InvalidArgs
from toolgate.features.memory import periods
from toolgate.features.memory.config import SessionsSpec
from toolgate.features.memory.sessions import boundary


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


@pytest.mark.parametrize(
    ("day", "key"),
    [
        ("2025-12-29", "2026-W01"), ("2026-01-01", "2026-W01"), ("2027-01-01", "2026-W53"), ("2027-01-03", "2026-W53"),
        ("2027-01-04", "2027-W01"), ("2024-12-30", "2025-W01"), ("2021-01-03", "2020-W53"), ("2018-12-31", "2019-W01"),
    ],
)  # fmt: skip
def test_iso_weeks_belong_to_the_year_of_their_thursday(day: str, key: str) -> None:
    assert periods.period_of(periods.WEEKLY, date.fromisoformat(day)).key == key


def test_every_day_of_forty_years_lies_in_its_periods_and_each_key_reads_back() -> None:
    day = date(1999, 1, 1)
    while day < date(2039, 1, 1):
        for kind in periods.SUMMARY_TYPES[1:]:
            found = periods.period_of(kind, day)
            assert found.first <= day <= found.last
            assert periods.parse(found.key, kind) == found
        day += timedelta(days=1)


@pytest.mark.parametrize(
    "key", ["2025-W53", "2025-02-29", "2025-13", "2025-Q5", "2025-00", "0000", "2025-W00", "25", "2025-1", "", "x", "2025-12-31T00"]
)  # fmt: skip
def test_a_key_of_no_real_period_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgs):
        periods.parse(key)


def test_a_day_begins_at_another_moment_in_another_zone() -> None:
    late = micros("2026-03-31T23:30:00+00:00")
    assert periods.day_of(late, UTC) == date(2026, 3, 31)
    assert periods.day_of(late, ZoneInfo("Europe/Berlin")) == date(2026, 4, 1)
    begin, end = periods.moments(periods.parse("2026-03-29"), ZoneInfo("Europe/Berlin"))
    assert (end - begin) // SECOND == 23 * 3600


@pytest.mark.parametrize(
    ("divide", "at", "began", "ends"),
    [
        ("daily", "00:00", "2026-03-28T10:00:00+01:00", "2026-03-29T00:00:00+01:00"),
        ("daily", "04:00", "2026-03-28T10:00:00+01:00", "2026-03-29T04:00:00+02:00"),
        ("daily", "04:00", "2026-03-28T03:59:59+01:00", "2026-03-28T04:00:00+01:00"),
        ("daily", "04:00", "2026-03-28T04:00:00+01:00", "2026-03-29T04:00:00+02:00"),
        ("weekly", "00:00", "2026-03-25T10:00:00+01:00", "2026-03-30T00:00:00+02:00"),
        ("weekly", "06:00", "2026-03-30T05:00:00+02:00", "2026-03-30T06:00:00+02:00"),
    ],
)  # fmt: skip
def test_a_session_ends_at_the_set_time_of_its_zone(divide: str, at: str, began: str, ends: str) -> None:
    spec = SessionsSpec.model_validate({"auto_divide": divide, "auto_divide_time": at})
    assert boundary(micros(began), spec, ZoneInfo("Europe/Berlin")) == micros(ends)


def test_a_session_that_is_not_divided_never_ends_by_itself() -> None:
    assert boundary(micros("2026-01-01T00:00:00+00:00"), SessionsSpec(auto_divide="none"), UTC) is None
