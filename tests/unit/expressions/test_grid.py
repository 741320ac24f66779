"""Every function over every combination of awkward arguments, against the reference.

The arguments come as columns and as constants, for these take different ways through the evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from awkward_arguments import EDGES, MONEY, NUMBERS, SHORT, WHOLE, Signature, name_of, signatures
from headrace.elements import from_rows
from headrace.errors import LanguageError
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import literal, make_case, make_cast, make_try_cast, resolve
from headrace.expressions.intervals import make_interval
from headrace.expressions.tree import Column, Expression
from headrace.reference.contents import equal_form
from headrace.reference.scalars import RowError, value
from headrace.schema import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema


def expected(expression: Expression, rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], list[str | None]]:
    results: list[Any] = []
    reasons: list[str | None] = []
    for row in rows:
        try:
            results.append(value(expression, row))
            reasons.append(None)
        except RowError as error:
            results.append(None)
            reasons.append(error.reason)
    return results, reasons


def check(expression: Expression, types: Sequence[pa.DataType], rows: Sequence[tuple[Any, ...]]) -> None:
    schema = Schema(tuple(Field(f"c{place}", dtype) for place, dtype in enumerate(types)))
    # The rows are a view into longer columns.
    batch = from_rows(schema, [(row, 0, 1, 1) for row in (rows[0], *rows)]).payload.slice(1)
    outcome = evaluate(expression, batch)
    results, reasons = expected(expression, rows)
    assert outcome.values.type == expression.type
    found = list(zip(texts(outcome.values), outcome.reasons().to_pylist(), strict=True))
    wanted = list(zip(texts(pa.array(results, expression.type)), reasons, strict=True))
    differences = [(row, *pair) for row, *pair in zip(rows, found, wanted, strict=True) if pair[0] != pair[1]]
    assert differences == []


def texts(values: pa.Array) -> list[str]:
    return [repr(equal_form(one)) for one in values.to_pylist()]


@pytest.mark.parametrize("signature", list(signatures()), ids=name_of)
def test_columns(signature: Signature) -> None:
    name, types = signature
    edges = EDGES if len(types) < 3 else SHORT
    columns = tuple(Column(place, f"c{place}", dtype) for place, dtype in enumerate(types))
    check(resolve(name, columns), types, list(product(*(edges[dtype] for dtype in types))))


@pytest.mark.parametrize("signature", [one for one in signatures() if len(one[1]) > 1], ids=name_of)
def test_constants_behind_a_column(signature: Signature) -> None:
    name, types = signature
    rows = [(edge,) for edge in EDGES[types[0]]]
    for constants in product(*(SHORT[dtype][:5] for dtype in types[1:])):
        arguments = [make_cast(literal(one), dtype) for one, dtype in zip(constants, types[1:], strict=True)]
        check(resolve(name, (Column(0, "c0", types[0]), *arguments)), types[:1], rows)


@pytest.mark.parametrize("signature", [one for one in signatures() if len(one[1]) == 2], ids=name_of)
def test_a_constant_before_a_column(signature: Signature) -> None:
    name, (first, second) = signature
    rows = [(edge,) for edge in EDGES[second]]
    for constant in EDGES[first]:
        made = make_cast(literal(constant), first)
        check(resolve(name, (made, Column(0, "c0", second))), (second,), rows)


CASTS = [
    (source, target)
    for source in EDGES
    for target in (
        *EDGES,
        pa.decimal128(4, 3),
        pa.decimal128(38, 10),
        pa.decimal128(38, 37),
        pa.decimal256(76, 40),
    )
    if source != target
    and (
        STRING in (source, target)
        or {source, target} == {DATE, TIMESTAMP}
        or not {source, target} & {DATE, TIMESTAMP}
    )
]


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts(source: pa.DataType, target: pa.DataType) -> None:
    check(make_cast(Column(0, "c0", source), target), (source,), [(edge,) for edge in EDGES[source]])


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("digits", [-18, -3, -1, 0, 1, 2, 9])
def test_round(dtype: pa.DataType, digits: int) -> None:
    if dtype == WHOLE and digits < 0:
        with pytest.raises(LanguageError, match="DECIMAL of 77 digits"):
            resolve("ROUND", (Column(0, "c0", dtype), literal(digits)))
        return
    for name in ("ROUND", "TRUNC"):
        expression = resolve(name, (Column(0, "c0", dtype), literal(digits)))
        check(expression, (dtype,), [(edge,) for edge in EDGES[dtype]])


@pytest.mark.parametrize(
    "unit",
    ["MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"],
)
def test_date_trunc(unit: str) -> None:
    for dtype in (DATE, TIMESTAMP):
        expression = resolve("DATE_TRUNC", (literal(unit), Column(0, "c0", dtype)))
        check(expression, (dtype,), [(edge,) for edge in EDGES[dtype]])


UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


@pytest.mark.parametrize("unit", UNITS)
def test_time_between_and_later(unit: str) -> None:
    start, end, count = (Column(0, "c0", TIMESTAMP), Column(1, "c1", TIMESTAMP), Column(1, "c1", BIGINT))
    moments = (
        *EDGES[TIMESTAMP],
        datetime(2024, 3, 31, tzinfo=UTC),
        datetime(2024, 1, 31, 12, 30, 46, tzinfo=UTC),
    )
    difference = resolve("TIMESTAMPDIFF", (literal(unit), start, end))
    check(difference, (TIMESTAMP, TIMESTAMP), list(product(moments, moments)))
    later = resolve("TIMESTAMPADD", (literal(unit), count, start))
    check(later, (TIMESTAMP, BIGINT), list(product(moments, (*EDGES[BIGINT], 1000, -1000, 10**6))))
    for constant in (1, -13):
        moved = resolve("+", (start, make_interval(literal(constant), unit)))
        check(moved, (TIMESTAMP,), [(moment,) for moment in moments])


@pytest.mark.parametrize("name", ["FROM_UTC_TIMESTAMP", "TO_UTC_TIMESTAMP"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "UTC"])
def test_time_zones(name: str, zone: str) -> None:
    start = datetime(2024, 3, 31, tzinfo=UTC)
    hours = [
        (start + timedelta(hours=hour, minutes=hour % 60),) for hour in (*range(-800, 30, 13), *range(-2, 6))
    ]
    apia = [
        (datetime(2011, 12, 29, hour, tzinfo=UTC) + timedelta(days=day),)
        for hour in (0, 9, 10, 11)
        for day in range(3)
    ]
    # Files of time zones list the changes of clocks until 2037, and then give rules.
    far = [
        (datetime(year, month, 15, 12, 7, tzinfo=UTC),)
        for year in (1890, 2036, 2037, 2038, 2100, 9000)
        for month in (1, 7)
    ]
    change = [(datetime(2050, 3, 27, hour, minute, tzinfo=UTC),) for hour in range(4) for minute in (0, 59)]
    expression = resolve(name, (Column(0, "c0", TIMESTAMP), literal(zone)))
    check(expression, (TIMESTAMP,), [(edge,) for edge in EDGES[TIMESTAMP]] + hours + apia + far + change)


def test_the_last_day_of_all() -> None:
    days = [(date(9999, 12, 31),), (date(9999, 12, 1),), (date(2023, 2, 1),), (date(1, 1, 1),)]
    check(resolve("LAST_DAY", (Column(0, "c0", DATE),)), (DATE,), days)


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd", "d/M/yy", "dd MMM yyyy", "h:mm a", "ss.SSS", "yyyyMMddHHmm", "yyyyXXX"]
)
def test_texts_read_by_a_pattern(pattern: str) -> None:
    texts = (
        *(
            None,
            "",
            "2024-02-29",
            "2024-02-30",
            "2024-2-29",
            "29/2/24",
            "30/2/23",
            "29 Feb 2024",
            "29 feb 2024",
        ),
        *("12:30 AM", "1:05 PM", "13:05 PM", "0:10 AM", "07.125", "7.125", "202402291230", "202402292430"),
        *("2024Z", "2024+01:30", "2024-18:30", "2024+18:00", " 2024-02-29", "2024-02-29 "),
    )
    expression = resolve("TO_TIMESTAMP", (Column(0, "c0", STRING), literal(pattern)))
    check(expression, (STRING,), [(text,) for text in texts])


@pytest.mark.parametrize(
    ("source", "target"), [(STRING, BIGINT), (STRING, DATE), (DOUBLE, MONEY), (STRING, MONEY)]
)
def test_try_cast(source: pa.DataType, target: pa.DataType) -> None:
    expression = make_try_cast(Column(0, "c0", source), target)
    check(expression, (source,), [(edge,) for edge in EDGES[source]])


@pytest.mark.parametrize("pattern", ["", "a", "[a-z]+", "(a)(B)?", "^.", "é|ß"])
def test_regular_expressions_that_replace(pattern: str) -> None:
    rows, text = [(edge,) for edge in EDGES[STRING]], Column(0, "c0", STRING)
    check(resolve("REGEXP_COUNT", (text, literal(pattern))), (STRING,), rows)
    for by in ("", "-", r"\$\\", "<$1>" if "(" in pattern else "<$0>"):
        check(resolve("REGEXP_REPLACE", (text, literal(pattern), literal(by))), (STRING,), rows)


@pytest.mark.parametrize(
    "pattern", ["", "%", "a%", "%a", "_", "a_a", "%a%", r"b\%", r"\_", "a%b", ".*", "[ab]", "é"]
)
def test_like(pattern: str) -> None:
    expression = resolve("LIKE", (Column(0, "c0", STRING), literal(pattern)))
    check(expression, (STRING,), [(edge,) for edge in EDGES[STRING]])


@pytest.mark.parametrize(
    "pattern",
    ["", "a", "^a", "a$", "b.$", "(?i)AB", "a|é", "[^a]", r"[\[-]", r"\d", r"\s", "(a)(B)?", "a\nb"],
)
def test_regular_expressions(pattern: str) -> None:
    rows = [(edge,) for edge in EDGES[STRING]]
    text = Column(0, "c0", STRING)
    check(resolve("REGEXP_LIKE", (text, literal(pattern))), (STRING,), rows)
    groups = pattern.replace("(?i)", "").count("(")
    for group in range(groups + 1):
        check(resolve("REGEXP_EXTRACT", (text, literal(pattern), literal(group))), (STRING,), rows)


def test_split_part() -> None:
    types = (STRING, STRING, BIGINT)
    columns = tuple(Column(place, f"c{place}", dtype) for place, dtype in enumerate(types))
    texts = (None, "", "a", "a/b/c", "/a", "a//", "é/ß", "a//b//c")
    numbers = (None, -(2**63), *range(-4, 5), 2**63 - 1)
    check(resolve("SPLIT_PART", columns), types, list(product(texts, (None, "", "/", "//", "ß"), numbers)))


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd", "HH:mm:ss.SSSSSS", "y M d E a h", "EEEE d MMMM yy", "'at' H''m"]
)
def test_date_format(pattern: str) -> None:
    for dtype in (DATE, TIMESTAMP):
        expression = resolve("DATE_FORMAT", (Column(0, "c0", dtype), literal(pattern)))
        check(expression, (dtype,), [(edge,) for edge in EDGES[dtype]])


# --- forms that look at their parts one after the other ----------------------------------------------------

X, Y, Z = (Column(place, f"c{place}", BIGINT) for place in range(3))
FEW = (None, 0, 1, 2)


def fails_at_zero(column: Column) -> Expression:
    return resolve(">", (resolve("DIV", (literal(2), column)), literal(1)))


LAZY = {
    "AND": resolve("AND", (fails_at_zero(X), fails_at_zero(Y))),
    "OR": resolve("OR", (fails_at_zero(X), fails_at_zero(Y))),
    "AND OR": resolve("OR", (resolve("AND", (fails_at_zero(X), fails_at_zero(Y))), fails_at_zero(Z))),
    "COALESCE": resolve("COALESCE", tuple(resolve("DIV", (literal(2), column)) for column in (X, Y, Z))),
    "CASE": make_case(
        (
            (fails_at_zero(X), resolve("DIV", (literal(8), Y))),
            (fails_at_zero(Y), resolve("%", (literal(8), Z))),
        ),
        resolve("+", (resolve("DIV", (literal(5), Z)), resolve("*", (Y, literal(2**63 - 1))))),
    ),
    "CASE with equal branches": make_case(
        ((resolve(">", (X, literal(0))), Y), (resolve("IS NULL", (Y,)), resolve("DIV", (Y, Z)))), None
    ),
    "IS NULL of what fails": resolve("IS NULL", (resolve("DIV", (X, Y)),)),
    "IN of what fails": resolve("IN", (X, Y, resolve("DIV", (literal(1), Z)))),
    "two reasons": resolve("+", (resolve("DIV", (X, Y)), resolve("+", (Z, literal(2**63 - 2))))),
    "constants that fail": resolve("OR", (resolve(">", (X, literal(0))), fails_at_zero(literal(0)))),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", LAZY)
def test_only_needed_parts_fail(name: str) -> None:
    check(LAZY[name], (BIGINT,) * 3, list(product(FEW, repeat=3)))
