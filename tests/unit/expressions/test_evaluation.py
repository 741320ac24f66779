from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa

from headrace.expressions.evaluation.evaluate import evaluate, predicate_mask
from headrace.expressions.functions.functions import literal, make_cast, resolve
from headrace.expressions.tree import Case, Column
from headrace.schema import BIGINT, DOUBLE, STRING

A, B = Column(0, "a", BIGINT), Column(1, "b", BIGINT)
S = Column(2, "s", STRING)


def rows(a: list[int | None], b: list[int | None], s: list[str | None] | None = None) -> pa.RecordBatch:
    texts = s if s is not None else [None] * len(a)
    return pa.record_batch({"a": pa.array(a, BIGINT), "b": pa.array(b, BIGINT), "s": pa.array(texts, STRING)})


def test_nothing_failed() -> None:
    outcome = evaluate(resolve("+", (A, B)), rows([1, None], [2, 3]))
    assert outcome.values.to_pylist() == [3, None]
    assert outcome.failed is None
    assert outcome.reason is None
    assert outcome.reasons().to_pylist() == [None, None]


def test_each_failed_row_has_its_reason() -> None:
    expression = resolve("+", (resolve("DIV", (A, B)), make_cast(S, BIGINT)))
    outcome = evaluate(expression, rows([6, 1, 1, 2**63 - 1], [2, 0, 0, 1], ["1", "1", "x", "1"]))
    assert outcome.values.to_pylist() == [4, None, None, None]
    assert outcome.failed is not None
    assert outcome.failed.tolist() == [False, True, True, True]
    assert outcome.reasons().to_pylist() == [None, "division by zero", "division by zero", "BIGINT overflow"]
    assert outcome.reason == "division by zero"


def test_a_null_argument_does_not_hide_a_failing_one() -> None:
    outcome = evaluate(resolve("+", (A, resolve("DIV", (literal(1), B)))), rows([None], [0]))
    assert outcome.reasons().to_pylist() == ["division by zero"]


def test_constants_are_spread() -> None:
    outcome = evaluate(resolve("DIV", (literal(7), literal(2))), rows([1, 2], [1, 2]))
    assert outcome.values.to_pylist() == [3, 3]
    outcome = evaluate(resolve("DIV", (literal(7), literal(0))), rows([1, 2], [1, 2]))
    assert outcome.reasons().to_pylist() == ["division by zero"] * 2
    assert evaluate(literal(None), rows([1], [1])).values.type == pa.null()


def test_no_rows() -> None:
    for expression in (resolve("DIV", (literal(1), literal(0))), resolve("%", (A, B)), make_cast(S, BIGINT)):
        outcome = evaluate(expression, rows([], []))
        assert (outcome.values.to_pylist(), outcome.failed) == ([], None)
        assert outcome.values.type == expression.type


def test_predicates_take_null_and_failure_for_false() -> None:
    predicate = resolve(">", (resolve("DIV", (A, B)), literal(0)))
    outcome = evaluate(predicate, rows([4, -4, None, 4], [2, 2, 2, 0]))
    assert predicate_mask(outcome).tolist() == [True, False, False, False]


def test_currency_conversion_is_exact() -> None:
    outcome = evaluate(resolve("*", (A, literal(Decimal("0.908")))), rows([1, 10**15 + 1], [0, 0]))
    assert outcome.values.to_pylist() == [Decimal("0.908"), Decimal("908000000000000.908")]


def test_sliced_rows() -> None:
    part = rows([1, 2, 3], [4, 5, 0], ["a", "b", "c"]).slice(1)
    assert evaluate(resolve("*", (A, B)), part).values.to_pylist() == [10, 0]
    outcome = evaluate(resolve("/", (A, B)), part)
    assert outcome.values.to_pylist() == [0.4, None]
    assert np.array_equal(outcome.failed, [False, True])  # type: ignore[arg-type]


def test_a_double_beyond_the_digits_of_a_decimal() -> None:
    column = pa.record_batch({"x": pa.array([1e30, 1.25, 1e-30], DOUBLE)})
    outcome = evaluate(make_cast(Column(0, "x", DOUBLE), pa.decimal128(5, 1)), column)
    assert outcome.values.to_pylist() == [None, Decimal("1.3"), Decimal("0.0")]
    assert outcome.reason == "invalid cast from DOUBLE to DECIMAL(5, 1)"


def test_rows_that_choose_alike_have_what_they_have_among_others() -> None:
    """Where a condition is true of all rows, or of none, what is chosen in none is not computed."""
    fails, other = resolve("DIV", (literal(1), B)), resolve("+", (A, literal(2**63 - 1)))
    branches = (
        (resolve(">", (A, literal(2))), fails),
        (resolve(">", (resolve("DIV", (literal(6), B)), literal(2))), other),
        (resolve("IS NULL", (A,)), literal(9)),
    )
    expression = Case(branches, resolve("*", (A, B)), BIGINT)
    given = [(a, b) for a in (None, -1, 0, 1, 3) for b in (None, 0, 1, 5)]
    together = evaluate(expression, rows(*map(list, zip(*given, strict=True))))
    apart = [evaluate(expression, rows([a], [b])) for a, b in given]
    assert together.values.to_pylist() == [one.values[0].as_py() for one in apart]
    assert together.reasons().to_pylist() == [one.reasons()[0].as_py() for one in apart]
    assert set(together.reasons().to_pylist()) == {None, "division by zero", "BIGINT overflow"}
