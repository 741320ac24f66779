"""A sample is what the definition of the hash says, of any rows, and takes each row apart at its rate."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.nodes import Plan, Relation, Sample, Source
from headrace.elements import Batch, Int64Array, concat, from_rows
from headrace.operators.contract import OperatorProgress
from headrace.operators.sample import SampleOperator
from headrace.operators.state.keys import bucket_rows, hash_rows
from headrace.reference.contents import Payload, payload
from headrace.reference.sampling import sampled
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain
from how_many import examples
from property.strategies import ALL_TYPES, BATTERY, payloads, schemas

ARRAYS = tuple(map(pa.list_, ALL_TYPES))
"""The types of ARRAYs, which ARRAY_AGG makes."""

rows_of_a_schema = schemas((*ALL_TYPES, *ARRAYS), max_columns=3).flatmap(
    lambda schema: st.tuples(st.just(schema), st.lists(payloads(schema, pools=BATTERY), max_size=20))
)


def sample_of(schema: Schema, percent: Decimal, *, timed: bool) -> Sample:
    """A sample of chronons, or of rows that last."""
    if timed:
        return Sample(Source("s", schema, "t", TimeDomain.INTEGER), percent, timed=True)
    return Sample(Relation("r", schema, TimeDomain.INTEGER), percent)


def answered(plan: Sample, batch: Batch) -> Batch:
    """What the operator says of some elements, when all are known."""
    operator = SampleOperator(plan)
    operator.process(0, batch)
    return operator.advance(OperatorProgress((BEGINNING,), (INFINITY,)))


@examples(17)
@given(rows_of_a_schema, st.decimals(1, 100, places=2), st.integers(1, 5), st.booleans())
def test_which_rows_are_sampled(
    drawn: tuple[Schema, list[Payload]], percent: Decimal, count: int, timed: bool
) -> None:
    schema, rows = drawn
    plan = sample_of(schema, percent, timed=timed)
    # Rows that may be equal are of instants of their own.
    batch = from_rows(schema, [(row, 3 * at, 3 * at + 1, count) for at, row in enumerate(rows)])
    found = answered(plan, batch)
    taken = np.zeros(len(rows), dtype=np.int64)
    np.add.at(taken, found.ts // 3, found.w)
    assert taken.tolist() == [sampled(plan, payload(row), count, 3 * at) for at, row in enumerate(rows)]


def numbers(count: int) -> Batch:
    """Different rows of one instant each."""
    ids = np.arange(count, dtype=np.int64)
    rows = pa.RecordBatch.from_arrays([pa.array(ids)], schema=Schema((Field("id", BIGINT),)).arrow())
    return Batch(rows, ids, ids + 1, np.ones(count, dtype=np.int64))


def test_a_sample_reaches_all_buckets_and_grows_with_its_share() -> None:
    batch = numbers(20_000)
    schema = Schema((Field("id", BIGINT),))
    few, more, every = (
        answered(sample_of(schema, Decimal(percent), timed=True), batch) for percent in (5, 10, 100)
    )
    buckets = bucket_rows(hash_rows(more.payload.columns, len(more)), 4)
    assert np.bincount(buckets).min() > 300
    assert set(few.ts.tolist()) <= set(more.ts.tolist())
    assert len(every) == len(batch)


ROWS = 20_000
PERCENTS = (1, 10, 50)


def covered(found: Int64Array, percent: int, rows: int) -> int:
    """How many of the scaled counts have the truth in their interval of 95 percent."""
    share = percent / 100
    scaled = found / share
    error = 1.96 * np.sqrt(found * (1 - share)) / share
    return int((np.abs(scaled - rows) <= error).sum())


@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("instants", [1, 50, 20_000])
@pytest.mark.parametrize("timed", [True, False], ids=["by instant", "rows that last"])
def test_scaled_counts_of_equal_rows_cover_the_truth(percent: int, instants: int, timed: bool) -> None:
    # Forty worlds of 20,000 rows with 4 values; the values differ from world to world.
    schema = Schema((Field("code", STRING),))
    plan = sample_of(schema, Decimal(percent), timed=timed)
    random = np.random.default_rng(7)
    counts = []
    for world in range(40):
        codes = pa.array([f"{world} {code}" for code in range(4)]).take(pa.array(random.integers(0, 4, ROWS)))
        ts = np.sort(random.integers(0, instants, ROWS))
        rows = pa.RecordBatch.from_arrays([codes], schema=schema.arrow())
        ends = ts + 1 if timed else np.full(ROWS, INFINITY)
        found = answered(plan, Batch(rows, ts, ends, np.ones(ROWS, dtype=np.int64)))
        counts.append(found.w.sum() if timed else found.w[found.te == INFINITY].sum())
    # Of forty intervals of 95 percent fewer than 33 hold the truth once in a thousand times.
    assert covered(np.array(counts), percent, ROWS) >= 33


def test_equal_rows_of_an_instant_and_of_several_are_sampled_apart() -> None:
    schema = Schema((Field("code", STRING),))
    plan = sample_of(schema, Decimal(50), timed=True)
    equal = from_rows(schema, [(("a",), at, at + 1, 2) for at in range(1_000)])
    taken = np.zeros(1_000, dtype=np.int64)
    found = answered(plan, equal)
    np.add.at(taken, found.ts, found.w)
    # Two coins for each instant: none, one and both, as often as 1, 2 and 1.
    none, one, both = np.bincount(taken, minlength=3)
    for seen, expected in ((none, 250), (one, 500), (both, 250)):
        assert abs(seen - expected) < 4 * math.sqrt(expected)
    after_one = taken[1:][taken[:-1] > 0].mean()
    assert abs(after_one - 1) < 0.15


def test_a_retraction_takes_back_what_its_row_has_added() -> None:
    schema = Schema((Field("code", STRING),))
    for timed in (True, False):
        plan: Plan = sample_of(schema, Decimal(50), timed=timed)
        assert isinstance(plan, Sample)
        elements = [((code,), at, at + 1, 3) for code in "abcd" for at in range(50)]
        fewer = [((code,), at, at + 1, -2) for code in "abcd" for at in range(50)]
        both = answered(plan, concat(schema, [from_rows(schema, elements), from_rows(schema, fewer)]))
        alone = answered(plan, from_rows(schema, [(row, ts, te, 1) for row, ts, te, _ in elements]))
        assert both.payload.equals(alone.payload)
        assert both.w.tolist() == alone.w.tolist()
        assert both.ts.tolist() == alone.ts.tolist()


@pytest.mark.parametrize("epoch_rows", [20_000, 777])
def test_a_query_counts_a_tenth_of_the_rows(epoch_rows: int) -> None:
    random = np.random.default_rng(3)
    rows = pa.table({"ts": np.sort(random.integers(0, 50, ROWS)), "code": random.integers(0, 4, ROWS)})
    with hr.connect(runner="inline", epoch_rows=epoch_rows) as db:
        db.stream("log", rows, timestamp="ts")
        query = db.query("SELECT COUNT(*) AS n FROM (SELECT code FROM log) SAMPLE(10) [RANGE 1000]", name="q")
        db.run()
        (found,) = query.snapshot(60).to_pylist()
    assert abs(found["n"] - 2_000) < 1.96 * math.sqrt(ROWS * 0.1 * 0.9)
