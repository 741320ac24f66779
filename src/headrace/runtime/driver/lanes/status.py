"""Lanes as they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AnswerWorth:
    """The worth of a query's answers lately, by its delay graph.

    Attributes:
        query: its name.
        utility: their mean, from 0 to 1, as a part of what an answer is worth that is not late at all.
        late: how late they were in the mean (seconds).
    """

    query: str
    utility: float
    late: float


@dataclass(frozen=True)
class LaneStatus:
    """A lane as it is shown.

    Attributes:
        lane: its number, the epoch in which it began; 0 for the front.
        queries: the names of its queries.
        weight: the sum of their weights.
        latency: the shortest of their bounds (microseconds); None for none.
        rows: how many rows wait.
        behind: for how long the oldest of them has waited (seconds); None where none waits.
        turns: how many turns it has had since the process began.
        taken: the rows of these turns.
        seconds: the time that they took.
        cost: the time that a row takes (seconds).
        due: its weight as a part of those of all lanes and of the front, from 0 to 1.
        had: the part of the time of all turns lately that it has had, from 0 to 1; None before there are any.
        urgent: the query with the shortest bound; None for none.
        by_itself: whether its queries went behind since they make others late, and not by a weight.
        worth: what the answers of those of its queries that have a delay graph were worth.
    """

    lane: int
    queries: tuple[str, ...]
    weight: float
    latency: int | None
    rows: int
    behind: float | None
    turns: int
    taken: int
    seconds: float
    cost: float
    due: float
    had: float | None
    urgent: str | None = None
    by_itself: bool = False
    worth: tuple[AnswerWorth, ...] = ()


def lane_of_query(lanes: tuple[LaneStatus, ...], query: str) -> LaneStatus | None:
    """The lane in which a query is behind others; None where it is in front.

    Args:
        lanes: as a status has them.
        query: its name.
    """
    return next((one for one in lanes if one.lane and query in one.queries), None)


def rows_of_lanes(before: Sequence[LaneStatus], after: Sequence[LaneStatus]) -> Iterator[dict[str, Any]]:
    """The deeds of an epoch for lanes and for the front, as rows of `headrace.lanes`.

    Args:
        before, after: the lanes before and after it.
    """
    known = {one.lane: one for one in before}
    for one in after:
        earlier = known.get(one.lane)
        taken, seconds = (0, 0.0) if earlier is None else (earlier.taken, earlier.seconds)
        utilities = [worth.utility for worth in one.worth]
        yield {
            "lane": one.lane,
            "queries": ", ".join(one.queries),
            "weight": one.weight,
            "due": one.due,
            "had": one.had,
            "waiting": one.rows if one.lane else None,
            "behind": one.behind,
            "rows_in": one.taken - taken if one.lane else None,
            "seconds": one.seconds - seconds,
            "utility": sum(utilities) / len(utilities) if utilities else None,
        }
