"""Samples of ARRAYs, which only queries make: their hash is the one that the reference defines."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace.algebra.nodes import Sample, Source, TimeWindow
from headrace.elements import from_rows
from headrace.errors import PlanError
from headrace.lowering.identity import digest_of
from headrace.operators.contract import OperatorProgress
from headrace.operators.sample import SampleOperator
from headrace.reference.contents import payload
from headrace.reference.sampling import in_sample
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, sql_type
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain

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
    batch = from_rows(schema, [(row, at, at + 1, 1) for at, row in enumerate(rows)])
    for percent in map(Decimal, range(1, 101)):
        plan = Sample(source, percent, timed=True)
        operator = SampleOperator(plan)
        operator.process(0, batch)
        found = operator.advance(OperatorProgress((BEGINNING,), (INFINITY,)))
        expected = [at for at, row in enumerate(rows) if in_sample(plan, payload(row), 0, at)]
        assert np.sort(found.ts).tolist() == expected


def test_rows_that_last_are_not_sampled_by_their_instant() -> None:
    source = Source("s", Schema((Field("k", BIGINT),)), "t", TimeDomain.INTEGER)
    lasting = TimeWindow(source, Duration(5), Duration(1))
    assert not Sample(lasting, Decimal(10)).is_chronon
    with pytest.raises(PlanError, match="rows that are sampled by their instant are of one"):
        Sample(lasting, Decimal(10), timed=True)


def test_a_sample_is_not_named_as_samples_of_equal_rows_were() -> None:
    # What kept or dropped all equal rows together had this digest; a store with it is refused by it.
    source = Source("s", Schema((Field("k", BIGINT),)), "t", TimeDomain.INTEGER)
    earlier = "b0946445c5e0980ee80ada294040055b343e4616444ed2edf550124cabf4373e"
    assert {digest_of(Sample(source, Decimal(10), timed), {}) for timed in (False, True)}.isdisjoint(
        {earlier}
    )
