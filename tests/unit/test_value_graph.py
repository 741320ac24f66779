"""Value graphs: what they leave out, where that lies between doubles or decimals, how they are written."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.algebra.nodes import SemanticDrop, Source
from headrace.elements import Batch
from headrace.language.parsing.statements.losses import loss_from
from headrace.operators.semantic_drop import BANDS, dropped, worths
from headrace.reference.sampling import is_worth
from headrace.schema import BIGINT, DOUBLE, Field, Schema, decimal
from headrace.steps import WHOLE, Step
from headrace.time import BEGINNING, TimeDomain
from headrace.value_graph import ValueGraph
from how_many import examples

TYPES = {
    DOUBLE: st.floats() | st.sampled_from([0.1, -0.1, 1 / 3, 5e-324, 1e308]),
    BIGINT: st.integers(-(2**63), 2**63 - 1) | st.integers(-4, 4),
    decimal(5, 2): st.integers(-99999, 99999).map(lambda units: Decimal(units).scaleb(-2)),
    decimal(38, 1): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda units: Decimal(f"{units}e-1")),
}
NUMBERS = st.sampled_from([*map(Decimal, ("-1e40", "-2.5", "0", "0.1", "1", "3", "4.005", "1e40", "1e320"))])
SHARES = st.sampled_from([0, 1, 100_000, 250_000, 333_333, 500_000, 999_999, WHOLE])


@st.composite
def graphs(draw: st.DrawFn) -> ValueGraph:
    values = sorted(draw(st.lists(NUMBERS, min_size=1, max_size=5, unique=True)))
    return ValueGraph("x", tuple((value, Decimal(draw(SHARES)) / WHOLE) for value in values))


@examples(300, 3000)
@given(graph=graphs(), threshold=SHARES, dtype=st.sampled_from(list(TYPES)), data=st.data())
def test_the_operator_keeps_what_is_worth_enough(
    graph: ValueGraph, threshold: int, dtype: pa.DataType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(TYPES[dtype] | st.none(), min_size=1, max_size=6))
    ends = [end for between in graph.left_out(threshold) for end in between if end is not None]
    if dtype == DOUBLE:
        # The doubles around where a value begins to be worth enough.
        near = [float(end) for end in ends if abs(end) < 10**300]
        values += [math.nextafter(one, way) for one in near for way in (-math.inf, math.inf)] + near
    if dtype == BIGINT:
        values += [int(end) + more for end in ends for more in (-1, 0, 1) if abs(end) < 2**62]
    if dtype == decimal(5, 2):
        hundredths = [int(end * 100) + more for end in ends for more in (-1, 0, 1) if abs(end) < 900]
        values += [Decimal(units).scaleb(-2) for units in hundredths]
    source = Source("s", Schema((Field("x", dtype), Field("ts", BIGINT))), "ts", TimeDomain.INTEGER)
    loss = f"LOSS TOLERANT BY x {graph.text}"
    node = SemanticDrop(source, ("s",), loss, (Step(BEGINNING, threshold),), place=0, graph=graph)
    at = np.zeros(len(values), dtype=np.int64)
    batch = Batch(pa.record_batch({"x": pa.array(values, dtype), "ts": pa.array(at)}), at, at + 1, at + 1)
    kept = dropped(node, batch).payload.column(0).to_pylist()
    expected = [value for value in values if is_worth(node, (value, 0), 0)]
    assert list(map(repr, kept)) == list(map(repr, expected))


@examples(300, 3000)
@given(graph=graphs(), band=st.integers(0, BANDS), dtype=st.sampled_from(list(TYPES)), data=st.data())
def test_rows_are_counted_by_what_they_are_worth(
    graph: ValueGraph, band: int, dtype: pa.DataType, data: st.DataObject
) -> None:
    # Between such points rows are counted only about so.
    assume(all(abs(value) < 10**300 for value, _ in graph.points))
    values = data.draw(st.lists(TYPES[dtype] | st.none(), min_size=1, max_size=6))
    source = Source("s", Schema((Field("x", dtype), Field("ts", BIGINT))), "ts", TimeDomain.INTEGER)
    loss = f"LOSS TOLERANT BY x {graph.text}"
    at = np.zeros(len(values), dtype=np.int64)
    batch = Batch(pa.record_batch({"x": pa.array(values, dtype), "ts": pa.array(at)}), at, at + 1, at + 1)
    none = SemanticDrop(source, ("s",), loss, place=0, graph=graph)
    rows, utility = worths(none, batch)
    assert rows.sum() == len(values)
    assert utility[-1] == 0
    assert (utility <= rows).all()
    # A millionth to both sides of where a band begins, since utility is computed with doubles here.
    threshold = band * WHOLE // BANDS
    nodes = [
        replace(none, steps=(Step(BEGINNING, min(WHOLE, max(0, threshold + more))),)) for more in (1, -1)
    ]
    low, high = (sum(is_worth(node, (value, 0), 0) for value in values) for node in nodes)
    assert low <= rows[band:].sum() <= high


def test_of_many_rows_some_are_counted() -> None:
    graph = ValueGraph("x", ((Decimal(0), Decimal(0)), (Decimal(100_000), Decimal(1))))
    source = Source("s", Schema((Field("x", BIGINT), Field("ts", BIGINT))), "ts", TimeDomain.INTEGER)
    node = SemanticDrop(source, ("s",), f"LOSS TOLERANT BY x {graph.text}", place=0, graph=graph)
    at = np.zeros(100_000, dtype=np.int64)
    payload = pa.record_batch({"x": pa.array(np.arange(100_000)), "ts": pa.array(at)})
    rows, utility = worths(node, Batch(payload, at, at + 1, at + 1))
    assert rows.sum() == pytest.approx(100_000)
    assert rows[50:].sum() == pytest.approx(50_000, rel=0.1)
    assert utility.sum() == pytest.approx(50_000, rel=0.1)


@examples(40, 500)
@given(graph=graphs())
def test_a_clause_is_read_as_it_is_written(graph: ValueGraph) -> None:
    named = ValueGraph("a`b", graph.points)
    loss = loss_from(f"LOSS TOLERANT BY `a``b` {graph.text}")
    assert loss.values == named
    assert loss_from(loss.text) == loss


@pytest.mark.parametrize(
    ("points", "threshold", "told"),
    [
        ("(0: 0.1, 100: 0.5, 1000: 1)", 500_000, "rows with x below 100 are left out"),
        ("(0: 0.1, 100: 0.5, 1000: 1)", 300_000, "rows with x below 50 are left out"),
        ("(0: 0.1, 100: 0.5, 1000: 1)", 100_000, "all rows are kept"),
        ("(0: 1, 1: 0)", 333_333, "rows with x above 0.666667 are left out"),
        ("(0: 0, 3: 1)", 1, "rows with x below 0.000003 are left out"),
        ("(0: 1, 30: 0.1, 60: 1)", 400_000, "rows with x between 20 and 40 are left out"),
        ("(0: 0.1, 1: 0.5, 3: 0.2)", 500_000, "rows with x below 1 or above 1 are left out"),
        ("(0: 0.4, 7: 1)", 500_000, "rows with x below about 1.16667 are left out"),
        ("(0: 0.4)", 500_000, "rows with x of any value are left out"),
    ],
)
def test_what_is_left_out_is_told(points: str, threshold: int, told: str) -> None:
    graph = loss_from(f"LOSS TOLERANT BY x {points}").values
    assert graph is not None
    assert graph.told(threshold) == told


def test_values_that_are_left_out_are_worth_less() -> None:
    graph = ValueGraph(
        "x", ((Decimal(0), Decimal("0.5")), (Decimal(4), Decimal(0)), (Decimal(8), Decimal(1)))
    )
    assert graph.left_out(250_000) == ((Fraction(2), Fraction(5)),)
    assert graph.left_out(750_000) == ((None, Fraction(7)),)
