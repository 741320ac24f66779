"""The priority of a query: its share of the processor, and how late its answer may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.qos_graph import QosGraph
from headrace.time import Duration

USUAL_WEIGHT: Final = 1.0
"""The weight of a query of which nothing is said."""


@dataclass(frozen=True)
class Priority:
    """The wishes for a query, beside others (STREAM, section 2.4; Aurora, section 4).

    Attributes:
        weight: the share of the processor that it is due where there is not enough for all, beside those of
            others; 0 if it is to take no rows until it has another one. None where nothing was said: it goes
            with the others, and is put behind them only where it makes them late.
        bound: how late its answer may be after its rows have come (microseconds, with the unit in which that
            was said); None for any time.
        delay: what its answer is worth by how late it is (seconds); None where that is all the same.
    """

    weight: float | None = None
    bound: Duration | None = None
    delay: QosGraph | None = None

    @property
    def share(self) -> float:
        """Its weight beside others."""
        return USUAL_WEIGHT if self.weight is None else self.weight

    @property
    def latency(self) -> int | None:
        """The latest that its answer may be (microseconds); None for any time."""
        return None if self.bound is None else self.bound.length

    @property
    def clauses(self) -> list[str]:
        """The clauses of CREATE QUERY that say so."""
        return [*self._texts.values()]

    @property
    def _texts(self) -> dict[str, str]:
        """The clauses by their first words."""
        said = {} if self.weight is None else {"WEIGHT": f"WEIGHT {_text(self.weight)}"}
        said |= {} if self.bound is None else {"LATENCY": f"LATENCY {self.bound}"}
        if self.delay is not None:
            points = ", ".join(f"({_text(x)} SECONDS, {_text(utility)})" for x, utility in self.delay.points)
            said["QOS"] = f"QOS (DELAY {points})"
        return said

    def unlike(self, other: Priority) -> list[str]:
        """The clauses in which it differs from another one; with DEFAULT where it says nothing."""
        return [
            self._texts.get(word, f"{word} DEFAULT")
            for word in ("WEIGHT", "LATENCY", "QOS")
            if self._texts.get(word) != other._texts.get(word)
        ]


def _text(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


USUAL: Final = Priority()
"""That of a query of which nothing is said."""
