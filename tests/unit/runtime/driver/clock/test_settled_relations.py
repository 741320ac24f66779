"""Until when the clock changes an answer in which streams meet relations."""

from __future__ import annotations

from headrace.algebra.nodes import Join, Plan, Relation, Source, TimeWindow
from headrace.runtime.driver.clock.settlement import Settling
from headrace.schema import BIGINT, Field, Schema
from headrace.time import MICROSECONDS, Duration, TimeDomain

SCHEMA = Schema((Field("x", BIGINT),))
NAMES = ("x", "y")
STREAM = Source("s", SCHEMA, "ts", TimeDomain.TIMESTAMP)
CONSTANT = Relation("c", SCHEMA, TimeDomain.TIMESTAMP)
TEMPORAL = Relation("t", SCHEMA, TimeDomain.TIMESTAMP, ("a", "b"))
SECOND = MICROSECONDS["SECOND"]
WINDOW = TimeWindow(STREAM, Duration(10 * SECOND))


def is_due(left: Plan, right: Plan, after: int) -> bool:
    """Whether an epoch is due so long after the newest row, when the last one was an hour ago."""
    settling = Settling.of(Join(left, right, (), None, NAMES))
    return settling.is_due(0, after - 1, after, 3600 * SECOND)


def test_a_constant_relation_changes_nothing() -> None:
    assert is_due(WINDOW, CONSTANT, 9 * SECOND)
    assert not is_due(WINDOW, CONSTANT, 20 * SECOND)


def test_the_periods_of_a_relation_change_what_is_in_a_window_for_ever() -> None:
    assert is_due(WINDOW, TEMPORAL, 10**6 * SECOND)


def test_they_do_not_change_what_holds_for_an_instant() -> None:
    assert not is_due(STREAM, TEMPORAL, 20 * SECOND)
