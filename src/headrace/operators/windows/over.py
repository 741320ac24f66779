"""Aggregates over the last rows before each row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Aggregate, OverRows, RowWindow, Source, column
from headrace.elements import Batch, Int64Array, concat, concat_rows, integers, record_batch, take_rows
from headrace.expressions.tree import expressions_of
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.contract import Progress, Report
from headrace.operators.state.runs import Area
from headrace.operators.windows.rows import NUMBER, KeptRows, NumberedRows, RowWindowOperator, number_rows
from headrace.operators.windows.running import Entering, RunningRows, or_nothing
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain

_PARTITION = "__partition"


class OverRowsOperator(RowWindowOperator):
    """Every row with aggregates over rows before it (row window family; SQL's OVER with ROWS).

    Definition:
        At t, every row of `M(t)` with the aggregates over those rows of its partition that are `first` to
        `last` places before it. Rows are in the order of instant and payload, as in a row window.

    Retractions:
        Cancel a row that waits above the heartbeat. Below it all rows are known, and answered once.

    State:
        The rows above the heartbeat; and per partition, for ever, since the partition may come again, its
        last `first` rows; of a frame that starts with the first row ever its last `last` rows and what the
        aggregates keep of the others.

    The aggregates are those of a grouped aggregation whose time is a row's place: the row at place i is valid
    from i + last to i + first, and the answer for a row is the group's at the row's place. `RunningRows` has
    the frames without a first row.

    Example:
        `SUM(x) OVER (ROWS 1 PRECEDING)`, heartbeat 9:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x, sum [ts,te)  w
        ====== ======= ==        ====== ======= ==
        5      [1,2)    +        5, 5   [1,2)    +
        2      [3,4)    +        2, 7   [3,4)    +
        1      [7,8)    +        1, 3   [7,8)    +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: OverRows, report: Report) -> None:
        kept = node.last if node.first is None else node.first
        super().__init__(RowWindow(node.input, max(kept, 1), keys=node.keys))
        self._over = node
        self._report = report
        self._running = None if node.first is not None or _counts(node) else RunningRows(node, report)

    @property
    def areas(self) -> dict[str, Area]:
        """The rows above the heartbeat, the last ones of each partition, and what running aggregates keep."""
        return super().areas | (self._running.areas if self._running is not None else {})

    def advance(self, progress: Progress) -> Batch:
        """The rows below the new heartbeat, each with its aggregates."""
        batch = self._due(*progress.window)
        if not len(batch):
            return concat(self._over.schema, [])
        new = number_rows(batch, self._keys(batch))
        old = self._kept(new)
        places = np.arange(len(new.rows)) - np.repeat(new.starts[:-1], np.diff(new.starts))
        partitions = np.repeat(np.arange(len(old.counts)), np.diff(new.starts))
        columns = self._aggregates(batch, new, old, (partitions, places))
        if self._over.peers:
            columns = [values.take(pa.array(_last_peers(new))) for values in columns]
        numbers = old.counts[partitions] + places + 1
        stay = np.flatnonzero(new.starts[1:][partitions] - np.arange(len(places)) <= self._node.rows)
        self._keep(batch.take(new.rows[stay]), numbers[stay])
        rows = batch.take(new.rows)
        payload = record_batch([*rows.payload.columns, *columns], self._over.schema, len(rows))
        return Batch(payload, rows.ts, rows.te, np.ones(len(rows), dtype=np.int64))

    def _aggregates(
        self, batch: Batch, new: NumberedRows, old: KeptRows, at: tuple[Int64Array, Int64Array]
    ) -> list[pa.Array]:
        """One column per aggregate, for the new rows."""
        partitions, places = at
        if self._running is not None:
            return self._running.step(self._entering(batch, new, old, at))
        if self._over.first is None:
            counts = old.counts[partitions] + places + 1 - self._over.last
            return [pa.array(np.maximum(counts, 0)) for _ in self._over.aggregates]
        # Places count from the first new row of each partition on; kept rows come before it.
        found = self._grouped(batch, new, old, at)
        reach = np.int64(len(places) + 2 * self._over.first + 2)
        starts = integers(found.payload.column(_PARTITION)) * reach + found.ts
        order = np.argsort(starts, kind="stable")
        wanted = partitions * reach + places
        segment = np.searchsorted(starts[order], wanted, side="right") - 1
        rows = order[np.maximum(segment, 0)] if len(order) else np.zeros(len(wanted), dtype=np.int64)
        outside = segment < 0
        if len(order):
            ends = starts[rows] + found.te[rows] - found.ts[rows]
            outside |= wanted >= ends
        indices = pa.array(rows, mask=outside)
        result = []
        for place, (_, call) in enumerate(self._over.aggregates):
            result.append(or_nothing(found.payload.column(place + 1).take(indices), call))
        return result

    def _entering(
        self, batch: Batch, new: NumberedRows, old: KeptRows, at: tuple[Int64Array, Int64Array]
    ) -> Entering:
        """For each new row the row that enters its frame with it: the one `last` places before it."""
        partitions, places = at
        payload, kept = take_rows(batch.payload, new.rows), np.diff(old.starts)
        if old.rows is not None:
            payload = concat_rows([self._payload_of(old.rows), payload])
        back = places - self._over.last
        ours = new.starts[partitions] + back + len(old)
        before = old.starts[partitions] + kept[partitions] + back
        rows = np.where(back >= 0, ours, np.where(back >= -kept[partitions], before, -1))
        return Entering(payload, rows)

    def _grouped(
        self, batch: Batch, new: NumberedRows, old: KeptRows, at: tuple[Int64Array, Int64Array]
    ) -> Batch:
        """The aggregates of each partition at every place of a new row."""
        partitions, places = at
        payload = take_rows(batch.payload, new.rows)
        if old.rows is not None and old.rows.num_rows:
            before = np.repeat(np.arange(len(old.counts)), np.diff(old.starts))
            numbers = integers(old.rows.column(NUMBER))
            places = np.concatenate([numbers - old.counts[before] - 1, places])
            partitions = np.concatenate([before, partitions])
            payload = concat_rows([self._payload_of(old.rows), payload])
        assert self._over.first is not None
        fields = tuple(Field(f"p{place}", field.type) for place, field in enumerate(self._over.input.schema))
        schema = Schema((*fields, Field(_PARTITION, BIGINT)))
        rows = Source("rows", schema, "", TimeDomain.INTEGER)
        node = Aggregate(rows, ((_PARTITION, column(rows, len(fields))),), self._over.aggregates)
        operator = AggregateOperator(node, combined=False, insert_only=True, report=self._report)
        columns = record_batch([*payload.columns, pa.array(partitions)], schema, len(places))
        ones = np.ones(len(places), dtype=np.int64)
        ts, te = places + self._over.last, places + self._over.first + 1
        operator.process(0, Batch(columns, ts, te, ones))
        return operator.advance(Progress((BEGINNING,), (INFINITY,)))


def _counts(node: OverRows) -> bool:
    """Whether the rows' numbers suffice for everything that is asked for."""
    return all(call.function == "COUNT" and not expressions_of(call) for _, call in node.aggregates)


def _last_peers(new: NumberedRows) -> Int64Array:
    """For each row the last one of its partition and instant; int64[n]."""
    partitions = np.repeat(np.arange(len(new.starts) - 1), np.diff(new.starts))
    fresh = np.ones(len(new.times), dtype=np.bool_)
    fresh[1:] = (np.diff(partitions) != 0) | (np.diff(new.times) != 0)
    peers = np.cumsum(fresh)
    last: Int64Array = np.searchsorted(peers, peers, side="right") - 1
    return last
