"""Aggregates of live values for which it matters how often each is there: MODE, TOP_K and those of bits."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.errors import ExecutionError
from headrace.expressions.aggregates.functions import top_of
from headrace.expressions.tree import AggregateCall
from headrace.kernels.values.inputs import CountChanges, KeyPoints
from headrace.kernels.values.multisets import common_bits, most_frequent

_BITS: Final = {"BIT_AND": 0, "BIT_OR": 1, "BIT_XOR": 2}
COUNTED: Final = ("MODE", "TOP_K", *_BITS)
"""Their names."""

_MOST_VALUES: Final = 2**27
"""So many values can the arrays of an epoch have in one task, so that their hashes fit into a column."""


def counted_values(
    calls: list[AggregateCall],
    values: pa.Array,
    changes: CountChanges,
    starts: Int64Array,
    points: KeyPoints,
) -> dict[AggregateCall, pa.Array]:
    """The aggregates at every point, NULL where there is no value.

    Args:
        calls: which ones.
        values: the value of each number.
        changes: of the values' counts.
        starts: where each key's numbers start.
        points: at which they are wanted.
    """
    result = {}
    for call in (call for call in calls if call.function == "TOP_K"):
        offsets, found, counts = most_frequent(changes, starts, points, top_of(call))
        result[call] = items_of(call, offsets, values.take(pa.array(found)), counts)
    offsets, one, _ = most_frequent(changes, starts, points, 1)
    present = np.diff(offsets) > 0
    found = np.full(len(present), -1, dtype=np.int64)
    found[present] = one
    for call in (call for call in calls if call.function == "MODE"):
        result[call] = values.take(pa.array(found, mask=found < 0))
    bits = [call for call in calls if call.function in _BITS]
    if bits:
        kinds = common_bits(changes, np.ascontiguousarray(integers(values)), points)
        result |= {call: pa.array(kinds[_BITS[call.function]], mask=found < 0) for call in bits}
    return result


def items_of(call: AggregateCall, offsets: Int64Array, items: pa.Array, counts: Int64Array) -> pa.ListArray:
    """Values with how often each is there, as TOP_K has them.

    Args:
        call: the aggregate.
        offsets: int64[m + 1], where each array starts.
        items: the values of all arrays.
        counts: int64[n], how often each is there.
    """
    fields = list(call.type.value_type)
    return arrays_of(offsets, pa.StructArray.from_arrays([items, pa.array(counts)], fields=fields))


def arrays_of(offsets: Int64Array, values: pa.Array) -> pa.ListArray:
    """Arrays of values.

    Args:
        offsets: int64[m + 1], where each starts.
        values: the values of all.

    Raises:
        ExecutionError: there are too many.
    """
    if len(values) > _MOST_VALUES:
        raise ExecutionError(
            f"the arrays of an epoch have {len(values)} values together, more than {_MOST_VALUES}",
            hint="aggregate fewer rows per group, or take smaller epochs",
        )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
