"""The priority of a query: its share of the processor, and how late its answer may be."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.qos_graph import QosGraph

USUAL_WEIGHT = 1.0
"""The weight of a query of which nothing is said."""


@dataclass(frozen=True)
class Priority:
    """What is asked of a run for a query, beside others.

    Attributes:
        weight: the share of the processor that it is due where there is not enough for all, beside those of
            others; 0 if it is to take no rows until it has another one. None where nothing was said: it goes
            with the others, and is put behind them only where it makes them late.
        latency: how late its answer may be after its rows have come (microseconds); None for any time.
        delay: what its answer is worth by how late it is (seconds); None where that is all the same.
    """

    weight: float | None = None
    latency: int | None = None
    delay: QosGraph | None = None

    @property
    def share(self) -> float:
        """Its weight beside others."""
        return USUAL_WEIGHT if self.weight is None else self.weight


USUAL = Priority()
"""That of a query of which nothing is said."""
