"""The rows that a timeline of sums has taken in, read off the instants at which they leave it.

Where each row stays for as many instants as every other, what leaves at an instant has entered so many
instants before. So a timeline tells what entered at each of the instants that its window reaches back to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Int64Array, integers
from headrace.kernels.instants.timeline import add_by_code
from headrace.operators.state.keys import encode_keys, hash_rows
from headrace.operators.state.runs import TIME
from headrace.operators.state.sum_columns import SumColumns, concat_sums, sums_of
from headrace.operators.state.sweep_area import Layout


@dataclass(frozen=True, eq=False)
class Entered:
    """Sums of keys at instants.

    Attributes:
        keys: normalised key columns, n rows.
        times: the instants; int64[n].
        sums: n rows, column 0 the row count.
    """

    keys: list[pa.Array]
    times: Int64Array
    sums: SumColumns

    def where(self, mask: BoolArray) -> Entered:
        """Those of some rows."""
        kept = np.flatnonzero(mask)
        keys = [column.take(pa.array(kept)) for column in self.keys]
        return Entered(keys, self.times[kept], SumColumns(self.sums.values[kept], self.sums.limbs))


def entered(changes: pa.RecordBatch, layout: Layout, horizon: int, size: int) -> Entered:
    """The rows that entered at each instant of a timeline all of whose rows stay equally long.

    What changes at t is what enters at t less what entered at t - size, and at the last of these instants
    nothing enters. So it is found from the last one back.

    Args:
        changes: of the timeline, in any order, also below its horizon.
        layout: their columns.
        horizon: of the timeline (instant).
        size: for how long each row stays (instants).

    Returns:
        What entered from the instant `horizon - size` on; each key at most once at an instant.
    """
    times = integers(changes.column(TIME))
    keys = [changes.column(name) for name in layout.keys]
    left = Entered(keys, times, sums_of(changes, layout.ints)).where(times >= horizon)
    found, later = [], left.where(np.zeros(len(left.times), dtype=np.bool_))
    while len(left.times) or len(later.times):
        top = max(int(part.times.max()) for part in (left, later) if len(part.times))
        near = left.times > top - size
        later = _before(left.where(near), later, size)
        left = left.where(~near)
        found.append(later)
        later = later.where(later.times >= horizon)
    return _joined(found) if found else left


def _before(changes: Entered, entering: Entered, size: int) -> Entered:
    """The rows that entered so many instants before some changes.

    Args:
        changes: at instants less than `size` apart.
        entering: what enters at these.
        size: for how long it stays (instants).
    """
    taken = Entered(changes.keys, changes.times, SumColumns(-changes.sums.values, changes.sums.limbs))
    both = _joined([taken, entering])
    times = both.times - size
    columns = [*both.keys, pa.array(times)]
    codes = encode_keys(columns, hash_rows(columns, len(times)))
    sums = add_by_code(codes.codes, both.sums.values, len(codes))
    kept = pa.array(codes.first)
    keys = [column.take(kept) for column in both.keys]
    found = Entered(keys, times[codes.first], SumColumns(sums, both.sums.limbs))
    return found.where(np.asarray(sums.any(axis=1), dtype=np.bool_))


def _joined(parts: list[Entered]) -> Entered:
    """All parts, in order."""
    keys = [pa.concat_arrays(columns) for columns in zip(*(part.keys for part in parts), strict=True)]
    times = np.concatenate([part.times for part in parts])
    return Entered(keys, times, concat_sums([part.sums for part in parts]))
