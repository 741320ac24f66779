"""A sample is what the definition of the hash says, of any rows, and about as large as it should be."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Sample, Source
from headrace.elements import Batch, from_rows
from headrace.operators.sample import sampled
from headrace.operators.state.keys import bucket_rows, hash_rows
from headrace.reference.contents import Payload, payload
from headrace.reference.sampling import in_sample
from headrace.schema import BIGINT, Field, Schema
from headrace.time import TimeDomain
from how_many import examples
from property.strategies import ALL_TYPES, BATTERY, payloads, schemas

ARRAYS = tuple(map(pa.list_, ALL_TYPES))
"""The types of ARRAYs, which ARRAY_AGG makes."""

rows_of_a_schema = schemas((*ALL_TYPES, *ARRAYS), max_columns=3).flatmap(
    lambda schema: st.tuples(st.just(schema), st.lists(payloads(schema, pools=BATTERY), max_size=20))
)


@examples(17)
@given(rows_of_a_schema, st.decimals(1, 100, places=2))
def test_which_rows_are_sampled(drawn: tuple[Schema, list[Payload]], percent: Decimal) -> None:
    schema, rows = drawn
    node = Sample(Source("s", schema, "t", TimeDomain.INTEGER), percent)
    batch = from_rows(schema, [(row, 0, 1, 1) for row in rows])
    assert sampled(batch, percent).tolist() == [in_sample(node, payload(row)) for row in rows]


def test_a_sample_has_its_share_and_reaches_all_buckets() -> None:
    numbers = np.arange(20_000, dtype=np.int64)
    rows = pa.RecordBatch.from_arrays([pa.array(numbers)], schema=Schema((Field("id", BIGINT),)).arrow())
    batch = Batch(rows, numbers, numbers + 1, np.ones(len(numbers), dtype=np.int64))
    # The deviation of the share of one in ten is 0.2 percent.
    share = sampled(batch, Decimal(10))
    assert abs(share.mean() - 0.1) < 0.01
    assert sampled(batch, Decimal(100)).all()
    buckets = bucket_rows(hash_rows(rows.columns, len(batch)), 4)[share]
    assert np.bincount(buckets).min() > 300
    assert (sampled(batch, Decimal(5)) <= share).all()
