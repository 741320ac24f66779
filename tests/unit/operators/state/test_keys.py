"""Keys: SQL's grouping equality, and what happens when hashes collide."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace.operators.state import keys
from headrace.operators.state.keys import bucket_rows, encode_keys, equal_rows, hash_rows, normalise
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP

COLUMNS = [
    pa.array([1, None, 1, 2, None], BIGINT),
    pa.array([0.0, None, -0.0, 2.5, None], DOUBLE),
    pa.array([math.nan, None, -math.nan, 1.0, None], DOUBLE),
    pa.array(["x", None, "x", "", None], STRING),
    pa.array([True, None, True, False, None], BOOLEAN),
    pa.array([date(2024, 1, 1), None, date(2024, 1, 1), date(1969, 1, 1), None], DATE),
    pa.array([datetime(2024, 1, 1, tzinfo=UTC), None, datetime(2024, 1, 1, tzinfo=UTC)] * 2, TIMESTAMP)[:5],
    pa.array(
        [Decimal("1.50"), None, Decimal("1.50"), Decimal("-99999999999999999999.00"), None],
        pa.decimal128(30, 2),
    ),
    pa.array([[1, 2], None, [1, 2], [2, 2], None], pa.list_(BIGINT)),
    pa.array([[-0.0, math.nan, None], None, [0.0, -math.nan, None], [], None], pa.list_(DOUBLE)),
    pa.array([["a", "b"], None, ["a", "b"], ["ab"], None], pa.list_(STRING)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_equal_values_have_equal_codes(column: pa.Array) -> None:
    clean = [normalise(column)]
    codes = encode_keys(clean, hash_rows(clean, 5)).codes.tolist()
    assert codes[0] == codes[2]
    assert codes[1] == codes[4]
    assert codes[0] != codes[1]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_slice_hashes_like_its_rows(column: pa.Array) -> None:
    whole, part = normalise(column), normalise(column.slice(2))
    assert hash_rows([whole], 5)[2:].tolist() == hash_rows([part], 3).tolist()
    assert equal_rows([whole], np.arange(2, 5), [part], np.arange(3)).all()


def test_colliding_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array(["a", "b", "a", None, "b", "c"])
    codes = encode_keys([column], np.zeros(6, dtype=np.int64))
    assert len(codes) == 4
    assert [column[int(codes.first[code])].as_py() for code in codes.codes] == column.to_pylist()
    assert keys.encode_keys([], np.zeros(2, dtype=np.int64)).codes.tolist() == [0, 0]


def test_arrays_are_equal_where_all_their_values_are() -> None:
    arrays = [[1, 2], [1, 3], [3, 2], [1], [1, 2], [], [1, None], None, [None], [], [1, None], [0, 2], [1, 0]]
    column = pa.array(arrays, pa.list_(BIGINT))
    pairs = np.indices((len(arrays), len(arrays))).reshape(2, -1)
    expected = [arrays[left] == arrays[right] for left, right in pairs.T]
    assert equal_rows([column], pairs[0], [column], pairs[1]).tolist() == expected
    codes = encode_keys([column], np.zeros(len(arrays), dtype=np.int64)).codes
    assert (codes[pairs[0]] == codes[pairs[1]]).tolist() == expected, "hashes that collide"


@pytest.mark.parametrize(("dtype", "width"), [(TIMESTAMP, BIGINT), (DATE, pa.int32())], ids=str)
def test_arrays_of_dates_that_python_does_not_have_may_collide(
    dtype: pa.DataType, width: pa.DataType
) -> None:
    far = 2**30 if dtype == DATE else 2**62
    column = pa.array([[far], [far, None], None, [far], [far + 1], []], pa.list_(width))
    for part in (column, column.slice(1)):
        codes = encode_keys([part.cast(pa.list_(dtype))], np.zeros(len(part), dtype=np.int64)).codes
        same = np.equal.outer(codes, codes).tolist()
        values = part.to_pylist()
        assert same == [[one == other for other in values] for one in values]


def test_no_key_is_one_bucket() -> None:
    assert len(set(bucket_rows(hash_rows([], 9), 8).tolist())) == 1


def test_strings_are_equal_by_all_their_bytes() -> None:
    """Of any length, in a part of a column, and where one is the beginning of another."""
    texts = (
        ["a" * length for length in range(40)] + ["a" * length + "b" for length in range(40)] + [None, "ä"]
    )
    column = pa.array(texts, STRING)
    rows = np.arange(len(texts))
    for shift in range(len(texts)):
        other = np.roll(rows, shift)
        same = [texts[row] == texts[place] for row, place in zip(rows, other, strict=True)]
        assert equal_rows([column], None, [column], other).tolist() == same
        part = equal_rows([column.slice(3)], None, [column], other[3:].astype(np.int32))
        assert part.tolist() == same[3:]
