"""Evaluation of SHAPE_DISTANCE and DISCORD: how alike runs of numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Float64Array, Int64Array
from headrace.expressions.evaluation.casts import cast
from headrace.expressions.evaluation.values import Datum, Kernel, KernelResult, fine, rows_of, spread
from headrace.expressions.tree import Call
from headrace.kernels.values.shapes import discords, shape_distances
from headrace.nested import offsets_of
from headrace.schema import DOUBLE


def _columns(arguments: Sequence[Datum]) -> list[pa.Array]:
    count = rows_of(arguments)
    return [spread(argument, count) for argument in arguments]


def _null(column: pa.Array) -> BoolArray:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _sequences(column: pa.Array) -> tuple[Int64Array, Float64Array, BoolArray, BoolArray]:
    """Where the ARRAYs of a column begin, their values, and which have a NULL or what is not finite."""
    offsets = offsets_of(column).astype(np.int64)
    values, _ = cast(column.values, DOUBLE)
    missing = _null(values)
    numbers: Float64Array = np.ascontiguousarray(values.fill_null(0.0).to_numpy(zero_copy_only=False))
    odd = ~np.isfinite(numbers)
    return offsets, np.where(odd, 0.0, numbers), _any(offsets, missing), _any(offsets, odd)


def _any(offsets: Int64Array, flags: BoolArray) -> BoolArray:
    """Whether a flag of each ARRAY is set."""
    so_far = np.append(0, np.cumsum(flags))
    found: BoolArray = np.diff(so_far[offsets]) > 0
    return found


def _shape_distance(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, patterns = _columns(arguments)
    offsets, numbers, missing, odd = _sequences(values)
    pattern_offsets, others, lacking, strange = _sequences(patterns)
    found = shape_distances(offsets, numbers, pattern_offsets, others)
    return _answer(found, _null(values) | _null(patterns) | missing | lacking, odd | strange)


def _discord(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    values, lengths = _columns(arguments)
    offsets, numbers, missing, odd = _sequences(values)
    wanted = np.ascontiguousarray(lengths.fill_null(0).to_numpy(zero_copy_only=False))
    return _answer(discords(offsets, numbers, wanted), _null(values) | _null(lengths) | missing, odd)


def _answer(found: Float64Array, missing: BoolArray, odd: BoolArray) -> KernelResult:
    """NULL where something is missing or too short, and NaN where a number is not finite."""
    return fine(pa.array(np.where(odd, np.nan, found), DOUBLE, mask=missing | np.isnan(found)))


KERNELS: Final[dict[str, Kernel]] = {"SHAPE_DISTANCE": _shape_distance, "DISCORD": _discord}
