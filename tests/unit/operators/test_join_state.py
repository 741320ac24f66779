"""A join's state is bounded by the content of its inputs, however often that content changed."""

from __future__ import annotations

from headrace.algebra.nodes import Aggregate, Join, Plan, RowWindow, Source, column
from headrace.algebra.properties import is_stateful
from headrace.elements import concat, from_rows
from headrace.expressions.aggregates import resolve_aggregate
from headrace.history import equivalent
from headrace.lowering.lower import lower
from headrace.operators.contract import Operator, Progress
from headrace.operators.create import create_operator
from headrace.operators.state.runs import Run
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, TimeDomain

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
    graph = lower({"q": plan})
    state: dict[tuple[int, str], list[Run]] = {}
    bids = [((at % 3, at), at, at + 1, 1) for at in range(EPOCHS)]
    asks = [((at % 3, -at), at, at + 1, 1) for at in range(0, EPOCHS, 7)]
    before, sizes, found = BEGINNING, [], []
    for epoch in range(EPOCHS):
        outputs = {}
        for node in graph.nodes:
            if isinstance(node.plan, Source):
                rows = bids if node.plan.name == "bid" else asks
                outputs[node.number] = from_rows(SCHEMA, [row for row in rows if row[1] == epoch])
                continue
            assert is_stateful(node.plan)
            operator: Operator = create_operator(node.plan, node.reduced_for is not None, _no_failure)
            for name, area in operator.areas.items():
                area.runs = state.get((node.number, name), [])
            for port, edge in enumerate(node.inputs):
                operator.process(port, outputs[edge.producer])
            ports = len(node.inputs)
            outputs[node.number] = operator.advance(Progress((before,) * ports, (epoch + 1,) * ports))
            state |= {(node.number, name): area.runs for name, area in operator.areas.items()}
        before = epoch + 1
        last = len(graph.nodes) - 1
        found.append(outputs[last])
        sizes.append(sum(run.rows for (number, _), runs in state.items() if number == last for run in runs))
    streams = {name: Stream(SCHEMA.names, rows) for name, rows in (("bid", bids), ("ask", asks))}
    history = evaluate(plan, streams)
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
    return sizes, equivalent(concat(plan.schema, found), expected, EPOCHS)


def _no_failure(batch: object, failed: object, reason: str) -> None:
    raise AssertionError(reason)


def test_a_join_forgets_rows_that_a_row_window_has_let_go() -> None:
    sizes, right = _run(_joined(LATEST))
    assert right
    # The content is three rows; what the merging of runs has not netted yet comes on top.
    assert max(sizes) <= 24, sizes


def test_a_join_forgets_aggregates_that_were_corrected() -> None:
    sizes, right = _run(_joined(TOTALS))
    assert right
    assert max(sizes) <= 40, sizes
