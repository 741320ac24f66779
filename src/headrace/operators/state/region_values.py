"""What an operator holds of regions beside sums: the values that there are at each of their instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array
from headrace.operators.state.live_elements import LiveElements, Rows
from headrace.operators.state.regions import Regions
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.state.timeline import Changes, append_changes


@dataclass(frozen=True, eq=False)
class Values:
    """Elements with values, none of them a retraction.

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
    def of(cls, rows: Rows) -> Values:
        """The elements of a batch that count."""
        kept = pa.array(rows.kept)
        keys, columns = ([column.take(kept) for column in part] for part in (rows.keys, rows.columns))
        return cls(keys, columns, rows.ts[rows.kept], rows.te[rows.kept], rows.w[rows.kept])

    def then(self, more: Values) -> Values:
        """These elements, and others behind them."""
        keys, columns = (
            [pa.concat_arrays(pair) for pair in zip(*pairs, strict=True)]
            for pairs in ((self.keys, more.keys), (self.columns, more.columns))
        )
        times = ((self.ts, more.ts), (self.te, more.te), (self.w, more.w))
        return Values(keys, columns, *(np.concatenate(pair) for pair in times))


def none(values: Values) -> Values:
    """No elements, with the columns of others."""
    keys, columns = ([column.slice(0, 0) for column in part] for part in (values.keys, values.columns))
    return Values(keys, columns, *(part[:0] for part in (values.ts, values.te, values.w)))


@dataclass(frozen=True, eq=False)
class RegionValues:
    """Values of some regions, each cut to its region.

    Attributes:
        values: the elements.
        codes: int64[n], the region of each.
        starts: int64[r], when the regions begin (instants).
    """

    values: Values
    codes: Int64Array
    starts: Int64Array

    def until(self, ends: Int64Array, as_at_start: BoolArray) -> Values:
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
        return Values(keys, columns, known.ts[kept], np.minimum(known.te, limits)[kept], known.w[kept])


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
    return RegionValues(Values(own, columns, ts, te, w), codes, regions.starts)


def entering(changes: Changes, values: Sequence[Values]) -> tuple[Changes, list[Rows]]:
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
        changes = append_changes(changes, Changes(part.keys, part.ts, part.te, none))
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
        found.append(Rows(changes.keys, columns, kept, changes.ts, changes.te, w))
        first += len(part.ts)
    return changes, found
