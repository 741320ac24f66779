"""Every aggregate over groups of NULLs between groups of values, in every window, frame and cut.

What is kept of a group with no value is nothing, so what says where its values begin and end must not take
those of the group beside it.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driving import Arriving, drive, standing_for
from headrace.algebra.nodes import Source
from headrace.algebra.properties import walk
from headrace.elements import concat, from_rows, to_rows
from headrace.expressions.aggregates.aggregates import APPROXIMATE, COMPOSED
from headrace.expressions.aggregates.functions import FUNCTIONS
from headrace.history import canonical, clip, equivalent
from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, UNKNOWN, Field, Schema
from headrace.time import INFINITY, TimeDomain
from how_many import examples

SCHEMA = Schema(
    (
        Field("k", BIGINT),
        Field("v", BIGINT),
        Field("s", STRING),
        Field("b", BOOLEAN),
        Field("x", DOUBLE),
        Field("n", UNKNOWN),
        Field("ts", BIGINT),
    )
)
CATALOG = Catalog().define(StreamInfo("g", SCHEMA, "ts", TimeDomain.INTEGER))
CALLS = (
    "ARRAY_AGG(v)",
    "ARRAY_AGG(n)",
    "ARRAY_AGG(ARRAY(v, 1) ORDER BY s)",
    "ARRAY_AGG(DISTINCT ARRAY(STRUCT(s AS a, n AS b)))",
    "ARRAY_AGG(DISTINCT s)",
    "ARRAY_AGG(s ORDER BY v DESC, ts)",
    "AUTOCORR(v, 1 ORDER BY ts)",
    "AVG(v)",
    "AVG(DISTINCT x)",
    "BIT_AND(v)",
    "BIT_OR(v)",
    "BIT_OR(v) FILTER (WHERE b)",
    "BIT_XOR(v)",
    "BOOL_AND(b)",
    "BOOL_OR(b)",
    "CORR(v, x)",
    "COUNT(v)",
    "COUNT(DISTINCT v)",
    "COUNT(DISTINCT v, s)",
    "COUNT_IF(b)",
    "CORRELATED_PAIRS(s, ts, x, 1, 0.3, -0.3, 1, 2)",
    "COVAR_POP(v, x)",
    "COVAR_SAMP(v, x)",
    "EWMA(v, 0.5 ORDER BY ts)",
    "EWM_STDDEV(x, 0.5 ORDER BY ts)",
    "FIRST(v ORDER BY s, x)",
    "FIRST(n ORDER BY n)",
    "FIRST(v ORDER BY n)",
    "LAST(s ORDER BY v)",
    "LAST(v ORDER BY v) FILTER (WHERE b)",
    "MAX(v)",
    "MAX(s) FILTER (WHERE b)",
    "MAX(n)",
    "MAX(ARRAY(v, 1))",
    "MEDIAN(v)",
    "MIN(b)",
    "MIN(x)",
    "MODE(v)",
    "MODE(s)",
    "MODE(n)",
    "MODE(STRUCT(v AS a, s AS b))",
    "MODE() WITHIN GROUP (ORDER BY v DESC)",
    "MODE(v) FILTER (WHERE b)",
    "PERCENTILE(v, 0.3)",
    "PERCENTILE(x, 1)",
    "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY v)",
    "PERCENTILE_DISC(0.6) WITHIN GROUP (ORDER BY s DESC)",
    "PERCENTILE_DISC(0.6) WITHIN GROUP (ORDER BY n)",
    *(f"REGR_{name}(v, x)" for name in ("AVGX", "AVGY", "COUNT", "INTERCEPT", "R2", "SLOPE")),
    *(f"REGR_{name}(v, x)" for name in ("SXX", "SXY", "SYY")),
    "STDDEV(v)",
    "STDDEV_POP(DISTINCT v)",
    "SUM(v)",
    "SUM(x) FILTER (WHERE b)",
    "TOP_K(v, 2)",
    "TOP_K(s, 1)",
    "TOP_K(n, 3)",
    "TOP_K(ARRAY(x, 1), 2)",
    "TOP_K(s, 2) FILTER (WHERE b)",
    "VARIANCE(v)",
    "VAR_POP(x)",
    "MAX_BY(v, s)",
    "MIN_BY(s, v)",
    "MAX_BY(v, n)",
    "STRING_AGG(s, ',')",
    "LISTAGG(v) WITHIN GROUP (ORDER BY v DESC)",
    "GROUP_CONCAT(s) FILTER (WHERE b)",
    "THETA_SKETCH_AGG(v)",
    "THETA_SKETCH_AGG(s, 4) FILTER (WHERE b)",
    "THETA_SKETCH_AGG(CAST(x AS DOUBLE))",
    "THETA_UNION_AGG(THETA_SKETCH(ARRAY(THETA_HASH(s))), 5)",
    "KLL_SKETCH_AGG_BIGINT(v)",
    "KLL_SKETCH_AGG_BIGINT(DISTINCT v, 8)",
    "KLL_SKETCH_AGG_DOUBLE(x) FILTER (WHERE b)",
    "KLL_MERGE_AGG_BIGINT(KLL_SKETCH_BIGINT(ARRAY(v)), 8)",
    "KLL_MERGE_AGG_DOUBLE(KLL_SKETCH_DOUBLE(ARRAY(x)))",
)
SAMPLED = (
    "APPROX_COUNT_DISTINCT(v)",
    "APPROX_COUNT_DISTINCT(n) WITHIN 5 PERCENT",
    "APPROX_COUNT_DISTINCT(ARRAY(STRUCT(s AS a, v AS b)))",
    "APPROX_PERCENTILE(x, 0.3)",
    "APPROX_PERCENTILE(v, 0.5) FILTER (WHERE b) WITHIN 50 PERCENT",
    "APPROX_PERCENTILE(s, 1)",
    "APPROX_PERCENTILE(n, 0)",
    "APPROX_TOP_K(s, 2)",
    "APPROX_TOP_K(v, 1) WITHIN 50 PERCENT",
    "COUNT(DISTINCT s) WITHIN 50 PERCENT",
    "PERCENTILE_DISC(0.6) WITHIN GROUP (ORDER BY s DESC) WITHIN 50 PERCENT",
)

LASTING = {
    "contents": "SELECT k, {} FROM g [NOW] GROUP BY k",
    "one group": "SELECT {} FROM g [NOW]",
    "some groups": "SELECT k FROM g [NOW] GROUP BY k HAVING (STRUCT({})) IS NOT DISTINCT FROM STRUCT({}) ",
    "aggregates of aggregates": "SELECT k, {} FROM (SELECT k, s, b, n, ts, MAX(v) AS v, MIN(x) AS x "
    "FROM g [NOW] GROUP BY k, s, b, n, ts) AS t GROUP BY k",
}
"""Queries of what holds for a time and is taken back: relations, change logs, answers of other queries."""

INSTANTS = {
    "now": "SELECT k, {} FROM g [NOW] GROUP BY k",
    "range": "SELECT k, {} FROM g [RANGE 3] GROUP BY k",
    "slide": "SELECT k, {} FROM g [RANGE 4 SLIDE 2] GROUP BY k",
    "rows": "SELECT k, {} FROM g [ROWS 2] GROUP BY k",
    "rows of each": "SELECT k, {} FROM g [PARTITION BY k ROWS 2] GROUP BY k",
    "unbounded": "SELECT k, {} FROM g [RANGE UNBOUNDED] GROUP BY k",
    "lifetimes": "SELECT k, {} FROM g WINDOW(LIFETIME (ts, COALESCE(v, 2))) GROUP BY k",
    "tumble": "SELECT k, {} FROM TUMBLE(TABLE g, DESCRIPTOR(ts), 4) GROUP BY window_start, window_end, k",
    "session": "SELECT k, {} FROM SESSION(TABLE g, DESCRIPTOR(ts), 2) GROUP BY window_start, window_end, k",
    "all": "SELECT {} FROM g [RANGE 3]",
    "all, if there is none": "SELECT {} FROM g [RANGE 3] EMIT EMPTY",
}
"""Queries of windows."""

FRAMES = {
    "rows before": "PARTITION BY k ORDER BY ts ROWS 1 PRECEDING",
    "earlier rows": "PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "range before": "PARTITION BY k ORDER BY ts RANGE 3 PRECEDING",
    "so far": "PARTITION BY k ORDER BY ts",
    "partitions": "PARTITION BY k",
    "places": "PARTITION BY k ORDER BY s, x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
}
"""Frames of OVER: the last two are of rows that hold."""


@st.composite
def arrivals(draw: st.DrawFn, retracted: bool, lasting: bool) -> list[tuple[Element, int]]:
    """Elements with their epochs. In some groups all values are NULL, often one between two others."""
    empty = draw(st.sets(st.integers(0, 4), max_size=4))
    found: list[tuple[Element, int]] = []
    values = st.tuples(
        st.sampled_from((1, 2, 6, None)),
        st.sampled_from(("a", "b", None)),
        st.sampled_from((True, False, None)),
        st.sampled_from((0.5, 2.0, None)),
    )
    for k in draw(st.lists(st.integers(0, 4), max_size=12)):
        ts = draw(st.integers(0, 9))
        row = (k, *((None,) * 4 if k in empty else draw(values)), None, ts)
        te = ts + draw(st.integers(1, 6)) if lasting else ts + 1
        found.append(((row, ts, te, 1), draw(st.integers(0, 2))))
        if retracted and draw(st.booleans()):
            start = draw(st.integers(ts, te - 1))
            found.append(((row, start, te, -1), draw(st.integers(0, 2))))
    return found


def plan_of(text: str) -> Any:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return bind(statement.query, CATALOG)


def check(text: str, arrived: list[tuple[Element, int]], *, insert_only: bool, chronons: bool) -> None:
    """The operators answer as the reference, below each heartbeat."""
    plan = plan_of(text)
    # A text over the signed content of a stream sees each element as it is.
    known = {"g": standing_for(source_of(plan), chronons=chronons, insert_only=insert_only)}
    elements = [element for element, _ in arrived]
    answer = evaluate(plan, {"g": Stream(SCHEMA.names, elements)})
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in answer])
    epochs = []
    for epoch in range(3):
        later = [element[1] for element, arrival in arrived if arrival > epoch]
        heartbeat = min(later, default=INFINITY)
        some = [element for element, arrival in arrived if arrival == epoch]
        epochs.append(Arriving({"g": some}, {"g": heartbeat}))
    found = []
    for batch, heartbeat in drive(plan, known, epochs):
        found.append(batch)
        whole = concat(plan.schema, found)
        if not equivalent(whole, expected, heartbeat):
            ours, theirs = (to_rows(canonical(clip(one, heartbeat))) for one in (whole, expected))
            assert ours == theirs, text
            raise AssertionError("different contents with equal texts")


def source_of(plan: Any) -> Any:
    (found,) = {node for node in walk(plan) if isinstance(node, Source)}
    return found


some_calls = st.lists(st.sampled_from(CALLS), min_size=1, max_size=3, unique=True) | st.just(list(CALLS))


def listed(calls: list[str], after: str = "") -> str:
    return ", ".join(f"{call}{after} AS c{place}" for place, call in enumerate(calls))


def test_every_aggregate_is_among_the_calls() -> None:
    assert {call.partition("(")[0] for call in CALLS} == {*FUNCTIONS, *COMPOSED} - {*APPROXIMATE}
    assert {call.partition("(")[0] for call in SAMPLED} >= {*APPROXIMATE}


@pytest.mark.parametrize("shape", ["now", "range", "slide", "unbounded", "tumble", "all"])
@examples(8, 30)
@given(st.data(), st.booleans())
def test_samples_of_windows(shape: str, data: st.DataObject, retracted: bool) -> None:
    arrived = data.draw(arrivals(retracted, lasting=False))
    check(INSTANTS[shape].format(listed(list(SAMPLED))), arrived, insert_only=not retracted, chronons=True)


@pytest.mark.parametrize("shape", INSTANTS)
@examples(8, 30)
@given(st.data(), some_calls, st.booleans())
def test_windows(shape: str, data: st.DataObject, calls: list[str], retracted: bool) -> None:
    arrived = data.draw(arrivals(retracted, lasting=False))
    check(INSTANTS[shape].format(listed(calls)), arrived, insert_only=not retracted, chronons=True)


@pytest.mark.parametrize("shape", LASTING)
@examples(8, 30)
@given(st.data(), some_calls, st.booleans())
def test_contents(shape: str, data: st.DataObject, calls: list[str], retracted: bool) -> None:
    arrived = data.draw(arrivals(retracted, lasting=True))
    text = LASTING[shape].replace("STRUCT({})", f"STRUCT({', '.join(calls)})").format(listed(calls))
    check(text, arrived, insert_only=not retracted, chronons=False)


@pytest.mark.parametrize("shape", FRAMES)
@examples(8, 30)
@given(st.data(), some_calls, st.booleans())
def test_frames(shape: str, data: st.DataObject, calls: list[str], retracted: bool) -> None:
    holds = shape in ("partitions", "places")
    arrived = data.draw(arrivals(retracted, lasting=False))
    window = " [RANGE 3]" if holds else ""
    text = f"SELECT k, {listed(calls, f' OVER ({FRAMES[shape]})')} FROM g{window}"
    check(text, arrived, insert_only=not retracted, chronons=True)


@examples(10)
@given(rows=st.data())
def test_an_aggregate_of_a_partition_is_that_of_its_group(rows: st.DataObject) -> None:
    """Beside each row is what its group has, of the same type."""
    elements = [element for element, _ in rows.draw(arrivals(False, lasting=True))]
    grouped = plan_of(f"SELECT k, {listed(list(CALLS))} FROM g [NOW] GROUP BY k")
    beside = plan_of(f"SELECT k, {listed(list(CALLS), ' OVER (PARTITION BY k)')} FROM g [NOW]")
    assert beside.schema == grouped.schema
    streams = {"g": Stream(SCHEMA.names, elements)}
    for _, ts, *_ in elements:
        rows_at, groups_at = (
            {row for row, start, end in evaluate(plan, streams) if start <= ts < end}
            for plan in (beside, grouped)
        )
        assert rows_at == groups_at
