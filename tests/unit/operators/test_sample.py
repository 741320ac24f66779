"""Samples of ARRAYs, which only queries make: their hash is the one that the reference defines."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.algebra.nodes import Sample, Source
from headrace.elements import from_rows
from headrace.operators.sample import sampled
from headrace.reference.contents import payload
from headrace.reference.sampling import in_sample
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, sql_type
from headrace.time import TimeDomain

VALUES: dict[pa.DataType, tuple[object, object]] = {
    BIGINT: (0, -(2**63)),
    DOUBLE: (-0.0, -math.nan),
    STRING: ("", "more than eight bytes: é"),
    BOOLEAN: (False, True),
    DATE: (date(1970, 1, 1), date(1901, 2, 3)),
    TIMESTAMP: (datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC)),
    pa.decimal128(30, 2): (Decimal("0.00"), Decimal("-99999999999999999999.01")),
}


@pytest.mark.parametrize("dtype", VALUES, ids=sql_type)
def test_the_hash_of_an_array(dtype: pa.DataType) -> None:
    one, other = VALUES[dtype]
    schema = Schema((Field("a", pa.list_(dtype)), Field("k", BIGINT)))
    arrays = [None, [], [None], [None, None], [one], [other], [one, other], [other, one], [one, None, one]]
    rows = [(array, number % 2) for number, array in enumerate(arrays)]
    # From which percentage on a row is in the sample says more of its hash than one sample does.
    source = Source("s", schema, "t", TimeDomain.INTEGER)
    batch = from_rows(schema, [(row, 0, 1, 1) for row in rows])
    for percent in map(Decimal, range(1, 101)):
        expected = [in_sample(Sample(source, percent), payload(row)) for row in rows]
        assert sampled(batch, percent).tolist() == expected
