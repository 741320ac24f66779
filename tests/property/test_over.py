"""OVER with frames of time is also a join with the aggregate of the last instants."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auctions import plan_of
from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import Aggregate, Join, Over, Plan, Project, TimeWindow, column
from headrace.algebra.nulls import null_safe_key
from headrace.algebra.properties import walk
from headrace.expressions.aggregates.aggregates import resolve_user_aggregate
from headrace.expressions.aggregates.functions import FUNCTIONS, function_of
from headrace.expressions.tree import AggregateCall, Column
from headrace.expressions.user import UserAggregate
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, unique_names
from headrace.time import Duration
from how_many import examples

CALLS = (
    "ARRAY_AGG(id)",
    "ARRAY_AGG(DISTINCT kind)",
    "ARRAY_AGG(id ORDER BY price DESC, kind)",
    "AUTOCORR(id, 1 ORDER BY at, id)",
    "AVG(id)",
    "AVG(price)",
    "AVG(DISTINCT id)",
    "BOOL_AND(id > 1)",
    "BOOL_OR(id > 1)",
    "CORR(id, price)",
    "CORRELATED_PAIRS(kind, at, id, 1, 0.3, -0.3, 1, 2)",
    "COUNT(*)",
    "COUNT(DISTINCT kind)",
    "COUNT(DISTINCT kind, id)",
    "COUNT(id) FILTER (WHERE id > 2)",
    "COVAR_POP(id, at)",
    "COVAR_SAMP(id, at)",
    "EWMA(id, 0.4 ORDER BY at DESC)",
    "EWM_STDDEV(price, 0.4 ORDER BY at)",
    "FIRST(kind ORDER BY at, id)",
    "LAST(id ORDER BY at, id, kind)",
    "MAX(kind)",
    "MAX(id) FILTER (WHERE kind = 'a')",
    "MEDIAN(id)",
    "MIN(price)",
    "PERCENTILE(id, 0.3)",
    "PERCENTILE_DISC(id, 0.6 ORDER BY id DESC)",
    "MODE(id)",
    "TOP_K(id, 2)",
    "BIT_AND(id)",
    "BIT_OR(id)",
    "BIT_XOR(id)",
    "REGR_AVGX(id, price)",
    "REGR_AVGY(id, price)",
    "REGR_COUNT(id, price)",
    "REGR_INTERCEPT(id, price)",
    "REGR_R2(id, price)",
    "REGR_SLOPE(id, price)",
    "REGR_SXX(id, price)",
    "REGR_SXY(id, price)",
    "REGR_SYY(id, price)",
    "STDDEV(id)",
    "STDDEV_POP(CAST(price AS DOUBLE))",
    "SUM(price)",
    "SUM(CAST(price AS DOUBLE))",
    "SUM(DISTINCT id)",
    "VARIANCE(price)",
    "VAR_POP(id)",
)


class Largest:
    """A user's aggregate."""

    def initialize(self) -> list[int]:
        return []

    def accumulate(self, state: list[int], value: int) -> list[int]:
        return [*state, value]

    def evaluate(self, state: list[int]) -> int | None:
        return max(state, default=None)


ticks = st.tuples(
    st.sampled_from([None, 1, 2, 3, 7]),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([None, Decimal("0.10"), Decimal("0.20"), Decimal("-3.00")]),
    st.integers(0, 9),
)


def streams(rows: list[tuple[object, ...]], retracted: int) -> dict[str, Stream]:
    """Rows as chronons of `tick`; the first ones come once more, and are taken back."""
    elements: list[Element] = []
    for place, row in enumerate(rows):
        at = row[3]
        assert isinstance(at, int)
        elements.append((row, at, at + 1, 1))
        if place < retracted:
            elements += [(row, at, at + 1, 1), (row, at, at + 1, -1)]
    return {"tick": Stream(("id", "kind", "price", "at"), elements)}


