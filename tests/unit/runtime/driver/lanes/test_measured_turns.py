"""The rows that a turn takes, by what turns took."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from headrace.runtime.driver.lanes.measured import Measured
from how_many import examples


@examples(30, 500)
@given(
    st.floats(0, 0.2), st.floats(1e-7, 5e-3), st.floats(0.01, 0.2), st.integers(1, 10**6), st.floats(1, 1.5)
)
def test_turns_come_to_take_about_as_long_as_they_may(
    each: float, cost: float, seconds: float, waiting: int, noise: float
) -> None:
    """No turn has more than twice as many rows as ever before, and all together they are neither much too
    long nor much too short, whatever an epoch takes besides its rows."""
    known, drawn, largest, took = Measured(), random.Random(1), 0, list[float]()
    for turn in range(1, 60):
        rows = min(waiting, known.fitting(seconds))
        assert 1 <= rows <= max(64, 2 * largest)
        largest = max(largest, rows)
        worked = (each + cost * rows) * drawn.uniform(1, noise)
        took.append(worked)
        known.note(turn, rows, worked, worked + 0.01, 1.0)
    last = sum(took[-20:]) / 20
    assert last <= max(2.5 * noise * (each + seconds), each + cost)
    longest = each + cost * waiting
    assert last >= min(seconds / 4, longest / 2, cost * largest / 4)


def test_who_had_no_turn_takes_few_rows_first() -> None:
    known = Measured()
    assert known.fitting(1.0) == 64
    known.note(1, 64, 64.0, 64.5, 2.0)
    assert (known.passed, known.turns, known.rows, known.took) == (32.25, 1, 64, 64.5)
    assert known.fitting(1.0) < 64
    known.note(2, 0, 0.1, 0.2, 0.0)
    assert known.passed == 32.25
