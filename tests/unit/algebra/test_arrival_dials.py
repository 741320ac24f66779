"""What a stream had brought so long, or so many rows, ago: against the definition over all moments."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.arrival import NO_PAST, Dial, Moment, Past, Unit
from headrace.time import BEGINNING

steps = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 30), st.integers(0, 50)), max_size=40)
dials = st.lists(
    st.builds(Dial, st.sampled_from((Unit.ARRIVAL, Unit.ROWS)), st.integers(1, 700)), min_size=1, max_size=3
)


def reached(moments: list[Moment], dial: Dial, length: int) -> int:
    """The newest timestamp of all that had come so far back."""
    limit = moments[-1].of(dial.unit) - length
    return max((one.newest for one in moments if one.of(dial.unit) <= limit), default=BEGINNING)


@settings(max_examples=60)
@given(steps, dials)
def test_what_is_reached_is_what_had_come(steps: list[tuple[int, int, int]], dials: list[Dial]) -> None:
    past, moments = NO_PAST, [Moment(0, 0, BEGINNING)]
    for passed, rows, newest in steps:
        last = moments[-1]
        moments.append(Moment(last.clock + passed, last.rows + rows, max(last.newest, newest)))
        past = past.then(moments[-1], dials)
        for dial in dials:
            # Never sooner, and later by less than a 64th of the length.
            most, least = (reached(moments, dial, dial.length + more) for more in (0, dial.length // 64))
            assert least <= past.newest(dial) <= most
    assert len(past.moments) <= 2 * 66 * len(dials)


def test_moments_in_one_part_are_kept_once() -> None:
    dials, past = [Dial(Unit.ARRIVAL, 6_400)], NO_PAST
    for clock in range(100_000):
        past = past.then(Moment(clock, clock, clock), dials)
    assert len(past.moments) <= 66
    assert 93_400 <= past.newest(dials[0]) <= 93_599


def test_the_clock_alone_brings_news_until_all_is_reached() -> None:
    dials = [Dial(Unit.ARRIVAL, 10)]
    past = Past().then(Moment(0, 1, 7), dials).then(Moment(5, 2, 9), dials)
    assert [past.brings_news(clock, dials) for clock in (9, 10, 14)] == [False, True, True]
    past = past.then(Moment(15, 2, 9), dials)
    assert past.newest(dials[0]) == 9
    assert not past.brings_news(1_000, dials)
