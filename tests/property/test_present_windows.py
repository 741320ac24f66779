"""Conditions on the present leave at each instant the rows for which they hold when NOW() is that instant."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from auctions import plan_of
from headrace.algebra.bounds import has_unbounded_state
from headrace.optimizer import optimize
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from worked.tables import assert_equal_contents, equivalent

_STREAM = "CREATE STREAM one (id BIGINT, at BIGINT) FROM csv OPTIONS (path 'one') TIMESTAMP BY at;"
rows = st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.integers(0, 12)), max_size=7)


def _texts(least: int, most: int) -> list[str]:
    """That NOW() - at is between two numbers, as people write it."""
    return [
        f"o.at BETWEEN NOW() - {most} AND NOW() - {least}",
        f"CURRENT_TIMESTAMP >= o.at + {least} AND at > NOW() - {most + 1}",
        f"NOW() - at < {most + 1} AND {least - 1} < NOW() - at",
        f"mz_now() <= at + {most} AND (mz_now() >= at + {least})",
    ]


@settings(max_examples=40, deadline=None)
@given(rows, st.integers(-1, 3), st.integers(0, 4), st.data())
def test_rows_are_there_while_the_condition_holds(
    given_rows: list[Any], least: int, more: int, data: st.DataObject
) -> None:
    least, most = least, max(least, 0) + more
    condition = data.draw(st.sampled_from(_texts(least, most)))
    plan = plan_of(f"{_STREAM} SELECT o.id, o.at FROM one o WHERE {condition} AND id IS NOT NULL")
    wanted = [
        (row, instant, instant + 1, 1)
        for row in given_rows
        for instant in range(row[1], 20)
        if least <= instant - row[1] <= most and row[0] is not None
    ]
    streams = {"one": Stream(("id", "at"), [(row, row[1], row[1] + 1, 1) for row in given_rows])}
    defined = [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)]
    assert_equal_contents(defined, wanted, "the definition of the plan")
    equivalent(plan, optimize(plan), streams, cuts=data.draw(st.integers(1, 3)))
    assert not has_unbounded_state(optimize(plan))


def test_each_text_has_the_length_that_it_says() -> None:
    """Plans are made once for texts that differ in constants alone; a window's length is none of these."""
    with headrace.connect(runner="inline") as db:
        db.stream("tick", pa.table({"at": [1], "id": [1]}), timestamp="at")
        queries = [db.query(f"SELECT id FROM tick WHERE at > NOW() - {size}") for size in (3, 5)]
        db.run()
        assert [query.history().to_pylist()[0]["valid_to"] for query in queries] == [4, 6]


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (
            "SELECT t.id, o.id AS other FROM tick t LEFT JOIN one o ON t.id = o.id WHERE t.at > NOW() - 5",
            "SELECT t.id, o.id AS other FROM tick [RANGE 5] t LEFT JOIN one o ON t.id = o.id",
        ),
        (
            "SELECT COUNT(*) AS n FROM tick t, one o "
            "WHERE t.at > NOW() - 5 AND o.at >= NOW() - 5 AND t.id = o.id",
            "SELECT COUNT(*) AS n FROM tick [RANGE 5] t, one [RANGE 6] o WHERE t.id = o.id",
        ),
        ("SELECT id FROM one WHERE NOW() >= at", "SELECT id FROM one [RANGE UNBOUNDED]"),
    ],
)
def test_the_plan_is_that_of_windows(text: str, ours: str) -> None:
    assert plan_of(_STREAM + text) == plan_of(_STREAM + ours)
