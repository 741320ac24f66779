"""Estimates of hostile rows, from text to answer: the definition, within what it promises."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.nodes import ApproximateAggregate
from headrace.algebra.properties import walk
from headrace.expressions.aggregates.within import is_sampled, sample_size
from headrace.expressions.tree import AggregateCall, Side
from headrace.reference.aggregates import aggregate
from headrace.reference.contents import NAN, Payload, payload
from headrace.reference.summaries import approximate
from how_many import examples

VALUES: dict[str, tuple[Any, ...]] = {
    "BIGINT": (None, 0, 1, 2, 3, 7, 40, 10**12),
    "DOUBLE": (None, NAN, -0.0, 0.0, -2.5, 1e300, math.inf, 0.25),
    "DECIMAL(6, 2)": (None, Decimal("-7.25"), Decimal("0.00"), Decimal("0.50"), Decimal("9999.99")),
    "STRING": (None, "", "a", "A", "ab", "\u00e9", "\u20ac", "a\x00"),
    "TIMESTAMP": (None, datetime(1969, 12, 31, tzinfo=UTC), datetime(2024, 2, 29, 1, tzinfo=UTC)),
}
OF_ALL = (
    "APPROX_COUNT_DISTINCT(x) WITHIN {sampled} PERCENT AS (n, n_low, n_high)",
    "APPROX_TOP_K(x, 2) WITHIN {sampled} PERCENT AS n",
    "APPROX_PERCENTILE(x, 0.4) WITHIN {sampled} PERCENT AS (n, n_low, n_high)",
    "COUNT(x) WITHIN {percent} PERCENT AS (n, n_low, n_high)",
    "COUNT(*) WITHIN {percent} PERCENT AS (n, n_low, n_high)",
)
OF_NUMBERS = (
    "SUM(x) WITHIN {percent} PERCENT AS (n, n_low, n_high)",
    "AVG(x) WITHIN {percent} PERCENT AS (n, n_low, n_high)",
)


@dataclass(frozen=True)
class Case:
    """The questions, and the rows that they are asked of.

    Attributes:
        kind: the type of x.
        call: the aggregate.
        size: of the window (instants).
        keyed: whether there are groups.
        rows: k, x and ts.
        every: so many of them are pushed together.
    """

    kind: str
    call: str
    size: int
    keyed: bool
    rows: tuple[tuple[str, Any, int], ...]
    every: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(sorted(VALUES)))
    call = draw(st.sampled_from(OF_ALL + OF_NUMBERS * (kind == "BIGINT")))
    percent = draw(st.sampled_from(["0.1", "1", "7.5", "33.3", "50"]))
    sampled = draw(st.sampled_from(["0.5", "2", "20", "50"]))
    begin = draw(st.sampled_from([0, -30, -(10**12), 10**15]))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 30]), max_size=70))
    many = draw(st.booleans()) and kind == "BIGINT"
    rows = []
    for gap in gaps:
        begin += gap
        value = draw(st.integers(0, 10**6) if many else st.sampled_from(VALUES[kind]))
        rows.append((draw(st.sampled_from("aab")), value, begin - draw(st.integers(0, 2))))
    return Case(
        kind,
        call.format(percent=percent, sampled=sampled),
        draw(st.sampled_from([1, 2, 7, 60])),
        draw(st.booleans()),
        tuple(rows),
        draw(st.integers(1, 40)),
    )


def calls_of(query: hr.Query) -> tuple[AggregateCall, ...]:
    (node,) = (part for part in walk(query.plan) if isinstance(part, ApproximateAggregate))
    return tuple(call for _, call in node.aggregates)


def check_promises(call: AggregateCall, found: Any, exact: Any, rows: int) -> None:
    """See that an answer keeps what it promises for certain."""
    assert call.within is not None
    part = Fraction(call.within.percent) / 100
    if is_sampled(call):
        if rows < sample_size(call):
            assert payload([found]) == payload([exact])
        return
    if exact is None:
        assert found is None
        return
    # A mean is rounded to the nearest DOUBLE.
    slack = abs(Fraction(exact)) / 2**50
    match call.within.side:
        case Side.ESTIMATE:
            assert abs(Fraction(found) - Fraction(exact)) <= part * Fraction(exact) + slack
        case Side.LOWER:
            assert Fraction(found) <= Fraction(exact) + slack
        case Side.UPPER:
            assert Fraction(found) >= Fraction(exact) - slack


@examples(15, 150)
@given(cases())
def test_estimates_are_the_definition_within_what_it_promises(case: Case) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (k STRING, x {case.kind}, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2"
        )
        key, group = ("k, ", " GROUP BY k") if case.keyed else ("", "")
        query = db.query(f"SELECT {key}{case.call} FROM s [RANGE {case.size}]{group}", name="q")
        calls = calls_of(query)
        db.start()
        for at in range(0, len(case.rows), case.every):
            part = case.rows[at : at + case.every]
            db.push("s", [{"k": k, "x": x, "ts": ts} for k, x, ts in part])
        db.stop()
        instants = sorted({ts + more for _, _, ts in case.rows for more in (0, 1, case.size - 1, case.size)})
        for instant in instants:
            if instant >= query.heartbeat:
                continue
            found = {
                (row.pop("k") if case.keyed else ""): tuple(row.values())
                for row in query.snapshot(instant).to_pylist()
            }
            expected = told(case, calls, instant)
            assert set(found) == set(expected), (instant, calls)
            for name, answers in found.items():
                assert payload(answers) == payload(value for value, _, _ in expected[name]), (instant, calls)
                for call, answer, (_, exact, rows) in zip(calls, answers, expected[name], strict=True):
                    check_promises(call, answer, exact, rows)


def told(
    case: Case, calls: tuple[AggregateCall, ...], instant: int
) -> dict[str, list[tuple[object, object, int]]]:
    """By group what the definition says of each call, the exact answer, and the number of rows."""
    answers: dict[str, list[tuple[object, object, int]]] = {}
    for key in {k if case.keyed else "" for k, _, _ in case.rows}:
        own = [(x, ts) for k, x, ts in case.rows if not case.keyed or k == key]
        live = [x for x, ts in own if instant - case.size < ts <= instant]
        if not live:
            continue
        answers[key] = []
        for call in calls:
            begun: dict[int, list[Payload]] = {}
            for x, ts in own:
                if ts <= instant:
                    begun.setdefault(ts, []).append(() if call.argument is None else (x,))
            rows: list[Payload] = [() if call.argument is None else (x,) for x in live]
            exact = aggregate(replace(call, within=None), rows)
            answers[key].append((approximate(call, begun, case.size, instant), exact, len(live)))
    return answers
