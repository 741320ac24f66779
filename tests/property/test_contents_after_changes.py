"""A relation that is given by changes has the content of its definition, however they come."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from headrace.algebra.changes import HOW_LATE, OPERATIONS, Changes, content_of
from headrace.algebra.nodes import Plan, Relation, Source
from headrace.elements import from_rows
from headrace.heartbeats.timing import Timing
from headrace.history import equivalent
from headrace.optimizer import optimize
from headrace.reference.changes import RowChange, as_they_come, history_after
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


UNORDERED = Changes("op", ("k",))
IN_ORDER = Changes("op", ("k",), arrived="arrived")

ORDERS = st.builds(
    partial(Changes, "op", ("k",)), st.sampled_from((None, "v")), st.sampled_from((None, "arrived"))
)
"""What orders the changes of a key at one instant."""


def defined(rows: list[Row], by: Changes) -> list[RowChange]:
    """The changes, as the definition takes them."""
    return [
        RowChange(
            *(ts, (k,), v if by.version else None, op.upper() in ("D", "DELETE"), (x, k, v, ts)),
            arrived=place if by.arrived else 0,
        )
        for place, (x, op, k, v, ts) in enumerate(rows)
    ]


LOG: list[Row] = [
    (1.5, "I", "a", 1, 0),
    (0.0, "I", "a", 0, 0),
    (None, "I", "b", 1, 0),
    (None, "D", "b", 1, 0),
]
"""A log whose last words are 0.0 and gone."""


@settings(max_examples=30)
@example(LOG, IN_ORDER, True, 2, 12)
@example(LOG, IN_ORDER, False, 2, 1)
@given(ROWS, ORDERS, st.booleans(), BUCKETS, st.integers(1, 12))
def test_the_content_is_the_last_changes(
    rows: list[Row], by: Changes, first: bool, buckets: int, epoch_rows: int
) -> None:
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


ARRIVING = st.lists(
    st.tuples(
        st.sampled_from((None, 0.0, 1.5)),
        st.sampled_from("IUD"),
        st.sampled_from(("a", "b")),
        st.none() | st.integers(0, 2),
        st.integers(0, 12),
    ),
    max_size=14,
)


def row(operation: str, key: str, at: int) -> Row:
    return None, operation, key, None, at


@settings(max_examples=60)
@example(
    [row("D", "a", 5), row("I", "b", 6), row("I", "b", 7), row("U", "a", 4)],
    Changes("op", ("k",)),
    1,
    1,
    0,
    9,
)
@example(
    [row("I", "b", 6), row("D", "a", 3), row("I", "b", 7), row("U", "a", 2)],
    Changes("op", ("k",)),
    1,
    1,
    0,
    9,
)
@given(ARRIVING, ORDERS, BUCKETS, st.integers(1, 6), st.integers(0, 3), st.integers(0, 9))
def test_a_change_that_is_late_counts_from_the_heartbeat_on(
    rows: list[Row], by: Changes, buckets: int, epoch_rows: int, disorder: int, how_late: int
) -> None:
    """However they are cut into epochs; one that is later than deletions are remembered is set apart."""
    batch = from_rows(SCHEMA, [(row, 0, 1, 1) for row in rows])
    source = TableSource(pa.Table.from_batches([batch.payload]))
    read = BoundedStream(source, "ts", Timing(disorder=disorder), changes=by)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HOW_LATE, TimeDomain.INTEGER, how_late)
        plan = content_of(Source("r", SCHEMA, "ts", TimeDomain.INTEGER), by)
        reader = run_plans({"q": optimize(plan)}, {"r": read}, buckets=buckets, epoch_rows=epoch_rows)["q"]
    come = as_they_come(defined(rows, by), disorder, how_late)
    event(f"some count late: {any(change.since > change.instant for change in come)}")
    event(f"some are set apart: {len(come) < len(rows)}")
    history = history_after(come)
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
    assert equivalent(reader.elements(), expected, reader.heartbeat), history
