from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.errors import UserError
from headrace.time import (
    INFINITY,
    MAX_INSTANT,
    Duration,
    ManualClock,
    SystemClock,
    TimeDomain,
    format_instant,
    in_words,
    make_duration,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "length", "written"),
    [
        ("10", 10, "10"),
        ("0", 0, "0"),
        ("5 seconds", 5_000_000, "5 SECONDS"),
        ("1 Minute", 60_000_000, "1 MINUTE"),
        (" 2days ", 172_800_000_000, "2 DAYS"),
        ("250 MILLISECONDS", 250_000, "250 MILLISECONDS"),
        ("3 WEEK", 3 * 7 * 86_400_000_000, "3 WEEKS"),
        ("5s", 5_000_000, "5 SECONDS"),
        ("10 MIN", 600_000_000, "10 MINUTES"),
        ("1 mins", 60_000_000, "1 MINUTE"),
        ("250ms", 250_000, "250 MILLISECONDS"),
        ("7us", 7, "7 MICROSECONDS"),
        ("3 hrs", 3 * 3_600_000_000, "3 HOURS"),
        ("2d", 172_800_000_000, "2 DAYS"),
        ("1 wk", 7 * 86_400_000_000, "1 WEEK"),
    ],
)
def test_durations_are_read_and_written(text: str, length: int, written: str) -> None:
    duration = parse_duration(text)
    assert (duration.length, str(duration)) == (length, written)
    assert parse_duration(str(duration)) == duration


@pytest.mark.parametrize("text", ["", "five seconds", "-5 seconds", "5 fortnights", "1.5 hours", "1 MONTH"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_duration(text)


def test_a_duration_that_cannot_be_added_is_refused() -> None:
    assert make_duration(MAX_INSTANT, None).length == MAX_INSTANT
    with pytest.raises(UserError, match="too long"):
        make_duration(MAX_INSTANT, "SECONDS")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("5m", "write 5 MINUTES, since M may be minutes or months"),
        ("2 minuets", "write 2 MINUTES"),
        ("1 month", "months and years have no fixed length; write 30 DAYS"),
        ("2 years", "months and years have no fixed length; write 730 DAYS"),
        ("5 moons", "the units are MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS, WEEKS"),
    ],
)
def test_an_unknown_unit_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UserError, match="unknown unit of time") as caught:
        parse_duration(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1.5 hours", "write 90 MINUTES"),
        ("1h30m", "write 90 MINUTES"),
        ("1 day 12 hours", "write 36 HOURS"),
        ("00:01:30", "write 90 SECONDS"),
        ("1:30", "write 90 MINUTES"),
        ("PT1H30M5S", "write 5405 SECONDS"),
        ("P2D", "write 2 DAYS"),
        ("0.0000001s", "write a number and a unit, such as 5 SECONDS"),
        ("1 day 2 months", "write a number and a unit, such as 5 SECONDS"),
        ("P", "write a number and a unit, such as 5 SECONDS"),
    ],
)
def test_a_duration_of_several_parts_is_refused_with_one_that_has_its_length(text: str, hint: str) -> None:
    with pytest.raises(UserError, match="is not a valid duration") as caught:
        parse_duration(text)
    assert caught.value.hint == hint


def test_unbounded() -> None:
    assert str(Duration(INFINITY)) == "UNBOUNDED"


@pytest.mark.parametrize(
    ("instant", "domain", "text"),
    [
        (0, TimeDomain.TIMESTAMP, "1970-01-01T00:00:00Z"),
        (-1, TimeDomain.TIMESTAMP, "1969-12-31T23:59:59.999999Z"),
        (1_709_210_096_500_000, TimeDomain.TIMESTAMP, "2024-02-29T12:34:56.500000Z"),
        (2**62, TimeDomain.TIMESTAMP, str(2**62)),
        (-7, TimeDomain.INTEGER, "-7"),
        (INFINITY, TimeDomain.INTEGER, ""),
        (INFINITY, TimeDomain.TIMESTAMP, ""),
    ],
)
def test_instants_are_written(instant: int, domain: TimeDomain, text: str) -> None:
    assert format_instant(instant, domain) == text


def test_clocks() -> None:
    clock = ManualClock(5)
    assert clock.now() == clock.now() == 5
    clock.advance(7)
    assert clock.now() == 12
    before = datetime.now(UTC)
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=SystemClock().now())
    assert before <= now <= datetime.now(UTC), "microseconds since 1970 in UTC"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2024-05-01T09:59:59.999999Z", "just before 2024-05-01T10:00:00Z"),
        ("2024-12-31T23:59:59.999999Z", "just before 2025-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ("2024-05-01T09:59:59.999998Z", "2024-05-01T09:59:59.999998Z"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("999999", "999999"),
        ("end", "end"),
        ("", ""),
    ],
)
def test_the_last_instant_before_a_second_is_said_by_that_second(text: str, said: str) -> None:
    assert in_words(text) == said
