"""The clause of a query that says that rows may be left out of its answer: how much loss it bears."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from statistics import NormalDist
from typing import Final

from headrace.errors import Position
from headrace.steps import WHOLE, share_text

CONFIDENCE: Final = Decimal(95)
"""In so many windows of a hundred bounds hold if nothing else is said."""


@dataclass(frozen=True)
class Loss:
    """`LOSS TOLERANT [(share: utility, ...)] [CONFIDENCE p]`: rows of a query's streams may be left out.

    Attributes:
        graph: shares of the rows that are kept, rising (millionths), each with what an answer of them is
            worth, from 0 to 1, which does not fall. Between two points it is on the line through them; of no
            rows it is 0, and of all of them 1, where the graph says nothing else (Aurora's loss graph).
        confidence: in so many windows of a hundred the bounds of estimates hold.
        position: of the clause.
    """

    graph: tuple[tuple[int, Decimal], ...] = ()
    confidence: Decimal = CONFIDENCE
    position: Position | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The clause from which the parser makes it again."""
        points = ", ".join(f"{share_text(share)}: {utility.normalize():f}" for share, utility in self.graph)
        sure = "" if self.confidence == CONFIDENCE else f" CONFIDENCE {self.confidence.normalize():f}"
        return f"LOSS TOLERANT{f' ({points})' if points else ''}{sure}"

    def utility(self, share: int) -> float:
        """The worth of an answer of which a share of the rows is kept: from 0 to 1.

        Args:
            share: the share (millionths).
        """
        last = () if self.graph and self.graph[-1][0] == WHOLE else ((WHOLE, Decimal(1)),)
        begin, low = 0, Decimal(0)
        for end, high in (*self.graph, *last):
            if share <= end:
                return float(low + (high - low) * (share - begin) / (end - begin))
            begin, low = end, high
        return float(low)

    @property
    def deviations(self) -> float:
        """The number of standard errors from an estimate to its bound, by the normal distribution."""
        return NormalDist().inv_cdf((1 + float(self.confidence) / 100) / 2)
