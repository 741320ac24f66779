"""Expressions over columns beside DuckDB, an engine of other people, where both mean the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from headrace.elements import from_rows
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import literal, make_case, make_cast, resolve
from headrace.expressions.render import render
from headrace.expressions.tree import Column, Expression
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema

MONEY = pa.decimal128(10, 2)
SCHEMA = Schema(
    (
        Field("i", BIGINT),
        Field("j", BIGINT),
        Field("x", DOUBLE),
        Field("m", MONEY),
        Field("s", STRING),
        Field("b", BOOLEAN),
        Field("d", DATE),
        Field("t", TIMESTAMP),
    )
)
N, J, X, M, S, B, D, T = (Column(place, field.name, field.type) for place, field in enumerate(SCHEMA))


def rows(count: int = 300) -> list[tuple[Any, ...]]:
    chance = random.Random(7)

    def one() -> tuple[Any, ...]:
        moment = datetime(1960, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(4 * 10**15))
        values = (
            chance.randrange(-50, 50),
            chance.randrange(1, 9),
            chance.choice((0.0, -1.5, 2.25, math.inf, math.nan, chance.uniform(-1e6, 1e6))),
            Decimal(chance.randrange(-100_000, 100_000)) / 100,
            chance.choice(("", "abc", " padded ", "aXbX", "Éa", "b%")),
            chance.random() < 0.5,
            date(1960, 1, 1) + timedelta(days=chance.randrange(40_000)),
            moment,
        )
        return tuple(None if chance.random() < 0.1 else value for value in values)

    return [one() for _ in range(count)]


ROWS = rows()


def call(name: str, *arguments: Expression | object) -> Expression:
    made = [one if hasattr(one, "type") else literal(one) for one in arguments]
    return resolve(name, tuple(made))  # type: ignore[arg-type]


EXPRESSIONS = [
    call("+", N, J),
    call("-", N, X),
    call("*", N, Decimal("0.908")),
    call("*", M, M),
    call("+", M, Decimal("0.005")),
    call("/", N, J),
    call("/", X, J),
    call("%", N, J),
    call("NEGATE", N),
    call("ABS", M),
    call("FLOOR", M),
    call("CEIL", M),
    call("ROUND", M, 1),
    call("ROUND", M, -2),
    call("SQRT", J),
    call("EXP", call("/", N, 50)),
    call("LN", J),
    call("LOG10", J),
    call("POWER", J, 3),
    *(call(operator, X, call("/", N, 4)) for operator in ("=", "<>", "<", "<=", ">", ">=")),
    *(call(operator, X, X) for operator in ("=", "<", ">=")),
    call("<", S, "abc"),
    call("<", M, N),
    call("IS NOT DISTINCT FROM", N, J),
    call("IS NULL", S),
    call("AND", call(">", N, 0), B),
    call("OR", call(">", N, 0), B),
    call("NOT", B),
    call("IN", J, 1, 2, 3),
    call("IN", J, 1, None),
    call("IN", X, 0.0, 2.25),
    call("IN", N, J, 5),
    call("BETWEEN", N, -10, J),
    call("REGEXP_EXTRACT", S, "([a-z]+)([A-Z])?", 2),
    *(call("SPLIT_PART", S, "X", place) for place in (1, 2, 3, -1, -4)),
    call("LIKE", S, "a%"),
    call("LIKE", S, "_b%"),
    call("GREATEST", N, J),
    call("LEAST", X, N),
    call("COALESCE", N, J, 0),
    call("NULLIF", J, 3),
    call("IF", call(">", N, J), S, "none"),
    make_case(((call("<", N, 0), literal("neg")), (call("=", N, 0), literal("zero"))), None),
    call("LENGTH", S),
    call("UPPER", S),
    call("LOWER", S),
    call("TRIM", S),
    call("||", S, "!"),
    call("SUBSTRING", S, 2),
    call("SUBSTRING", S, 2, 2),
    call("SUBSTRING", S, J, 2),
    call("REPLACE", S, "X", "--"),
    call("REPLACE", S, "a", call("SUBSTRING", S, 1, 1)),
    call("CONTAINS", S, "b"),
    *(call(part, D) for part in ("YEAR", "MONTH", "DAY")),
    *(call(part, T) for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")),
    *(call("DATE_TRUNC", unit, T) for unit in ("SECOND", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")),
    call("<", D, T),
    make_cast(N, STRING),
    make_cast(M, STRING),
    make_cast(D, STRING),
    make_cast(N, DOUBLE),
    make_cast(M, DOUBLE),
    make_cast(N, BOOLEAN),
    make_cast(B, BIGINT),
    make_cast(M, pa.decimal128(6, 1)),
    make_cast(T, DATE),
    make_cast(D, TIMESTAMP),
    make_cast(make_cast(M, STRING), MONEY),
    make_cast(make_cast(T, STRING), TIMESTAMP),
    make_cast(make_cast(N, STRING), BIGINT),
]


@pytest.fixture(scope="module")
def table() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE r (n BIGINT, i BIGINT, j BIGINT, x DOUBLE, m DECIMAL(10, 2), s VARCHAR, b BOOLEAN, "
        "d DATE, t TIMESTAMP)"
    )
    naive = [(*row[:7], row[7] and row[7].replace(tzinfo=None)) for row in ROWS]
    connection.executemany(
        "INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [(n, *row) for n, row in enumerate(naive)]
    )
    return connection


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=render)
def test_duckdb_answers_the_same(table: duckdb.DuckDBPyConnection, expression: Expression) -> None:
    outcome = evaluate(expression, from_rows(SCHEMA, [(row, 0, 1, 1) for row in ROWS]).payload)
    assert outcome.failed is None
    answers = table.execute(f"SELECT {render(expression)} FROM r ORDER BY n").fetchall()
    check(outcome.values.to_pylist(), [answer for (answer,) in answers])


def check(found: Sequence[Any], expected: Sequence[Any]) -> None:
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        if isinstance(one, datetime):
            one = one.replace(tzinfo=None)
        if isinstance(one, float) and other is not None:
            assert math.isclose(one, other, rel_tol=1e-12) or (one != one and other != other), ROWS[place]
        else:
            assert one == other, ROWS[place]
