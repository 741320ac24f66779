"""Aggregates over all rows so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Aggregate, Over, Source
from headrace.elements import Batch, Int64Array, integers, take_rows
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.tree import AggregateCall
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.time import INFINITY, TimeDomain

_COUNT: Final = "__n"


@dataclass(frozen=True, eq=False)
class Entering:
    """What enters the frames of some new rows.

    Attributes:
        payload: rows.
        rows: int64[n], for each new row the one of these that enters its partition's frame with it, or -1.
    """

    payload: pa.RecordBatch
    rows: Int64Array


class RunningRows:
    """Aggregates over all rows of a partition from the first one on.

    They are a grouped aggregation of rows that stay for ever, whose time counts the rows of the bucket: with
    each new row something happens at an instant of its own, and the answer for it is the group's from there.

    Args:
        node: the partitions.
        calls: the aggregates.
        report: receives what fails.
    """

    def __init__(self, node: Over, calls: list[AggregateCall], report: Report) -> None:
        rows = Source("rows", node.input.schema, "", TimeDomain.INTEGER)
        keys = tuple((f"k{place}", key) for place, key in enumerate(node.keys))
        named = tuple((f"a{place}", call) for place, call in enumerate(calls))
        self._node = Aggregate(rows, keys, named)
        self._sums = AggregateOperator(self._node, combined=False, insert_only=True, report=report)
        self._clock = SweepArea(Layout((), ints=(_COUNT,), netting=Netting.REPLACE))

    @property
    def areas(self) -> dict[str, Area]:
        """How many rows there were, and the aggregation's state."""
        return {"clock": self._clock} | {f"running_{name}": area for name, area in self._sums.areas.items()}

    def step(self, entering: Entering) -> list[pa.Array]:
        """One column per aggregate, for each new row.

        Args:
            entering: what enters with each of them; those of a partition come in their order.
        """
        count = len(entering.rows)
        now = self._advance_clock(count)
        there = np.flatnonzero(entering.rows >= 0)
        forever, ones = np.full(len(there), INFINITY), np.ones(len(there), dtype=np.int64)
        self._sums.process(
            0, Batch(take_rows(entering.payload, entering.rows[there]), now + there, forever, ones)
        )
        found = self._sums.advance(OperatorProgress((now,), (now + count,)))
        # Chronons are not coalesced: every row that enters has a segment that starts with it.
        fresh = np.flatnonzero((found.w > 0) & (found.ts >= now))
        places = np.full(count, -1, dtype=np.int64)
        places[found.ts[fresh] - now] = fresh
        indices = pa.array(places, mask=places < 0)
        width = len(self._node.keys)
        return [
            or_nothing(found.payload.column(width + number).take(indices), call)
            for number, (_, call) in enumerate(self._node.aggregates)
        ]

    def _advance_clock(self, count: int) -> int:
        """How many rows there were before; so many more come."""
        _, rows = self._clock.gather(np.zeros(1, dtype=np.int64), [])
        now = 0 if rows is None else int(integers(rows.column(_COUNT))[-1])
        self._clock.insert({HASH: pa.array([0]), TIME: pa.array([0]), _COUNT: pa.array([now + count])})
        self._clock.expire(0)
        return now


def or_nothing(values: pa.Array, call: AggregateCall) -> pa.Array:
    """The values of an aggregate, with what it is over no rows in the place of NULL."""
    nothing = function_of(call).of_nothing
    return values if nothing is None else values.fill_null(pa.scalar(nothing, values.type))
