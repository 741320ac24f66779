"""Conditions in the order of (1 - s) / c: the same answer and the same failures, and fewer rows asked."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.predicates import conjunction
from headrace.expressions.coercion import literal
from headrace.expressions.evaluation.evaluate import Outcome, evaluate, predicate_mask
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Call, Column, Expression
from headrace.operators import conditions
from headrace.operators.conditions import evaluate_condition
from headrace.schema import BIGINT, BOOLEAN, STRING
from how_many import examples

NUMBER, TEXT, FLAG = Column(0, "n", BIGINT), Column(1, "s", STRING), Column(2, "b", BOOLEAN)
PARTS: tuple[Expression, ...] = (
    resolve(">", (NUMBER, literal(1))),
    resolve("REGEXP_LIKE", (TEXT, literal("^a"))),
    resolve("LIKE", (TEXT, literal("%b"))),
    resolve("=", (resolve("UPPER", (TEXT,)), literal("AB"))),
    FLAG,
    # Of these some rows fail.
    resolve("=", (resolve("/", (literal(4), NUMBER)), literal(2))),
    resolve(">", (resolve("%", (literal(5), NUMBER)), literal(0))),
)
row = st.tuples(
    st.none() | st.integers(-1, 3),
    st.none() | st.sampled_from(("a", "ab", "b", "")),
    st.none() | st.booleans(),
)


@given(st.lists(row, min_size=1, max_size=20), st.lists(st.sampled_from(PARTS), min_size=1, max_size=5))
@examples(67, 200)
def test_the_order_changes_neither_the_answer_nor_what_fails(
    rows: list[tuple[int | None, str | None, bool | None]], parts: list[Expression]
) -> None:
    schema = pa.schema([(part.name, part.type) for part in (NUMBER, TEXT, FLAG)])
    batch = pa.RecordBatch.from_pylist([dict(zip("nsb", one, strict=True)) for one in rows], schema)
    predicate = conjunction(parts)
    assert predicate is not None
    expected = evaluate(predicate, batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "MIN_ROWS", 0)
        found = evaluate_condition(predicate, batch)
    assert predicate_mask(found).tolist() == predicate_mask(expected).tolist()
    assert {reason: mask.tolist() for reason, mask in found.failures} == {
        reason: mask.tolist() for reason, mask in expected.failures
    }


def test_what_costs_much_is_asked_of_the_rows_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def noted(expression: Expression, rows: pa.RecordBatch) -> Outcome:
        if rows.num_rows != 200:
            asked.append((expression.function if isinstance(expression, Call) else "b", rows.num_rows))
        return evaluate(expression, rows)

    monkeypatch.setattr(conditions, "evaluate", noted)
    batch = pa.RecordBatch.from_pydict(
        {"n": range(10_000), "s": [f"a{place % 10}" for place in range(10_000)], "b": [True] * 10_000}
    )
    all_rows, tenth = (
        resolve(name, (TEXT, literal(text))) for name, text in (("LIKE", "a%"), ("REGEXP_LIKE", "3$"))
    )
    predicate = conjunction((all_rows, tenth, FLAG, resolve("<", (NUMBER, literal(1_000)))))
    assert predicate is not None
    assert predicate_mask(evaluate_condition(predicate, batch)).sum() == 100
    assert asked == [("<", 10_000), ("REGEXP_LIKE", 1_000), ("LIKE", 100), ("b", 100)]


def test_conditions_that_cost_little_are_asked_together() -> None:
    batch = pa.RecordBatch.from_pydict({"n": range(10_000), "s": ["a"] * 10_000, "b": [True] * 10_000})
    predicate = conjunction((FLAG, resolve("<", (NUMBER, literal(7)))))
    assert predicate is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(conditions, "_in_turn")
        assert predicate_mask(evaluate_condition(predicate, batch)).sum() == 7
