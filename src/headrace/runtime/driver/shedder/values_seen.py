"""The worth of the rows that came lately, by which it is known what a threshold leaves of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from headrace.algebra.nodes import SemanticDrop
from headrace.algebra.tunings.tunings import Tuning, tuning_of
from headrace.elements import Float64Array
from headrace.language.parsing.statements.losses import loss_from
from headrace.lowering.graph import Graph
from headrace.operators.semantic_drop import BANDS
from headrace.runtime.driver.facts.statistics import Statistics
from headrace.runtime.driver.shedder.policy import ShareKnob
from headrace.steps import WHOLE
from headrace.value_graph import ValueGraph

_BAND: Final = WHOLE // BANDS
"""So wide is a band of utility (millionths)."""


@dataclass(frozen=True, eq=False)
class ValuesSeen:
    """The rows that came lately to what leaves out some by their values, all of them, by what they are worth.

    Attributes:
        graph: what values are worth.
        worths: float64[2, BANDS + 2], the rows of each band and their utility; see `worths` of
            `headrace.operators.semantic_drop`.
    """

    graph: ValueGraph
    worths: Float64Array

    def share(self, threshold: int) -> int:
        """The share of the rows that are worth enough; all of no rows (millionths).

        Args:
            threshold: the least utility of a row that is kept (millionths).
        """
        return round(WHOLE * self._from(0, threshold))

    def utility(self, threshold: int) -> float:
        """The part of the utility of all rows that those have which are worth enough: from 0 to 1."""
        return self._from(1, threshold)

    def _from(self, line: int, threshold: int) -> float:
        """The part that is in the bands from a threshold on; inside a band rows are taken to come evenly."""
        above = self._above[line]
        place = threshold / _BAND
        return float(np.interp(place, np.arange(BANDS + 1), above[:-1]))

    @cached_property
    def _above(self) -> Float64Array:
        """float64[2, BANDS + 2]: of rows and of utility the part that is in each band and those above."""
        above = np.cumsum(self.worths[:, ::-1], axis=1)[:, ::-1]
        found: Float64Array = np.divide(above, above[:, :1], out=np.ones_like(above), where=above[:, :1] > 0)
        return found

    def knob(self, threshold: int, cost: float, queries: int = 1, drained: bool = True) -> ThresholdKnob:
        """The knob of the rows that are left out.

        Args:
            threshold: the one in force (millionths).
            cost, queries, drained: as of `ShareKnob`.
        """
        thresholds = self.thresholds(threshold)
        return ThresholdKnob(
            self.share(threshold),
            cost,
            lambda share: self.utility(thresholds[share]),
            queries,
            min(thresholds),
            drained,
            tuple(thresholds),
            thresholds,
        )

    def thresholds(self, present: int) -> dict[int, int]:
        """The thresholds that there are to choose from, by the shares of rows that they leave, falling.

        They are whole hundredths up to the largest utility of a value: what is worth most is kept. Of
        several that leave the same rows it is the smallest.

        Args:
            present: the one in force, which is among them (millionths).
        """
        most = self.graph.largest if self.worths.any() else 0
        found = {self.share(present): present}
        for threshold in range(0, most + 1, _BAND):
            found.setdefault(self.share(threshold), threshold)
        return dict(sorted(found.items(), reverse=True))


@dataclass(frozen=True)
class ThresholdKnob(ShareKnob):
    """A threshold that may change, as the share of the rows that are worth enough.

    Attributes:
        thresholds: the thresholds by the shares that they leave (millionths).
    """

    thresholds: Mapping[int, int] = field(default_factory=dict)

    def number(self, share: int) -> int:
        """The threshold that leaves a share (millionths)."""
        return self.thresholds[share]


def values_seen(graph: Graph, statistics: Statistics) -> dict[Tuning, ValuesSeen]:
    """The worth of the rows that came lately, by what says which of them are left out.

    Args:
        graph: the graph.
        statistics: what was counted of its operators.
    """
    found: dict[Tuning, Float64Array] = {}
    for node in graph.nodes:
        if isinstance(node.plan, SemanticDrop) and (tuning := tuning_of(node.plan)) is not None:
            known = found.setdefault(tuning, np.zeros((2, BANDS + 2)))
            found[tuning] = known + statistics.tallies.get(node.identity, 0.0)
    return {tuning: ValuesSeen(graph_of(tuning), worths) for tuning, worths in found.items()}


def graph_of(tuning: Tuning) -> ValueGraph:
    """The worth of values, of queries that leave out rows by it."""
    graph = loss_from(tuning.loss).values
    assert graph is not None
    return graph
