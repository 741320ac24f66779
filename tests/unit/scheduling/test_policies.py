"""Policies on queues that are written down: whom each of them serves, and with how many rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.qos_graph import QosGraph
from headrace.scheduling.policies import HASTE, POLICIES, NextTurn, QueuedRows, joined
from headrace.scheduling.progress import ChartPoint, PathStep, first_slope, lower_envelope, progress_chart

SHARP = QosGraph(((1, 1), (2, 0)))
FLAT = QosGraph(((1, 1), (11, 0)))


def queue(name: str, **given: Any) -> QueuedRows:
    return replace(QueuedRows(name, rows=10, oldest=1.0, cost=0.1, selectivity=0.0), **given)


def served(policy: str, *queues: QueuedRows, seconds: float = 0.5) -> str | None:
    found = POLICIES[policy](queues, seconds)
    return None if found is None else found.name


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_is_served_where_nothing_waits_or_all_are_inactive(policy: str) -> None:
    assert served(policy) is None
    idle, inactive = queue("idle", rows=0), queue("inactive", weight=0.0, oldest=1e9, bound=0.1, delay=SHARP)
    assert served(policy, idle, inactive) is None
    assert served(policy, idle, inactive, queue("other")) == "other"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("rows", "cost", "seconds", "taken"),
    [
        (10, 0.1, 0.5, 5),
        (10, 0.1, 0.3, 3),
        (3, 0.1, 0.5, 3),
        (10, 2.0, 0.5, 1),
        (10, 0.0, 0.5, 10),
        (10, 0.1, 0, 1),
    ],
)
def test_a_turn_takes_as_many_rows_as_fit_and_at_least_one(
    policy: str, rows: int, cost: float, seconds: float, taken: int
) -> None:
    assert POLICIES[policy]([queue("q", rows=rows, cost=cost)], seconds) == NextTurn("q", taken)


@pytest.mark.parametrize(
    ("policy", "first", "then"),
    [
        ("weighted", {"passed": 1.0}, {"passed": 1.5, "oldest": 9.0}),
        ("weighted", {"passed": 9.0, "bound": 1.6}, {"passed": 0.0}),
        ("weighted", {"passed": 9.0, "bound": 0.5}, {"passed": 0.0}),
        ("weighted", {"passed": 0.0}, {"passed": 9.0, "bound": 8.0}),
        ("round_robin", {"turn": 3}, {"turn": 4, "oldest": 9.0}),
        ("round_robin", {"turn": 0}, {"turn": 1}),
        ("fifo", {"oldest": 2.0}, {"oldest": 1.0}),
        ("greedy", {"selectivity": 0.2}, {"selectivity": 0.5, "oldest": 9.0}),
        ("greedy", {"selectivity": 0.5}, {"selectivity": 0.2, "cost": 0.2}),
        ("greedy", {"selectivity": 0.0, "cost": 0.0}, {"selectivity": 0.0}),
        ("greedy", {"selectivity": 1.0, "cost": 0.1}, {"selectivity": 2.0, "cost": 0.1}),
        ("chain", {"selectivity": 0.2}, {"selectivity": 0.5, "oldest": 9.0}),
        (
            "chain",
            {"selectivity": 1.0, "steps": (PathStep(0.1, 1.0), PathStep(0.1, 0.0))},
            {"selectivity": 0.7, "steps": (PathStep(0.1, 0.7), PathStep(9.0, 0.0))},
        ),
        ("utility", {"delay": SHARP}, {"delay": FLAT, "oldest": 5.0}),
        ("utility", {"delay": FLAT}, {"delay": SHARP, "oldest": 5.0}),
        ("utility", {"delay": FLAT}, {}),
        ("utility", {"delay": FLAT, "cost": 0.01}, {"delay": FLAT, "cost": 0.1}),
        ("utility", {"delay": FLAT, "weight": 2.0}, {"delay": FLAT, "oldest": 2.0}),
        (
            "utility",
            {"delay": QosGraph(((5, 1), (99, 0)))},
            {"delay": QosGraph(((6, 1), (7, 0))), "oldest": 1.5},
        ),
        ("utility", {"oldest": 2.0}, {"oldest": 1.0}),
        ("utility", {"delay": SHARP, "cost": 0.0}, {"delay": SHARP}),
    ],
)
def test_who_is_served_first(policy: str, first: dict[str, Any], then: dict[str, Any]) -> None:
    assert served(policy, queue("first", **first), queue("then", **then)) == "first"
    assert served(policy, queue("then", **then), queue("first", **first)) == "first"


@pytest.mark.parametrize("policy", POLICIES)
def test_of_two_that_are_alike_the_first_is_served(policy: str) -> None:
    assert served(policy, queue("a"), queue("b")) == "a"
    assert served(policy, queue("b"), queue("a")) == "b"


def test_bounds_are_seen_together() -> None:
    """Three queues need half a second each, and half of their bounds is over in 1.4 seconds."""
    three = [queue(name, passed=9.0, rows=5, bound=4.8) for name in "abc"]
    assert served("weighted", queue("free", passed=0.0), *three[:1]) == "free"
    assert served("weighted", queue("free", passed=0.0), *three) == "a"
    earlier = queue("d", passed=9.0, rows=1, bound=4.6)
    assert served("weighted", queue("free", passed=0.0), *three, earlier) == "d"


def test_bounds_that_cannot_be_kept_leave_a_turn_of_ten_to_others() -> None:
    late = queue("late", passed=100.0, bound=0.1, oldest=50.0, turn=20)
    assert served("weighted", late, queue("free", turn=20 - HASTE + 1)) == "late"
    assert served("weighted", late, queue("free", turn=20 - HASTE)) == "free"
    assert served("weighted", late, queue("free", turn=0, weight=0.0)) == "late"


def test_a_queue_that_comes_back_has_no_claim_on_the_past() -> None:
    others = [queue("a", passed=7.0), queue("b", passed=5.0), queue("c", rows=0, passed=1.0)]
    assert joined(2.0, others) == 5.0
    assert joined(6.0, others) == 6.0
    assert joined(2.0, []) == 2.0


def test_the_chart_and_the_envelope_of_a_path() -> None:
    steps = (PathStep(1, 0.9), PathStep(1, 0.5), PathStep(2, 0.0))
    chart = progress_chart(steps)
    assert [one.seconds for one in chart] == pytest.approx([0, 1, 1.9, 2.8])
    assert [one.size for one in chart] == pytest.approx([1, 0.9, 0.45, 0])
    assert lower_envelope(chart) == (chart[0], chart[3])
    assert first_slope(steps) == pytest.approx(-1 / 2.8)
    # Behind the first operator the rest is steeper: who has begun a line goes on.
    assert first_slope(steps[1:]) < first_slope(steps)


def test_the_line_of_an_envelope_goes_as_far_as_it_can() -> None:
    chart = progress_chart((PathStep(1, 0.5), PathStep(2, 0.0)))
    assert lower_envelope(chart) == (ChartPoint(0, 1), ChartPoint(2, 0))


def test_the_chart_of_stream_falls_first_steeply_and_then_less() -> None:
    chart = progress_chart((PathStep(0.2, 0.2), PathStep(1.0, 0.0)))
    assert lower_envelope(chart) == chart == (ChartPoint(0, 1), ChartPoint(0.2, 0.2), ChartPoint(0.4, 0))
