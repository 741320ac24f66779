"""The clause of a query that says that rows may be left out of its answer: how much loss it bears."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from statistics import NormalDist
from typing import Final

from headrace.byte_sizes import exact_bytes
from headrace.errors import Position
from headrace.qos_graph import QosGraph
from headrace.schema import quote
from headrace.steps import WHOLE, share_text
from headrace.value_graph import ValueGraph

CONFIDENCE: Final = Decimal(95)
"""In so many windows of a hundred bounds hold if nothing else is said."""

LEAST_MEMORY: Final = 10_000
"""So much a query's joins may keep at least (bytes): some rows of each side."""


@dataclass(frozen=True)
class Loss:
    """A clause of a query by which rows of its streams may be left out.

    That is `LOSS TOLERANT [(share: utility, ...)] [CONFIDENCE p]`, `LOSS TOLERANT BY column (value: utility,
    ...)`, `WITHIN p PERCENT [CONFIDENCE p]`, or `WITHIN MEMORY 'size'`.

    Attributes:
        graph: shares of the rows that are kept, rising (millionths), each with what an answer of them is
            worth, from 0 to 1, which does not fall. Between two points it is on the line through them; of no
            rows it is 0, and of all of them 1, where the graph says nothing else (Aurora's loss graph).
        confidence: in so many windows of a hundred the bounds of estimates hold.
        tolerance: so far from an estimate its bounds may be (percent of it), by which rows are left out only
            as long as they are not further; None for any loss.
        memory: so much its joins may keep, which remember no more rows than that (bytes); None where it is
            not limited.
        values: what rows are worth by their values, of which those of least utility are left out; None where
            it is not by values.
        position: of the clause.
    """

    graph: tuple[tuple[int, Decimal], ...] = ()
    confidence: Decimal = CONFIDENCE
    tolerance: Decimal | None = None
    memory: int | None = None
    values: ValueGraph | None = None
    position: Position | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The clause from which the parser makes it again."""
        points = ", ".join(f"{share_text(share)}: {utility.normalize():f}" for share, utility in self.graph)
        sure = "" if self.confidence == CONFIDENCE else f" CONFIDENCE {self.confidence.normalize():f}"
        if self.values is not None:
            return f"LOSS TOLERANT BY {quote(self.values.column)} {self.values.text}"
        if self.memory is not None:
            return f"WITHIN MEMORY '{exact_bytes(self.memory)}'"
        if self.tolerance is not None:
            return f"WITHIN {self.tolerance.normalize():f} PERCENT{sure}"
        return f"LOSS TOLERANT{f' ({points})' if points else ''}{sure}"

    def utility(self, share: int) -> float:
        """The worth of an answer of which a share of the rows is kept: from 0 to 1.

        Args:
            share: the share (millionths).
        """
        return self._qos.at(share / WHOLE)

    @cached_property
    def _qos(self) -> QosGraph:
        """The graph with its ends: no rows are worth 0, and all of them 1 where it does not say less."""
        points = [(0.0, 0.0), *((share / WHOLE, float(utility)) for share, utility in self.graph)]
        return QosGraph((*points, *([] if points[-1][0] == 1 else [(1.0, 1.0)])), "loss")

    def width_at(self, width: float, share: int, other: int) -> float:
        """About how far the bounds of an estimate are from it if another share is kept.

        The variance of what is estimated of a share p of the rows grows with (1 - p) / p.

        Args:
            width: how far they are, in any unit.
            share: the share of which that was measured, below all (millionths).
            other: the other share (millionths).
        """
        return width * math.sqrt(_odds(other) / _odds(share))

    def least(self, width: float, share: int, part: float = 1.0) -> int:
        """The smallest share with which bounds are expected to be within the tolerance (millionths).

        Args:
            width: how far they are from the estimate, in parts of it.
            share: the share of which that was measured, below all (millionths).
            part: only so much of the tolerance is used.
        """
        if self.tolerance is None or width == 0:
            return 1
        odds = _odds(share) * (part * float(self.tolerance) / 100 / width) ** 2
        return min(WHOLE, math.ceil(WHOLE / (1 + odds)))

    @property
    def deviations(self) -> float:
        """The number of standard errors from an estimate to its bound, by the normal distribution."""
        return NormalDist().inv_cdf((1 + float(self.confidence) / 100) / 2)


def _odds(share: int) -> float:
    """The number of rows that are left out for one that is kept."""
    return (WHOLE - share) / share
