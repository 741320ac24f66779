from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.expressions.functions.functions import literal, make_case, make_cast, resolve
from headrace.expressions.render import render
from headrace.expressions.tree import Column, Expression, Literal
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING

A, B, C = (Column(place, name, BIGINT) for place, name in enumerate("abc"))
S = Column(3, "s", STRING)
F = Column(4, "f", BOOLEAN)


def call(name: str, *arguments: Expression) -> Expression:
    return resolve(name, arguments)


ONE = literal(1)

TEXTS = [
    (call("+", call("+", A, B), C), "a + b + c"),
    (call("+", A, call("+", B, C)), "a + (b + c)"),
    (call("*", call("+", A, B), C), "(a + b) * c"),
    (call("+", A, call("*", B, C)), "a + b * c"),
    (call("-", A, call("-", B, C)), "a - (b - c)"),
    (call("%", A, call("DIV", B, C)), "a % (b DIV c)"),
    (call("NEGATE", A), "-a"),
    (call("NEGATE", call("NEGATE", A)), "-(-a)"),
    (call("NEGATE", call("+", A, B)), "-(a + b)"),
    (call("-", A, literal(-1)), "a - -1"),
    (call("*", literal(-1), A), "-1 * a"),
    (call("AND", call("OR", F, F), F), "(f OR f) AND f"),
    (call("OR", call("AND", F, F), F), "f AND f OR f"),
    (call("OR", F, call("OR", F, F)), "f OR (f OR f)"),
    (call("NOT", call("AND", F, F)), "NOT (f AND f)"),
    (call("AND", call("NOT", F), call("=", A, B)), "NOT f AND a = b"),
    (call("NOT", call("=", A, B)), "NOT a = b"),
    (call("=", call("=", A, B), F), "(a = b) = f"),
    (call("IS NULL", call("=", A, B)), "(a = b) IS NULL"),
    (call("IS NOT NULL", call("+", A, B)), "a + b IS NOT NULL"),
    (call("BETWEEN", A, call("+", B, ONE), C), "a BETWEEN b + 1 AND c"),
    (call("IN", A, ONE, literal(None)), "a IN (1, CAST(NULL AS BIGINT))"),
    (call("NOT", call("IN", A, ONE)), "NOT a IN (1)"),
    (call("LIKE", S, literal("a%")), "s LIKE 'a%'"),
    (call("LIKE", S, literal("a!%"), literal("!")), "s LIKE 'a!%' ESCAPE '!'"),
    (call("||", call("||", S, S), S), "(s || s) || s"),
    (call("IS NOT DISTINCT FROM", A, B), "a IS NOT DISTINCT FROM b"),
    (call("/", A, B), "CAST(a AS DOUBLE) / CAST(b AS DOUBLE)"),
    (make_cast(A, pa.decimal128(20, 0)), "CAST(a AS DECIMAL(20, 0))"),
    (call("IF", F, A, B), "CASE WHEN f THEN a ELSE b END"),
    (make_case(((F, A), (call("NOT", F), B)), None), "CASE WHEN f THEN a WHEN NOT f THEN b END"),
    (call("COALESCE", A, ONE), "COALESCE(a, 1)"),
    (call("MOD", A, B), "a % b"),
]


@pytest.mark.parametrize(("expression", "text"), TEXTS)
def test_text(expression: Expression, text: str) -> None:
    assert render(expression) == text


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (literal(None), "NULL"),
        (literal(True), "TRUE"),
        (literal(-7), "-7"),
        (literal(Decimal("0.908")), "0.908"),
        (literal(1.5), "1.5E0"),
        (literal(1e22), "1E22"),
        (literal(-2.5e-7), "-2.5E-07"),
        (literal(math.inf), "CAST('inf' AS DOUBLE)"),
        (literal("it's"), "'it\\'s'"),
        (literal(date(2024, 2, 29)), "DATE '2024-02-29'"),
        (literal(datetime(2024, 2, 29, 1, 2, 3, 4, UTC)), "TIMESTAMP '2024-02-29 01:02:03.000004'"),
        (Literal(None, DOUBLE), "CAST(NULL AS DOUBLE)"),
        (make_cast(literal(2), pa.decimal128(10, 2)), "CAST(2.00 AS DECIMAL(10, 2))"),
    ],
)
def test_constants(constant: Expression, text: str) -> None:
    assert render(constant) == text


def test_names_are_quoted_where_they_must_be() -> None:
    assert render(Column(0, "total price", BIGINT)) == "`total price`"
    assert render(call("+", A, B), lambda column: f"t.{column.name}") == "t.a + t.b"
