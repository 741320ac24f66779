"""The papers' scheduling, simulated: STREAM's table as printed, and what else is said of strategies."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from papers.scheduling import (
    SLOW_START,
    STEEP_START,
    STRATEGIES,
    drawn,
    main,
    mean_memory,
    overload,
    path_of,
    table,
    trains,
    two_paths,
)

PRINTED = {"Strat. 1": (1, 1.2, 2, 2.2, 3, 3.2, 4), "Strat. 2": (1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2)}
"""STREAM (CIDR 2003), section 4.2: the sizes of both queues at the instants 1 to 7, as multiples of n."""


@pytest.mark.parametrize("strategy", PRINTED)
def test_the_queues_of_stream_are_as_long_as_its_table_says(strategy: str) -> None:
    sizes = table(STRATEGIES[strategy])
    assert sizes[:7] == PRINTED[strategy]
    # After the burst they decline, and both are empty at 15.
    assert list(sizes[6:]) == sorted(sizes[6:], reverse=True)
    assert (sizes[13] > 0, sizes[14]) == (True, 0)


def test_chain_sees_beyond_an_operator_that_leaves_nearly_all_rows() -> None:
    assert path_of(SLOW_START)[0].selectivity > path_of(STEEP_START)[0].selectivity
    found = {policy: two_paths(policy) for policy in ("fifo", "round_robin", "greedy", "chain")}
    means = {policy: mean_memory(one) for policy, one in found.items()}
    peaks = {policy: max(rows for _, rows in one.memory) for policy, one in found.items()}
    assert means["chain"] < 0.6 * min(means["fifo"], means["round_robin"], means["greedy"])
    assert peaks["chain"] < 0.7 * min(peaks["fifo"], peaks["round_robin"], peaks["greedy"])
    # Strategies that look at one operator alone may need more memory than those that look at none.
    assert means["greedy"] > means["fifo"]


def test_trains_need_fewer_calls_and_keep_up_where_single_rows_do_not() -> None:
    alone, together = trains(0.0), trains(0.1)
    assert together.calls < alone.calls / 3
    assert together.busy < alone.busy / 2
    assert together.delay < 0.1 < 10 < alone.delay


@pytest.mark.parametrize("load", [0.8, 1.5, 2.0])
def test_answers_are_worth_more_where_utility_says_who_is_served(load: float) -> None:
    assert (
        overload("utility", load) > 0.99
        if load < 1
        else overload("utility", load)
        > 1.2 * max(overload(other, load) for other in ("round_robin", "fifo", "weighted"))
    )


def test_the_figures_are_told_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    told = capsys.readouterr().out.splitlines()
    assert " ".join(told[2].split()) == "Strat. 1 1 1.2 2 2.2 3 3.2 4 3.2 3 2.2 2 1.2 1 0.2 0"
    names = [one.tag.rpartition("}")[2] for one in ElementTree.fromstring(drawn()).iter()]
    # A chart and an envelope for each of three paths, and a line for each of four policies.
    assert names.count("polyline") == 3 * 2 + 4