def over(text: str, keys: str, back: int) -> Over:
    """The node of an aggregate over the last instants."""
    frame = f"{keys} ORDER BY at RANGE BETWEEN {back} PRECEDING AND CURRENT ROW"
    plan = plan_of(f"SELECT id, kind, {text} OVER ({frame}) AS value FROM tick")
    (found,) = [node for node in walk(plan) if isinstance(node, Over)]
    return found


def joined(node: Over) -> Plan:
    """The rows joined with the aggregate over the window of the frame; NULL is one of the keys."""
    ((name, call, frame),) = node.aggregates
    assert isinstance(frame, RangeFrame)
    rows, width = node.input, len(node.input.schema)
    parts = [part for key in node.keys for part in null_safe_key(key)]
    items = [(field.name, column(rows, place)) for place, field in enumerate(rows.schema)]
    wide = Project(rows, (*items, *((f"key{place}", part) for place, part in enumerate(parts))))
    keys: list[Column] = [column(wide, width + place) for place in range(len(parts))]
    window = TimeWindow(wide, frame.size)
    grouped = Aggregate(window, tuple((key.name, key) for key in keys), ((name, call),))
    equalities = tuple((key, column(grouped, place)) for place, key in enumerate(keys))
    names = unique_names([*wide.schema.names, *grouped.schema.names])
    join = Join(wide, grouped, equalities, None, tuple(names))
    kept = [*range(width), len(join.schema) - 1]
    return Project(join, tuple((join.schema[place].name, column(join, place)) for place in kept))


def test_every_aggregate_is_among_the_calls() -> None:
    found = {call.function for text in CALLS for _, call, _ in over(text, "", 1).aggregates}
    assert found == {name for name, record in FUNCTIONS.items() if record.means is None}


@pytest.mark.parametrize("text", CALLS)
@examples(17)
@given(
    rows=st.lists(ticks, max_size=9),
    retracted=st.integers(0, 2),
    back=st.integers(0, 4),
    keys=st.sampled_from(["", "PARTITION BY kind", "PARTITION BY kind, id"]),
)
def test_a_row_meets_the_aggregate_of_its_last_instants(
    text: str, rows: list[tuple[object, ...]], retracted: int, back: int, keys: str
) -> None:
    node, given_rows = over(text, keys, back), streams(rows, retracted)
    assert evaluate(node, given_rows) == evaluate(joined(node), given_rows)


@pytest.mark.parametrize("text", CALLS)
@examples(5)
@given(
    rows=st.lists(ticks, max_size=9),
    retracted=st.integers(0, 2),
    back=st.integers(1, 4),
    keys=st.sampled_from(["", "PARTITION BY kind", "PARTITION BY kind, id"]),
)
def test_a_frame_within_bounds_has_its_largest_size_first(
    text: str, rows: list[tuple[object, ...]], retracted: int, back: int, keys: str
) -> None:
    frames = (f"RANGE MIN 1, MAX {back + 1}", f"RANGE BETWEEN {back} PRECEDING AND CURRENT ROW")
    plans = [
        plan_of(f"SELECT id, kind, {text} OVER ({keys} ORDER BY at {frame}) AS value FROM tick")
        for frame in frames
    ]
    given_rows = streams(rows, retracted)
    assert evaluate(plans[0], given_rows) == evaluate(plans[1], given_rows)


@given(rows=st.lists(ticks, max_size=9), size=st.integers(1, 4))
def test_a_row_meets_what_users_compute_of_its_last_instants(
    rows: list[tuple[object, ...]], size: int
) -> None:
    plain = over("COUNT(*)", "PARTITION BY kind", 1)
    user = UserAggregate("largest", (BIGINT,), BIGINT, "1", Largest())
    call: AggregateCall = resolve_user_aggregate(user, (column(plain.input, 0),))
    assert function_of(call) is not FUNCTIONS["MAX"]
    node = Over(plain.input, plain.keys, (("value", call, RangeFrame(Duration(size))),))
    assert evaluate(node, streams(rows, 0)) == evaluate(joined(node), streams(rows, 0))
