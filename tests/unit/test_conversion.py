"""Values from outside are held exactly, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from headrace.conversion import MisfitError, as_column, cast_exactly, column_of
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP

MONEY = pa.decimal128(10, 2)
DAY = date(2024, 5, 1)
NOON = datetime(2024, 5, 1, 12)
NAN = float("nan")


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (BIGINT, [2, None, 2.0, Decimal(2), np.int32(2), np.float64(2)], [2, None, 2, 2, 2, 2]),
        (BIGINT, [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
        (DOUBLE, [1, 2.5, None, 2**53], [1.0, 2.5, None, 2.0**53]),
        (DATE, [DAY, datetime(2024, 5, 1), 5, None], [DAY, DAY, date(1970, 1, 6), None]),
        (TIMESTAMP, [NOON, 5], [NOON.replace(tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 0, 5, UTC)]),
        (MONEY, [Decimal("1.5"), 2], [Decimal("1.50"), Decimal(2)]),
        (STRING, ["a", "\0", None], ["a", "\0", None]),
        (BOOLEAN, [True, None], [True, None]),
    ],
)
def test_values_that_fit(dtype: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    assert column_of(values, dtype).to_pylist() == expected


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *(
            (BIGINT, value)
            for value in (2.9, NAN, 1e300, float("inf"), Decimal("2.5"), 2**63, "2", np.float32(0.5))
        ),
        *((BIGINT, value) for value in (True, [1], object(), NOON)),
        *((DOUBLE, value) for value in (2**53 + 1, 10**400, "1", Decimal("0.1"))),
        *((DATE, value) for value in (NOON, 5.5, 2**40, NOON.replace(tzinfo=UTC), "2024-05-01")),
        *((TIMESTAMP, value) for value in (5.5, 2**63, NAN, DAY, pd.Timestamp(1_001), pd.NaT)),
        *((MONEY, value) for value in (Decimal("1.239"), 10**12, 1.5, Decimal("NaN"))),
        *((STRING, value) for value in ("\ud800", b"\xff", 5, NAN)),
        *((BOOLEAN, value) for value in (1, "true")),
    ],
)
def test_values_that_do_not_fit_are_found(dtype: pa.DataType, value: Any) -> None:
    with pytest.raises(MisfitError) as caught:
        column_of([None, None, value, value], dtype)
    assert caught.value.place == 2
    assert caught.value.reason.startswith("not a ")


@pytest.mark.parametrize(
    ("column", "dtype", "fits"),
    [
        (pa.array([2.0, None, 3.0]), BIGINT, True),
        (pa.array([2.0, 2.9]), BIGINT, False),
        (pa.array([NAN]), BIGINT, False),
        (pa.array([NAN, 0.1], pa.float32()), DOUBLE, True),
        (pa.array([2**53 + 1]), DOUBLE, False),
        (pa.array([2]), BOOLEAN, False),
        (pa.array([0, 1]), BOOLEAN, True),
        (pa.array([1.25, None]), MONEY, True),
        (pa.array([1.239]), MONEY, False),
        (pa.array([Decimal("0.1")]), DOUBLE, True),
        (pa.array([Decimal("12345678901234567890.1")]), DOUBLE, False),
        (pa.array([NOON]), DATE, False),
        (pa.array([datetime(2024, 5, 1)]), DATE, True),
        (pa.array([2**62], pa.timestamp("us")), DATE, False),
        (pa.array([1_000], pa.timestamp("ns")), TIMESTAMP, True),
        (pa.array([1_001], pa.timestamp("ns")), TIMESTAMP, False),
        (pa.array(["5"]).dictionary_encode(), BIGINT, True),
        (pa.array([b"\xff"]), STRING, False),
        (pa.Array.from_buffers(STRING, 1, pa.array([b"\xff"]).buffers()), STRING, False),
    ],
)
def test_columns(column: pa.Array, dtype: pa.DataType, fits: bool) -> None:
    if fits:
        assert cast_exactly(column, dtype).type == dtype
    else:
        with pytest.raises((MisfitError, pa.ArrowException)):
            cast_exactly(column, dtype)


@pytest.mark.parametrize(
    "found",
    [
        [1, 2],
        (1.0, 2),
        np.array([1.0, 2.0]),
        pd.Series([1.0, 2.0]),
        pa.chunked_array([[1], [2]]),
        [np.int8(1), 2],
    ],
)
def test_what_functions_give(found: Any) -> None:
    assert as_column(found, BIGINT).to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "found", [[1, 2.5], np.array([1.0, 2.5]), pd.Series([1, 2.5]), np.array([1, 2.5], object)]
)
def test_what_functions_give_is_not_cut(found: Any) -> None:
    with pytest.raises((MisfitError, pa.ArrowException)):
        as_column(found, BIGINT)
