"""Ranks order rows as ORDER BY does."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace.expressions.tree import Column, SortKey
from headrace.operators.state.order import rank_rows
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING

DECIMAL = pa.decimal128(20, 2)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (DOUBLE, [-math.inf, -2.5, -0.0, 1.0, math.inf, math.nan]),
        (BIGINT, [-(2**63), -1, 0, 2**63 - 1]),
        (STRING, ["", "a", "ab", "b", "é"]),
        (pa.list_(BIGINT), [[], [None], [None, 9], [-5], [-5, 1], [3, None], [3, 4], [2**62]]),
        (pa.list_(DOUBLE), [[-math.inf], [-0.0], [0.0, 1.0], [math.inf], [math.nan]]),
        (DECIMAL, [Decimal("-1.50"), Decimal("0.00"), Decimal("12.00")]),
        (DECIMAL, [Decimal("-1e17"), Decimal("-92233720368547758.08"), Decimal("9e16"), Decimal("1e17")]),
        (pa.decimal256(50, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("12.00"), Decimal("1e40")]),
        (pa.decimal256(50, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("12.00")]),
    ],
)
def test_ranks_order_values(dtype: pa.DataType, values: list[object]) -> None:
    key = Column(0, "x", dtype)
    shuffled = pa.array(values[::-1], dtype)
    assert (np.diff(rank_rows([shuffled], [SortKey(key)])) < 0).all()
    assert (np.diff(rank_rows([shuffled], [SortKey(key, descending=True)])) > 0).all()
    for nulls_first in (True, False):
        with_null = pa.array([None, *values], dtype)
        ranks = rank_rows([with_null], [SortKey(key, nulls_first=nulls_first)])
        assert (np.diff(ranks[1:]) > 0).all()
        assert ranks[0] == (ranks.min() if nulls_first else ranks.max())


def test_later_columns_decide_among_equals() -> None:
    columns = [pa.array([True, False, True, None, True], BOOLEAN), pa.array([2, 9, None, 9, 2], BIGINT)]
    keys = [
        SortKey(Column(0, "b", BOOLEAN)),
        SortKey(Column(1, "v", BIGINT), descending=True, nulls_first=False),
    ]
    ranks = rank_rows(columns, keys)
    assert ranks.tolist() == [2, 1, 3, 0, 2], "NULL, FALSE, then TRUE by descending numbers with NULL last"
