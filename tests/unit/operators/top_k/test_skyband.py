"""What top-k leaves out before an exchange, and what it forgets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import Source, TopK
from headrace.algebra.properties import has_skyband
from headrace.elements import Batch, from_rows, to_rows
from headrace.expressions.tree import Column, SortKey
from headrace.operators.contract import OperatorProgress
from headrace.operators.top_k.skyband import reachable
from headrace.operators.top_k.top_k import TopKOperator
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, UNKNOWN, Field, Schema
from headrace.time import BEGINNING, INFINITY, TimeDomain
from how_many import examples

SCHEMA = Schema((Field("k", BIGINT), Field("v", BIGINT)))
K, V = (Column(place, field.name, field.type) for place, field in enumerate(SCHEMA))
ROWS = Source("rows", SCHEMA, "t", TimeDomain.INTEGER)
HIGHEST = (SortKey(V, descending=True, nulls_first=False),)


def some_rows(count: int, length: int) -> Batch:
    """One row per instant that lasts for `length`, with random values."""
    values = np.random.default_rng(1).integers(0, 10**6, count).tolist()
    return from_rows(SCHEMA, [((1, value), ts, ts + length, 1) for ts, value in enumerate(values)])


@st.composite
def elements(draw: st.DrawFn) -> list[tuple[tuple[int, int | None], int, int, int]]:
    rows = []
    for _ in range(draw(st.integers(0, 25))):
        ts = draw(st.integers(0, 10))
        te = draw(st.one_of(st.integers(ts + 1, ts + 8), st.just(ts + 4), st.just(INFINITY)))
        payload = (draw(st.integers(0, 1)), draw(st.one_of(st.none(), st.integers(0, 9))))
        rows.append((payload, ts, te, draw(st.sampled_from([1, 1, 2]))))
    return rows


@examples(17)
@given(
    rows=elements(),
    keys=st.sampled_from([(), (K,)]),
    order=st.sampled_from([(), HIGHEST, (SortKey(K), *HIGHEST)]),
    limit=st.integers(1, 3),
    offset=st.integers(0, 1),
)
def test_no_row_is_left_out_that_is_ever_shown(
    rows: list[Element], keys: tuple[Column, ...], order: tuple[SortKey, ...], limit: int, offset: int
) -> None:
    plan = TopK(ROWS, keys, order, limit, offset)
    left = to_rows(reachable(plan, from_rows(SCHEMA, rows)))
    assert evaluate(plan, {"rows": Stream(SCHEMA.names, left)}) == evaluate(
        plan, {"rows": Stream(SCHEMA.names, rows)}
    )


def test_rows_that_nothing_tells_apart_share_the_first_rank() -> None:
    """As with ORDER BY NULL: no row is behind another one, whatever else is in it."""
    schema = Schema((Field("v", BIGINT), Field("n", UNKNOWN)))
    source = Source("rows", schema, "t", TimeDomain.INTEGER)
    plan = TopK(source, (), (SortKey(Column(1, "n", UNKNOWN)),), 1, ranking=Ranking.RANK)
    rows = [((value, None), 0, 9, 1) for value in (1, 3, 2)]
    assert sorted(to_rows(reachable(plan, from_rows(schema, rows)))) == sorted(rows)


def test_few_rows_of_a_long_window_are_left() -> None:
    plan = TopK(ROWS, (), HIGHEST, 10)
    assert len(reachable(plan, some_rows(10_000, 100_000))) < 400
    assert len(reachable(plan, some_rows(10_000, 1_000))) < 3_000


def test_few_rows_of_a_tumbling_window_are_left() -> None:
    rows = some_rows(10_000, 1)
    instant = np.zeros(len(rows), dtype=np.int64)
    batch = Batch(rows.payload, instant, instant + 10, rows.w)
    assert len(reachable(TopK(ROWS, (), HIGHEST, 10), batch)) < 400


def test_state_holds_what_can_still_be_shown() -> None:
    operator = TopKOperator(TopK(ROWS, (), HIGHEST, 10), reduced=False)
    operator.process(0, some_rows(10_000, 100_000))
    operator.advance(OperatorProgress((BEGINNING,), (10_000,)))
    assert len(operator.areas["rows"]) < 300
    assert sum(map(len, operator.areas.values())) < 1_000


def test_places_that_need_every_row_have_no_skyband() -> None:
    assert has_skyband(TopK(ROWS, (), HIGHEST, 3, 2, "place"))
    assert has_skyband(TopK(ROWS, (), HIGHEST, 3, ranking=Ranking.RANK))
    assert not has_skyband(TopK(ROWS, (), HIGHEST, 3, ranking=Ranking.DENSE_RANK))
    assert not has_skyband(TopK(ROWS, (), HIGHEST, number="place"))
    assert not has_skyband(TopK(TopK(ROWS, (), HIGHEST, 5), (), HIGHEST, 0))
