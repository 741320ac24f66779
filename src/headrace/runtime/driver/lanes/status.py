"""Lanes as they are shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AnswerWorth:
    """What the answers of a query with a delay graph were worth lately.

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
