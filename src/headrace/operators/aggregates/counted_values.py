"""Aggregates of live values for which it matters how often each is there: MODE and those of bits."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.expressions.tree import AggregateCall
from headrace.kernels.values.inputs import CountChanges, KeyPoints
from headrace.kernels.values.multisets import common_bits, most_frequent

_BITS: Final = {"BIT_AND": 0, "BIT_OR": 1, "BIT_XOR": 2}
COUNTED: Final = ("MODE", *_BITS)
"""Their names."""


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
    found = most_frequent(changes, starts, points)
    result = {}
    for call in (call for call in calls if call.function == "MODE"):
        result[call] = values.take(pa.array(found, mask=found < 0))
    bits = [call for call in calls if call.function in _BITS]
    if bits:
        kinds = common_bits(changes, np.ascontiguousarray(integers(values)), points)
        result |= {call: pa.array(kinds[_BITS[call.function]], mask=found < 0) for call in bits}
    return result
