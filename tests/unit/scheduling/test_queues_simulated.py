"""The simulator of queues: what is in memory when, what leaves when, and what it refuses."""

from __future__ import annotations

import pytest

from headrace.errors import UserError
from headrace.qos_graph import QosGraph
from headrace.scheduling.policies import fifo, round_robin, weighted
from headrace.scheduling.simulation import Burst, Departure, QueuedOperator, ServedTurn, simulate

HALF = (QueuedOperator("half", 1.0, 0.5, "last"), QueuedOperator("last", 0.5, 2.0))


def test_rows_are_in_memory_until_they_have_left() -> None:
    found = simulate(HALF, [Burst(1.0, "half", 4), Burst(2.5, "half", 1)], fifo)
    # Of two rows one goes on, after the second; the fifth makes nothing complete.
    assert found.memory == [(1, 4), (2, 3), (2.5, 4), (3, 4), (3.5, 3), (4.5, 2), (5.5, 2), (6, 1), (7, 0)]
    assert [found.memory_at(at) for at in (0.5, 1.0, 1.9, 2.0, 2.7, 9.0)] == [0, 4, 4, 3, 4, 0]
    assert found.departures == [Departure("last", 1.0, left) for left in (3.5, 3.5, 6.0, 6.0)]
    assert found.spent() == {"half": 5.0, "last": 1.0}


def test_a_train_is_one_turn_and_pays_for_one_switch() -> None:
    found = simulate(HALF, [Burst(0.0, "half", 4)], fifo, seconds=10.0, switch=0.25)
    assert found.turns == [ServedTurn("half", 4, 0.0, 4.25), ServedTurn("last", 2, 4.25, 5.5)]
    alone = simulate(HALF, [Burst(0.0, "half", 4)], fifo, switch=0.25)
    assert [turn.rows for turn in alone.turns] == [1] * 6
    assert alone.turns[-1].end == 5.0 + 6 * 0.25


def test_the_processor_waits_for_what_comes() -> None:
    found = simulate(HALF[1:], [Burst(3.0, "last", 1), Burst(1.0, "last", 1)], fifo)
    assert [turn.begin for turn in found.turns] == [1.0, 3.0]


def test_rows_of_several_operators_are_in_the_order_in_which_they_came() -> None:
    feeding = [QueuedOperator("slow", 3.0, 1.0, "last"), QueuedOperator("quick", 1.0, 1.0, "last")]
    bursts = [Burst(0.0, "slow", 1), Burst(1.0, "quick", 2)]
    found = simulate([*feeding, QueuedOperator("last", 1.0)], bursts, round_robin)
    assert [one.arrived for one in found.departures] == [0.0, 1.0, 1.0]


def test_the_utility_of_answers_is_that_of_their_delays() -> None:
    graph = QosGraph(((1, 1), (3, 0)))
    found = simulate(HALF[1:], [Burst(0.0, "last", 4)], fifo)
    # Two rows leave after each half second.
    assert found.utility({"last": graph}) == (1 + 1 + 0.75 + 0.5) / 4
    assert found.utility({"other": graph}) == 1.0


def test_who_is_inactive_waits_for_ever() -> None:
    found = simulate([QueuedOperator("q", 1.0, weight=0.0)], [Burst(0.0, "q", 3)], weighted)
    assert (found.turns, found.memory) == ([], [(0.0, 3)])


def test_half_of_a_bound_is_kept_for_what_comes_meanwhile() -> None:
    """Thirty rows have a hundred seconds; in the last thirty others come, which have less time."""
    operators = [
        QueuedOperator("free", 1.0),
        QueuedOperator("many", 1.0, bound=100.0, weight=0.001),
        QueuedOperator("few", 1.0, bound=6.0),
    ]
    few = [Burst(70.0 + 5 * one, "few", 2) for one in range(10)]
    found = simulate(operators, [Burst(0.0, "free", 500), Burst(0.0, "many", 30), *few], weighted)
    bounds = {"free": 1e9, "many": 100.0, "few": 6.0}
    assert all(one.left - one.arrived <= bounds[one.operator] for one in found.departures)


@pytest.mark.parametrize(
    ("operators", "bursts", "message"),
    [
        (HALF, [Burst(0.0, "other", 1)], "there is no operator other"),
        (HALF[:1], [], "there is no operator last"),
        (
            [QueuedOperator("a", 1.0, 1.0, "b"), QueuedOperator("b", 1.0, 1.0, "a")],
            [],
            "operators follow each other in a circle: a, b",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    operators: list[QueuedOperator], bursts: list[Burst], message: str
) -> None:
    with pytest.raises(UserError) as error:
        simulate(operators, bursts, fifo)
    assert error.value.message == message
