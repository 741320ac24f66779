"""What an operator holds of regions beside sums: the values that there are at each of their instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, integers
from headrace.kernels.rows.joins import sorted_ranges
from headrace.operators.state.keys import encode_keys, hash_rows, order_by
from headrace.operators.state.live_elements import COUNT, LiveElements, LiveRows
from headrace.operators.state.marks import spread
from headrace.operators.state.regions import Regions
from headrace.operators.state.runs import TIME
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.sweep_area import SweepArea
from headrace.operators.state.timeline import TimelineInput, append_changes
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True, eq=False)
class ValuedElements:
    """Elements with values.

    Attributes:
        keys: normalised key columns, n rows.
        columns: the columns of the values, n rows.
        ts, te, w: int64[n].
    """

    keys: list[pa.Array]
    columns: list[pa.Array]
    ts: Int64Array
    te: Int64Array
    w: Int64Array

    @classmethod
    def of(cls, rows: LiveRows) -> ValuedElements:
        """The elements of a batch that count."""
        kept = pa.array(rows.kept)
        keys, columns = ([column.take(kept) for column in part] for part in (rows.keys, rows.columns))
        return cls(keys, columns, rows.ts[rows.kept], rows.te[rows.kept], rows.w[rows.kept])

    def then(self, more: ValuedElements) -> ValuedElements:
        """These elements, and others behind them."""
        keys, columns = (
            [pa.concat_arrays(pair) for pair in zip(*pairs, strict=True)]
            for pairs in ((self.keys, more.keys), (self.columns, more.columns))
        )
        times = ((self.ts, more.ts), (self.te, more.te), (self.w, more.w))
        return ValuedElements(keys, columns, *(np.concatenate(pair) for pair in times))


def none(values: ValuedElements) -> ValuedElements:
    """No elements, with the columns of others."""
    keys, columns = ([column.slice(0, 0) for column in part] for part in (values.keys, values.columns))
    return ValuedElements(keys, columns, *(part[:0] for part in (values.ts, values.te, values.w)))


@dataclass(frozen=True, eq=False)
class RegionValues:
    """Values of some regions, each cut to its region.

    Attributes:
        values: the elements.
        codes: int64[n], the region of each.
        starts: int64[r], when the regions begin (instants).
    """

    values: ValuedElements
    codes: Int64Array
    starts: Int64Array

    def until(self, ends: Int64Array, as_at_start: BoolArray) -> ValuedElements:
        """What there is of it up to other ends of the regions.

        Args:
            ends: int64[r], no later than those of the regions (instants).
            as_at_start: bool[r], of which regions only those count that are there at the start.
        """
        known, limits = self.values, ends[self.codes]
        counted = ~as_at_start[self.codes] | (known.ts == self.starts[self.codes])
        kept = np.flatnonzero((known.ts < limits) & counted)
        rows = pa.array(kept)
        keys, columns = ([column.take(rows) for column in part] for part in (known.keys, known.columns))
        return ValuedElements(
            keys, columns, known.ts[kept], np.minimum(known.te, limits)[kept], known.w[kept]
        )


def values_of(elements: LiveElements, regions: Regions) -> RegionValues | None:
    """What some elements are in regions; None where none is valid there.

    Args:
        elements: those of an operator, at some heartbeat.
        regions: none begins more than an instant before the heartbeat.
    """
    rows = pa.array(regions.codes)
    keys, hashes = [key.take(rows) for key in regions.keys], regions.hashes[regions.codes]
    found = elements.overlapping(hashes, keys, regions.starts, regions.ends)
    if found is None:
        return None
    codes, columns, (ts, te, w) = found
    own = [key.take(pa.array(codes)) for key in keys]
    ts, te = np.maximum(ts, regions.starts[codes]), np.minimum(te, regions.ends[codes])
    return RegionValues(ValuedElements(own, columns, ts, te, w), codes, regions.starts)


def counted_values_of(area: SweepArea, regions: Regions) -> RegionValues | None:
    """The same of an area that keeps when the counts of values change.

    A count at an instant is what all changes up to it add up to, so those of the regions' keys are read from
    the first one on, once for each key.

    Args:
        area: that of an operator, at some heartbeat.
        regions: none begins more than an instant before the heartbeat.
    """
    limits = np.full(len(regions.hashes), BEGINNING, dtype=np.int64)
    np.maximum.at(limits, regions.codes, regions.ends)
    codes, rows = area.between(
        regions.hashes, regions.keys, np.full(len(limits), BEGINNING, dtype=np.int64), limits
    )
    if rows is None:
        return None
    places, (ts, te, w) = _lasting(area, codes, rows)
    code = codes[places]
    # The regions of a key are in order and do not meet.
    lows, _ = sorted_ranges(regions.codes, regions.ends, code, ts + 1, np.full(len(ts), INFINITY))
    _, highs = sorted_ranges(regions.codes, regions.starts, code, np.full(len(ts), BEGINNING), te)
    elements, found = spread(lows, np.maximum(lows, highs))
    stored, own = pa.array(places[elements]), pa.array(regions.codes[found])
    keys = [key.take(own) for key in regions.keys]
    columns = [rows.column(name).take(stored) for name in area.layout.same]
    ts, te = np.maximum(ts[elements], regions.starts[found]), np.minimum(te[elements], regions.ends[found])
    return RegionValues(ValuedElements(keys, columns, ts, te, w[elements]), found, regions.starts)


def _lasting(
    area: SweepArea, codes: Int64Array, rows: pa.RecordBatch
) -> tuple[Int64Array, tuple[Int64Array, Int64Array, Int64Array]]:
    """Changes of counts as elements, from each change of a value to its next one.

    Args:
        area: where they are from.
        codes: int64[n], the key of each.
        rows: the changes.

    Returns:
        For each element a row that has its value, and starts, ends and counts; int64[m] each.
    """
    identity = [pa.array(codes), *(rows.column(name) for name in area.layout.same)]
    values = encode_keys(identity, hash_rows(identity, len(codes)))
    times = integers(rows.column(TIME))
    order = order_by(values.codes, times, len(values))
    value, starts = values.codes[order], times[order]
    last = np.append(value[1:] != value[:-1], True)
    ends = np.where(last, INFINITY, np.append(starts[1:], INFINITY))
    sums = np.cumsum(integers(rows.column(COUNT))[order])
    before = np.append(0, sums[np.flatnonzero(last)])[np.cumsum(last) - last]
    counts = sums - before
    kept = np.flatnonzero((counts != 0) & (starts < ends))
    return order[kept], (starts[kept], ends[kept], counts[kept])


def entering(
    changes: TimelineInput, values: Sequence[ValuedElements]
) -> tuple[TimelineInput, list[LiveRows]]:
    """Values beside changes, as elements that add nothing to the sums.

    Args:
        changes: what enters a timeline.
        values: by ordering.

    Returns:
        The changes with all values, and the values as rows of them.
    """
    first = len(changes.ts)
    for part in values:
        width = changes.sums.values.shape[1]
        none = SumColumns(np.zeros((len(part.ts), width), dtype=np.int64), changes.sums.limbs)
        changes = append_changes(changes, TimelineInput(part.keys, part.ts, part.te, none))
    found = []
    for part in values:
        behind = len(changes.ts) - first - len(part.ts)
        columns = [
            pa.concat_arrays([pa.nulls(first, one.type), one, pa.nulls(behind, one.type)])
            for one in part.columns
        ]
        w = np.zeros(len(changes.ts), dtype=np.int64)
        w[first : first + len(part.ts)] = part.w
        kept = np.arange(first, first + len(part.ts))
        found.append(LiveRows(changes.keys, columns, kept, changes.ts, changes.te, w))
        first += len(part.ts)
    return changes, found
