"""A join's state is bounded by the content of its inputs, however often that content changed."""

from __future__ import annotations

from driving import State, drive, in_epochs
from headrace.algebra.nodes import Aggregate, Join, Plan, RowWindow, Source, column
from headrace.elements import concat, from_rows
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.history import equivalent
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, Field, Schema
from headrace.time import TimeDomain

SCHEMA = Schema((Field("k", BIGINT), Field("v", BIGINT)))
BID, ASK = (Source(name, SCHEMA, "t", TimeDomain.INTEGER) for name in ("bid", "ask"))
LATEST = RowWindow(BID, 1, keys=(column(BID, 0),))
TOTALS = Aggregate(
    RowWindow(BID, 3), (("k", column(BID, 0)),), (("v", resolve_aggregate("SUM", column(BID, 1))),)
)
EPOCHS = 60


def _joined(left: Plan) -> Join:
    return Join(left, ASK, ((column(left, 0), column(ASK, 0)),), None, ("k", "v", "k2", "v2"))


def _run(plan: Join) -> tuple[list[int], bool]:
    """The rows of the join's state after each epoch, and whether its answer is the definition's."""
    bids: list[Element] = [((at % 3, at), at, at + 1, 1) for at in range(EPOCHS)]
    asks: list[Element] = [((at % 3, -at), at, at + 1, 1) for at in range(0, EPOCHS, 7)]
    streams = {name: Stream(SCHEMA.names, rows) for name, rows in (("bid", bids), ("ask", asks))}
    epochs = in_epochs({"bid": bids, "ask": asks}, EPOCHS)
    inputs = {source.name: source for source in (BID, ASK)}
    state: State = {}
    sizes, found = [], []
    for batch, _ in drive(plan, inputs, epochs, state):
        found.append(batch)
        sizes.append(sum(run.rows for runs in state[max(state)].values() for run in runs))
    expected = from_rows(plan.schema, [(*row, 1) for row in evaluate(plan, streams)])
    return sizes, equivalent(concat(plan.schema, found), expected)


def test_a_join_forgets_rows_that_a_row_window_has_let_go() -> None:
    sizes, right = _run(_joined(LATEST))
    assert right
    # The content is three rows; what the merging of runs has not netted yet comes on top.
    assert max(sizes) <= 24, sizes


def test_a_join_forgets_aggregates_that_were_corrected() -> None:
    sizes, right = _run(_joined(TOTALS))
    assert right
    assert max(sizes) <= 40, sizes
