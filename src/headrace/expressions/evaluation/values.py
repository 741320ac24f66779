"""What the evaluation of an expression works with: columns or constants, and which rows failed and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray
from headrace.expressions.tree import Call
from headrace.schema import sql_type

Datum = Any
"""A `pyarrow.Array`, or a `pyarrow.Scalar` that represents as many equal rows as are needed."""

Failures = tuple[tuple[str, BoolArray], ...]
"""Reasons with the rows that failed for them; no row is in two masks."""

KernelResult = tuple[Datum, Failures]
"""What a kernel gives: values, NULL where the row failed, and the failures it found itself."""

Kernel = Callable[[Call, Sequence[Datum]], KernelResult]
"""Computes a call from its arguments, at least one of them an Array; rows that failed are NULL there."""

DIVISION_BY_ZERO: Final = "division by zero"
BIGINT_OVERFLOW: Final = "BIGINT overflow"
DECIMAL_OVERFLOW: Final = "DECIMAL overflow"


MOST_AT_ONCE: Final = 2**25
"""So many bytes a function makes at most for the rows that are computed together."""


class LargeValuesError(MemoryError):
    """Values of some rows that take too much memory together; fewer rows may do."""


def check_size(size: int) -> None:
    """See that the values that a function is about to make are not too large together.

    Args:
        size: about how many bytes they will have.

    Raises:
        LargeValuesError: they are.
    """
    if size > MOST_AT_ONCE:
        raise LargeValuesError(f"values of {size:,} bytes")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The values of an expression over a batch of rows.

    Attributes:
        values: a value per row, NULL for the rows that failed.
        failures: the reasons for which rows failed, each with a mask over the rows.
    """

    values: pa.Array
    failures: Failures = ()

    @property
    def failed(self) -> BoolArray | None:
        """The rows that failed, or None if none did."""
        if not self.failures:
            return None
        return reduce(np.logical_or, (mask for _, mask in self.failures))

    @property
    def reason(self) -> str | None:
        """A reason for which rows failed, or None; `reasons` has the reason of each row."""
        return self.failures[0][0] if self.failures else None

    def reasons(self) -> pa.Array:
        """The reason for which each row failed, NULL for the others."""
        numbers = np.zeros(len(self.values), dtype=np.int32)
        for number, (_, mask) in enumerate(self.failures, start=1):
            numbers[mask] = number
        return pa.array([None, *(reason for reason, _ in self.failures)], pa.string()).take(pa.array(numbers))


def bad_cast(source: pa.DataType, target: pa.DataType) -> str:
    """The reason of rows whose value has no counterpart in another type."""
    return f"invalid cast from {sql_type(source)} to {sql_type(target)}"


def fine(values: Datum) -> KernelResult:
    """A result without failures."""
    return values, ()


def failing(values: Datum, mask: BoolArray, reason: str) -> KernelResult:
    """A result in which the rows of the mask have failed."""
    if not mask.any():
        return values, ()
    return without(values, mask), ((reason, mask),)


def without(values: Datum, mask: BoolArray) -> pa.Array:
    """The values with NULL in the rows of the mask."""
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values)


def zero(dtype: pa.DataType) -> pa.Scalar:
    """The 0 of a type of numbers."""
    return pa.scalar(Decimal(0) if pa.types.is_decimal(dtype) else 0, dtype)


def is_constant(datum: Datum) -> bool:
    """Whether it represents equal rows."""
    return isinstance(datum, pa.Scalar)


def spread(datum: Datum, count: int) -> pa.Array:
    """The value of each of `count` rows."""
    if not is_constant(datum):
        return datum
    # Arrow cannot repeat an ARRAY, STRUCT or MAP no time.
    return pa.repeat(datum, count) if count and datum.is_valid else pa.nulls(count, datum.type)


def rows_of(arguments: Sequence[Datum]) -> int:
    """The number of rows, which is that of the arguments that are not constants."""
    return next(len(argument) for argument in arguments if not is_constant(argument))


def numbers(datum: Datum) -> npt.NDArray[Any]:
    """The values of a BIGINT, DOUBLE or BOOLEAN datum, 0 for NULL; a constant gives an array without axes."""
    if is_constant(datum):
        value = datum.as_py()
        return np.array(0 if value is None else value, dtype=datum.type.to_pandas_dtype())
    filled = datum.fill_null(False if pa.types.is_boolean(datum.type) else 0) if datum.null_count else datum
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def validity(*data: Datum) -> BoolArray:
    """The rows in which nothing is NULL; without axes if that is all rows or none."""
    return reduce(np.logical_and, map(_validity, data))


def truth(datum: Datum, count: int) -> BoolArray:
    """The rows in which a BOOLEAN is true; NULL is not."""
    return np.asarray(spread(datum, count).fill_null(False).to_numpy(zero_copy_only=False))


def column(values: npt.NDArray[Any], valid: BoolArray, dtype: pa.DataType) -> pa.Array:
    """A column of NumPy values, NULL where they are not valid."""
    mask = None if valid.ndim == 0 and valid else np.broadcast_to(~valid, values.shape)
    return pa.array(values, dtype, mask=mask)


def _validity(datum: Datum) -> BoolArray:
    if is_constant(datum):
        return np.array(datum.is_valid)
    if datum.null_count == 0:
        return np.array(True)
    return np.asarray(datum.is_valid().to_numpy(zero_copy_only=False))
