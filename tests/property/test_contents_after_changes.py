"""A relation that is given by changes has the content of its definition, however they come."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.algebra.changes import OPERATIONS, Changes, content_of
from headrace.algebra.nodes import Plan, Relation, Source
from headrace.elements import from_rows
from headrace.heartbeats.timing import Timing
from headrace.history import equivalent
from headrace.optimizer import optimize
from headrace.reference.changes import RowChange, history_after
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream
from headrace.schema import BIGINT, DOUBLE, STRING, Field, Schema
from headrace.time import TimeDomain
from property.strategies import BUCKETS
from support import TableSource, run_plans

SCHEMA = Schema(
    (Field("x", DOUBLE), Field("op", STRING), Field("k", STRING), Field("v", BIGINT), Field("ts", BIGINT))
)
Row = tuple[float | None, str, str, int | None, int]
ROWS = st.lists(
    st.tuples(
        st.sampled_from((None, 0.0, 1.5, float("nan"))),
        st.sampled_from((*OPERATIONS, "d", "Update")),
        st.sampled_from(("a", "b")),
        st.none() | st.integers(0, 2),
        st.integers(0, 4),
    ),
    max_size=12,
)


def defined(rows: list[Row], by: Changes) -> list[RowChange]:
    """The changes, as the definition takes them."""
    return [
        RowChange(ts, (k,), v if by.version else None, op.upper() in ("D", "DELETE"), (x, k, v, ts))
        for x, op, k, v, ts in rows
    ]


@settings(max_examples=30)
@given(ROWS, st.booleans(), st.booleans(), BUCKETS, st.integers(1, 12))
def test_the_content_is_the_last_changes(
    rows: list[Row], versioned: bool, first: bool, buckets: int, epoch_rows: int
) -> None:
    by = Changes("op", ("k",), "v" if versioned else None)
    batch = from_rows(SCHEMA, [(row, 0, 1, 1) for row in rows])
    source = TableSource(pa.Table.from_batches([batch.payload]))
    if first:
        leaf: Plan = Relation("r", SCHEMA, TimeDomain.INTEGER, ("ts", None))
        read: BoundedRelation | BoundedStream = BoundedRelation(source, ("ts", None), by)
    else:
        leaf = Source("r", SCHEMA, "ts", TimeDomain.INTEGER)
        read = BoundedStream(source, "ts", Timing(disorder=4), changes=by)
    plan = content_of(leaf, by)
    reader = run_plans({"q": optimize(plan)}, {"r": read}, buckets=buckets, epoch_rows=epoch_rows)["q"]
    history = history_after(defined(rows, by))
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
    assert equivalent(reader.elements(), expected, reader.heartbeat), history
