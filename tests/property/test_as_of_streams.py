"""ASOF JOIN of two streams: each row with the other side's latest row of its key at or before it."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from auctions import error_of, plan_of
from headrace.optimizer import optimize
from headrace.reference.contents import Stream, order
from headrace.reference.operators import evaluate
from how_many import examples
from worked.tables import assert_equal_contents, equivalent

_STREAMS = "".join(
    f"CREATE STREAM {name} (k BIGINT, v BIGINT, at BIGINT) FROM csv OPTIONS (path '{name}') TIMESTAMP BY at;"
    for name in ("deal", "quote")
)
_QUERY = "SELECT d.k, d.v, d.at, q.v AS price FROM deal d ASOF {kind}JOIN quote q ON {condition}"
rows = st.lists(
    st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, 5, 6, 7]), st.integers(0, 9)), max_size=7
)


def _latest(deal: Any, quotes: list[Any], *, keyed: bool) -> list[Any]:
    """By definition: the latest row, of several of one instant the last one column by column."""
    before = [
        quote
        for quote in quotes
        if quote[2] <= deal[2] and (not keyed or (quote[0] is not None and quote[0] == deal[0]))
    ]
    return sorted(before, key=lambda quote: (quote[2], *map(order, quote)))[-1:]


@examples(14, 40)
@given(rows, rows, st.booleans(), st.booleans(), st.integers(1, 3))
def test_rows_meet_the_latest_one(
    deals: list[Any], quotes: list[Any], keyed: bool, outer: bool, cuts: int
) -> None:
    condition = "d.k = q.k AND q.at <= d.at" if keyed else "d.at >= q.at"
    text = _QUERY.format(kind="LEFT " if outer else "", condition=condition)
    plan = plan_of(_STREAMS + text)
    given_rows = {"deal": deals, "quote": quotes}
    streams = {
        name: Stream(("k", "v", "at"), [(row, row[2], row[2] + 1, 1) for row in found])
        for name, found in given_rows.items()
    }
    partners = [(deal, _latest(deal, quotes, keyed=keyed)) for deal in deals]
    wanted: list[Any] = [
        ((*deal, found[0][1] if found else None), deal[2], deal[2] + 1, 1)
        for deal, found in partners
        if found or outer
    ]
    defined = [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)]
    assert_equal_contents(defined, wanted, "the definition of the plan")
    equivalent(plan, plan, streams, cuts)
    assert optimize(plan).schema == plan.schema


@pytest.mark.parametrize("kind", ["", "LEFT "])
def test_it_is_that_of_duckdb(kind: str) -> None:
    deal = pa.table({"k": [1, 2, 1, 3, 2], "v": [1, 2, 3, 4, 5], "at": [1, 4, 7, 8, 30]})
    quote = pa.table({"k": [1, 1, 2, 2, 1], "v": [10, 11, 20, 21, 12], "at": [1, 6, 5, 20, 8]})
    text = _QUERY.format(kind=kind, condition="d.k = q.k AND d.at >= q.at")
    with headrace.connect(runner="inline") as db:
        db.stream("deal", deal, timestamp="at")
        db.stream("quote", quote, timestamp="at")
        query = db.query(text)
        db.run()
        found = query.history().select(["k", "v", "at", "price"]).to_pylist()
    with duckdb.connect() as other:
        other.register("deal", deal)
        other.register("quote", quote)
        expected = other.execute(text).fetchall()
    assert sorted((tuple(row.values()) for row in found), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "condition",
    [
        "d.k = q.k",
        "d.k = q.k AND d.at > q.at",
        "d.k = q.k AND d.at >= q.at AND d.v > 1",
        "d.k = q.k + 1 AND d.at >= q.at",
    ],
)
def test_other_conditions_are_refused(condition: str) -> None:
    message, _, _, hint = error_of(_STREAMS + _QUERY.format(kind="", condition=condition))
    assert message == "ASOF JOIN of two streams is by equal columns and their timestamps"
    assert hint is not None
    assert "s.at >= r.at" in hint
