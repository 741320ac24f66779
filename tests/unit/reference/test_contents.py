from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.algebra.nodes import Aggregate, Filter, Join, Project, Source, column
from headrace.errors import ExecutionError, HistoryError
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Column, Expression
from headrace.reference.aggregates import aggregate
from headrace.reference.contents import Stream, content_at, history_of, payload
from headrace.reference.operators import DeadLetter, evaluate
from headrace.schema import BIGINT, DOUBLE, Field, Schema
from headrace.time import INFINITY, TimeDomain

NUMBERS = Source("n", Schema((Field("a", BIGINT), Field("b", BIGINT))), "t", TimeDomain.INTEGER)
A, B = column(NUMBERS, 0), column(NUMBERS, 1)


def stream(*rows: tuple[int | None, int | None]) -> dict[str, Stream]:
    """The rows at instants 0, 1 ..., in columns that the source reads in another order."""
    return {"n": Stream(("B", "A"), [((b, a), at, at + 1, 1) for at, (a, b) in enumerate(rows)])}


def test_contents_add_up() -> None:
    elements = [(("x",), 1, 5, 2), (("x",), 3, 9, -1), (("y",), 4, INFINITY, 1)]
    assert content_at(elements[:1], 3) == {("x",): 2}
    assert content_at(elements, 4) == {("x",): 1, ("y",): 1}
    with pytest.raises(HistoryError, match="below zero at 6"):
        content_at(elements, 6)


def test_payloads_are_equal_as_in_grouping() -> None:
    assert payload((-0.0, math.nan, None)) == payload((0.0, -math.nan, None))
    assert payload((None,)) != payload((0,))


def test_histories_are_layered_and_sorted() -> None:
    one, two = payload(("a",)), payload((None,))
    history = history_of(
        {1: Counter({one: 2}), 4: Counter({one: 1, two: 1}), 6: Counter({two: 1}), 8: Counter()}
    )
    assert history == [(one, 1, 4), (one, 1, 6), (two, 4, 8)]
    assert history_of({3: Counter({one: 1})}) == [(one, 3, INFINITY)]


def test_sources_are_read_by_name() -> None:
    assert evaluate(NUMBERS, stream((1, 2))) == [((1, 2), 0, 1)]


def quotient() -> Expression:
    return resolve("DIV", (A, B))


def test_failing_rows_are_left_out_and_noted() -> None:
    errors: list[DeadLetter] = []
    plan = Project(NUMBERS, (("q", quotient()),))
    assert evaluate(plan, stream((6, 3), (1, 0)), errors) == [((2,), 0, 1)]
    assert errors == [DeadLetter(plan, (1, 0), "division by zero")]


def test_a_filter_keeps_what_is_true() -> None:
    plan = Filter(NUMBERS, resolve(">", (quotient(), literal(0))))
    errors: list[DeadLetter] = []
    assert evaluate(plan, stream((6, 3), (-6, 3), (None, 1), (1, 0)), errors) == [((6, 3), 0, 1)]
    assert [error.row for error in errors] == [(1, 0)]


def test_a_group_lacks_the_rows_that_fail() -> None:
    plan = Aggregate(NUMBERS, (("k", A),), (("s", resolve_aggregate("SUM", quotient())),))
    streams = {"n": Stream(("a", "b"), [((6, 3), 0, 9, 1), ((6, 0), 0, 9, 1), ((7, 0), 0, 9, 1)])}
    errors: list[DeadLetter] = []
    assert evaluate(plan, streams, errors) == [((6, 2), 0, 9)]
    assert len(errors) == 2


def test_null_joins_nothing_and_failing_keys_are_noted() -> None:
    join = Join(NUMBERS, NUMBERS, ((A, quotient()),), None, ("a", "b", "c", "d"))
    streams = {"n": Stream(("a", "b"), [((1, 1), 0, 9, 1), ((None, 1), 0, 9, 1), ((3, 0), 0, 9, 1)])}
    errors: list[DeadLetter] = []
    assert evaluate(join, streams, errors) == [((1, 1, 1, 1), 0, 9)]
    assert [error.row for error in errors] == [(3, 0)]


def test_a_sum_beyond_its_type_ends_the_query() -> None:
    plan = Aggregate(NUMBERS, (), (("s", resolve_aggregate("SUM", A)),))
    streams = {"n": Stream(("a", "b"), [((2**63 - 1, 0), 0, 2, 1), ((1, 0), 1, 3, 1)])}
    with pytest.raises(ExecutionError, match="SUM overflows BIGINT"):
        evaluate(plan, streams)


@pytest.mark.parametrize(
    ("name", "values", "result"),
    [
        ("COUNT", [1, None, 1], 2),
        ("SUM", [None, None], None),
        ("SUM", [2**62, 2**62, -(2**62)], 2**62),
        ("SUM", [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ("SUM", [0.1] * 10, 1.0),
        ("SUM", [math.inf, -math.inf], math.nan),
        ("SUM", [math.inf, 1.0], math.inf),
        ("AVG", [1, 2, None], 1.5),
        ("AVG", [Decimal("0.01"), Decimal("0.02")], 0.015),
        ("MIN", [2.0, math.nan], 2.0),
        ("MAX", [2.0, math.nan], math.nan),
        ("MAX", ["b", "é", None], "é"),
        ("VARIANCE", [1, 2, 3, 4], 5 / 3),
        ("VARIANCE", [7], None),
        ("VARIANCE", [1.0, math.inf], math.nan),
        ("STDDEV", [2, 4], math.sqrt(2)),
        ("STDDEV", [7], None),
    ],
)
def test_aggregates(name: str, values: list[Any], result: Any) -> None:
    some = next((value for value in values if value is not None), 1)
    dtype = {int: BIGINT, float: DOUBLE, str: pa.string(), Decimal: pa.decimal128(5, 2)}[type(some)]
    found = aggregate(resolve_aggregate(name, Column(0, "x", dtype)), [(value,) for value in values])
    assert found == result or (found != found and result != result)
