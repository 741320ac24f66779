"""Correlated aggregates: of the rows that compare in some way with an aggregate of their own group."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.reference.contents import NAN, order, payload
from how_many import examples

ROWS = st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0, 1, 3, 8, 40]), st.integers(0, 3))
TEXT = (
    "SELECT k, COUNT(*) FILTER (WHERE v >= AVG(v)) AS above, "
    "SUM(v) FILTER (WHERE v <= 2 * MIN(v) + 1) AS low, "
    "COUNT_IF(v = MAX(v) FILTER (WHERE v < 40)) AS top, MAX(v) AS most FROM s [RANGE 9] "
    "WHERE k IS NOT NULL GROUP BY k HAVING COUNT(*) FILTER (WHERE v >= AVG(v)) < 5"
)


def expected(rows: list[dict[str, Any]], instant: int) -> list[tuple[Any, ...]]:
    """The answer, word by word."""
    found = []
    for key in "ab":
        live = [row["v"] for row in rows if row["k"] == key and instant - 9 < row["ts"] <= instant]
        known = [value for value in live if value is not None]
        above = sum(value * len(known) >= sum(known) for value in known)
        low = [value for value in known if value <= 2 * min(known) + 1]
        few = [value for value in known if value < 40]
        top = sum(value == max(few) for value in known) if few else 0
        if live and above < 5:
            found.append((key, above, sum(low) if low else None, top, max(known, default=None)))
    return found


@examples(8, 60)
@given(rows=st.lists(ROWS, min_size=1, max_size=40), every=st.integers(1, 12))
def test_rows_are_compared_with_their_own_group(rows: list[tuple[str, int | None, int]], every: int) -> None:
    pushed: list[dict[str, Any]] = [
        {"k": k, "v": v, "ts": 2 * at + back} for at, (k, v, back) in enumerate(rows)
    ]
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3")
        query = db.query(TEXT, name="q")
        db.start()
        for at in range(0, len(pushed), every):
            db.push("s", pushed[at : at + every])
        for instant in range(max(row["ts"] for row in pushed) - 3):
            answer = [tuple(row.values()) for row in query.snapshot(instant).to_pylist()]
            assert sorted(answer, key=str) == sorted(expected(pushed, instant), key=str), instant


VALUES: dict[str, tuple[Any, ...]] = {
    "BIGINT": (None, -40, -1, 0, 1, 3, 8, 40),
    "DOUBLE": (None, NAN, -2.5, -0.0, 0.25, 1.0, 8.0),
    "DECIMAL(6, 2)": (None, Decimal("-7.25"), Decimal("0.00"), Decimal("0.50"), Decimal("3.00")),
}
INDEPENDENT: dict[str, Callable[[list[Any]], Any]] = {
    "MIN(x)": lambda known: min(known, key=order),
    "MAX(x)": lambda known: max(known, key=order),
    "AVG(x)": lambda known: _mean(known),
    "MEDIAN(x)": lambda known: _quantile(known, Fraction(1, 2)),
    "PERCENTILE(x, 0.75)": lambda known: _quantile(known, Fraction(3, 4)),
}
DEPENDENT: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT(*)": len,
    "SUM(x)": lambda taken: sum(taken[1:], taken[0]) if taken else None,
    "AVG(x)": lambda taken: _mean(taken) if taken else None,
    "MIN(x)": lambda taken: min(taken, key=order, default=None),
    "MAX(x)": lambda taken: max(taken, key=order, default=None),
}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    ">=": lambda one, other: order(one) >= order(other),
    ">": lambda one, other: order(one) > order(other),
    "<": lambda one, other: order(one) < order(other),
    "<=": lambda one, other: order(one) <= order(other),
}
SPELLINGS = {
    "filter": "SELECT {key}{call} FILTER (WHERE x {sign} {other}) AS n FROM s {window}{group}",
    "over": "SELECT {key}{call} AS n FROM (SELECT k, x, {other} OVER ({part}) AS o FROM s {window}) "
    "WHERE x {sign} o{group}",
    "subquery": "SELECT {key}{call} AS n FROM s {window} AS outer_s "
    "WHERE x {sign} (SELECT {other} FROM s {window} AS inner_s{tie}){group}",
}


def _odd(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _mean(known: list[Any]) -> Any:
    return NAN if any(map(_odd, known)) else sum(map(Fraction, known), Fraction(0)) / len(known)


def _near(value: Any) -> Any:
    """A number without the last digits of DOUBLEs and of averages of DECIMALs."""
    return value if value is None or isinstance(value, str) or _odd(value) else round(float(value), 5) + 0.0


def _quantile(known: list[Any], share: Fraction) -> Any:
    """The value at a share of the way from the least to the greatest, between two values by the way there."""
    ordered = sorted(known, key=order)
    place = share * (len(ordered) - 1)
    low, high = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
    if place.denominator == 1:
        return low
    return NAN if _odd(low) or _odd(high) else Fraction(low) + (Fraction(high) - Fraction(low)) * (place % 1)


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, str, str, str, str, bool, int | None]:
    """A spelling, the aggregates, the comparison, the type of x, whether there are groups, and the window."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    call, other = draw(st.sampled_from(sorted(DEPENDENT))), draw(st.sampled_from(sorted(INDEPENDENT)))
    spelling, sign = draw(st.sampled_from(sorted(SPELLINGS))), draw(st.sampled_from(sorted(COMPARED)))
    return spelling, call, other, sign, kind, draw(st.booleans()), draw(st.sampled_from([1, 7, None]))


