"""Evaluation of SEQUENCE and GENERATE_SERIES: numbers from one to another as an ARRAY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray, Int64Array
from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    check_size,
    failing,
    rows_of,
    spread,
)
from headrace.expressions.tree import Call
from headrace.schema import BIGINT

MAX_VALUES: Final = 10_000
"""How many values SEQUENCE and GENERATE_SERIES make at most."""

NO_STEP: Final = "the step is 0"
LEADS_AWAY: Final = "the step does not lead from the start to the end"
TOO_MANY: Final = f"an ARRAY of more than {MAX_VALUES:,} values"


def _series(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """GENERATE_SERIES: by 1 if nothing is said, and nothing where the step leads away."""
    start, stop, step, known = _given(arguments)
    there = np.where(step > 0, start <= stop, stop <= start) & (step != 0)
    counts = _counts(start, stop, step, there & known)
    return _listed(call, start, step, counts, known, NO_STEP, step == 0)


def _sequence(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """SEQUENCE: towards the end if nothing is said; a step that leads away fails (Spark)."""
    start, stop, step, known = _given(arguments)
    if len(arguments) == 2:
        step = np.where(start <= stop, 1, -1)
    there = (start == stop) | (np.where(step > 0, start < stop, stop < start) & (step != 0))
    counts = _counts(start, stop, step, there & known)
    return _listed(call, start, step, counts, known, LEADS_AWAY, ~there)


def _given(arguments: Sequence[Datum]) -> tuple[Int64Array, Int64Array, Int64Array, BoolArray]:
    """The start, the end and the step, which is 1 where none is given, and whether none of them is NULL."""
    count = rows_of(arguments)
    columns = [spread(argument, count) for argument in arguments]
    nulls = [np.asarray(column.is_null().to_numpy(zero_copy_only=False)) for column in columns]
    values = [np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64) for column in columns]
    step = values[2] if len(values) > 2 else np.ones(count, dtype=np.int64)
    return values[0], values[1], step, ~np.logical_or.reduce(nulls)


def _counts(start: Int64Array, stop: Int64Array, step: Int64Array, there: BoolArray) -> Int64Array:
    """How many values there are, one more than the limit if there are more than that."""
    # Differences of 64-bit numbers have 64 bits without a sign.
    low, high = np.minimum(start, stop).view(np.uint64), np.maximum(start, stop).view(np.uint64)
    size = np.where(step < 0, ~step.view(np.uint64) + np.uint64(1), step.view(np.uint64))
    more = (high - low) // np.maximum(size, np.uint64(1))
    return np.where(there, np.minimum(more, np.uint64(MAX_VALUES)).astype(np.int64) + 1, 0)


def _listed(
    call: Call,
    start: Int64Array,
    step: Int64Array,
    counts: Int64Array,
    known: BoolArray,
    reason: str,
    wrong: BoolArray,
) -> KernelResult:
    """The ARRAYs, and the rows that fail for a reason or since there are too many values."""
    many = counts > MAX_VALUES
    counts = np.where(many, 0, counts)
    check_size(8 * int(counts.sum()))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    values = np.repeat(start, counts) + np.repeat(step, counts) * within
    found: pa.Array = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, BIGINT))
    found = pc.if_else(pa.array(known), found.cast(call.type), pa.scalar(None, call.type))
    found, failed = failing(found, wrong & known, reason)
    found, longer = failing(found, many, TOO_MANY)
    return found, (*failed, *longer)


KERNELS: Final[dict[str, Kernel]] = {"SEQUENCE": _sequence, "GENERATE_SERIES": _series}
