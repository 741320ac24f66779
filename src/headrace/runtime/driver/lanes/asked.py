"""The priorities of the queries of a lane, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.qos_graph import QosGraph
from headrace.scheduling.priority import Priority


@dataclass(frozen=True)
class AskedOfLane:
    """The wishes of the queries of a lane, together.

    Attributes:
        queries: its queries, by identity.
        weight: the sum of their weights.
        bound: the shortest of their bounds of latency (microseconds); None for none.
        delay: the delay graph of the first that has one; None for none.
        urgent: the query with the shortest of the bounds; None for none.
        by_itself: whether none of them has a weight of its own.
    """

    queries: tuple[str, ...] = ()
    weight: float = 0.0
    bound: int | None = None
    delay: QosGraph | None = None
    urgent: str | None = None
    by_itself: bool = False

    @classmethod
    def of(cls, queries: tuple[str, ...], priorities: Sequence[Priority]) -> AskedOfLane:
        """Those of queries with some priorities."""
        bounds = [
            (one.latency, query)
            for query, one in zip(queries, priorities, strict=True)
            if one.latency is not None
        ]
        bound, urgent = min(bounds, default=(None, None))
        delays = (one.delay for one in priorities if one.delay is not None)
        weight = sum(one.share for one in priorities)
        by_itself = all(one.weight is None for one in priorities)
        return cls(queries, weight, bound, next(delays, None), urgent, by_itself)