def text_of(spelling: str, call: str, other: str, sign: str, keyed: bool, window: int | None) -> str:
    return SPELLINGS[spelling].format(
        call=call, other=other, sign=sign, key="k, " if keyed else "",
        window="[RANGE UNBOUNDED]" if window is None else f"[RANGE {window}]",
        group=" GROUP BY k" if keyed else "", part="PARTITION BY k" if keyed else "",
        tie=" WHERE inner_s.k = outer_s.k" if keyed else "",
    )  # fmt: skip


def told(
    rows: list[dict[str, Any]], instant: int, question: tuple[str, str, str, str, str, bool, int | None]
) -> list[tuple[Any, ...]]:
    """The answer by the definition: the aggregate of all, then that of the rows that compare so with it."""
    spelling, call, other, sign, _, keyed, window = question
    since = -(10**9) if window is None else instant - window
    live = [row for row in rows if since < row["ts"] <= instant]
    found = []
    for key in "ab" if keyed else [None]:
        own = [row["x"] for row in live if key in (None, row["k"])]
        known = [value for value in own if value is not None]
        bound = INDEPENDENT[other](known) if known else None
        taken = [] if bound is None else [one for one in known if COMPARED[sign](one, bound)]
        # FILTER is of a group of rows; WHERE leaves a group without any of them.
        if own if spelling == "filter" else taken:
            found.append((*([key] if keyed else []), DEPENDENT[call](taken)))
    return found


@examples(12, 150)
@given(
    question=asked(),
    places=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 7), st.integers(0, 3)), max_size=24),
    begin=st.sampled_from([-20, 0]),
    every=st.integers(1, 9),
)
def test_every_aggregate_is_compared_with_in_every_spelling(
    question: tuple[str, str, str, str, str, bool, int | None],
    places: list[tuple[str, int, int]],
    begin: int,
    every: int,
) -> None:
    spelling, call, other, sign, kind, keyed, window = question
    pool = VALUES[kind]
    rows: list[dict[str, Any]] = [
        {"k": k, "x": pool[place % len(pool)], "ts": begin + 2 * at + back}
        for at, (k, place, back) in enumerate(places)
    ]
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s (k STRING, x {kind}, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3")
        query = db.query(text_of(spelling, call, other, sign, keyed, window), name="q")
        db.start()
        for at in range(0, len(rows), every):
            db.push("s", rows[at : at + every])
        db.stop()
        for instant in range(begin, max((row["ts"] for row in rows), default=begin) - 3):
            found = [payload(map(_near, row.values())) for row in query.snapshot(instant).to_pylist()]
            expected = [payload(map(_near, row)) for row in told(rows, instant, question)]
            assert sorted(found, key=repr) == sorted(expected, key=repr), (instant, question)
