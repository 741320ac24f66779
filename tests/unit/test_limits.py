"""Work that ends before it is done, and loops that ask whether they are to end."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from headrace.expressions.evaluation.evaluate import computed, evaluate, failure_of
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Call, Column, Expression, Literal
from headrace.limits import CancelledWorkError, Limit, OutOfTimeError, check, checked, untimed, within
from headrace.schema import BIGINT, STRING


def after(asked: int) -> Callable[[], str | None]:
    """What is not wanted any more once it has been asked so often."""
    left = iter(range(asked))
    return lambda: None if next(left, None) is not None else "enough"


def test_loops_go_on_as_long_as_they_may() -> None:
    seen: list[int] = []
    with pytest.raises(CancelledWorkError, match="enough"), within(Limit(unwanted=after(3))):
        seen.extend(checked(range(9)))
    assert seen == [0, 1, 2]
    assert list(checked(range(9))) == [*range(9)]


def test_work_takes_no_longer_than_its_limit() -> None:
    with within(Limit(math.inf)), pytest.raises(OutOfTimeError), within(Limit(-1)):
        check()
    check()


def test_what_is_done_for_everybody_is_not_counted() -> None:
    limit = Limit(1.0)
    limit.extend(5.0)
    assert limit.spent < 0
    with within(limit), untimed():
        check()


def test_no_handler_of_exceptions_takes_an_end_for_an_error() -> None:
    assert not issubclass(CancelledWorkError, Exception)


TEXTS = pa.RecordBatch.from_arrays(
    [
        pa.array([f"{place} and some" for place in range(300)]),
        pa.array([f"{place}" for place in range(300)]),
        pa.array(np.arange(300)),
    ],
    names=["a", "b", "n"],
)
A, B, N = Column(0, "a", STRING), Column(1, "b", STRING), Column(2, "n", BIGINT)
BY_ROWS = (
    resolve("LEVENSHTEIN", (A, B)),
    resolve("LEVENSHTEIN", (A, literal("another"))),
    resolve("REPEAT", (A, N)),
    resolve("INITCAP", (A,)),
    resolve("TRANSLATE", (A, literal("ab"), literal("cd"))),
    resolve("SHA2", (A, literal(256))),
    resolve("GET_JSON_OBJECT", (A, literal("$.a"))),
)


@pytest.mark.parametrize("call", BY_ROWS, ids=lambda call: getattr(call, "function", "cast"))
def test_functions_of_python_ask_with_every_row(call: Expression) -> None:
    with pytest.raises(CancelledWorkError), within(Limit(unwanted=after(100))):
        evaluate(call, TEXTS)
    evaluate(call, TEXTS)


def test_a_comparison_of_two_long_texts_asks_on_the_way() -> None:
    row = pa.RecordBatch.from_arrays([pa.array(["ab" * 50_000]), pa.array(["ba" * 50_000])], names=["a", "b"])
    with pytest.raises(CancelledWorkError), within(Limit(unwanted=after(4))):
        evaluate(resolve("LEVENSHTEIN", (A, B)), row)


def test_texts_that_are_too_long_to_be_compared_fail() -> None:
    row = pa.RecordBatch.from_arrays(
        [pa.array(["a" * 100_001, "abc", None]), pa.array(["b"] * 3)], names="ab"
    )
    found = evaluate(resolve("LEVENSHTEIN", (A, B)), row)
    assert (found.values.to_pylist(), found.reason) == (
        [None, 2, None],
        "LEVENSHTEIN of a text of more than 100,000 characters",
    )


@pytest.mark.slow("makes more than a gigabyte of text")
def test_long_values_are_computed_some_rows_at_a_time() -> None:
    rows = TEXTS.slice(0, 299)
    lengths = evaluate(resolve("LENGTH", (resolve("REPEAT", (A, literal(1_000_000 // 13))),)), rows)
    assert lengths.values.to_pylist() == [len(a) * (1_000_000 // 13) for a in rows.column(0).to_pylist()]
    with pytest.raises(MemoryError, match="more than 1,024 MiB"):
        evaluate(resolve("REPEAT", (literal("x"), Column(2, "n", BIGINT))), _ones(1_100, 1_000_000))


def _ones(rows: int, value: int) -> pa.RecordBatch:
    columns = [
        pa.nulls(rows, STRING),
        pa.nulls(rows, STRING),
        pa.array(np.full(rows, value) - np.arange(rows)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["a", "b", "n"])


def test_rows_that_fail_are_the_same_when_they_are_computed_apart() -> None:
    rows = _ones(600, 1_000_300)
    found = evaluate(resolve("LENGTH", (resolve("REPEAT", (literal("x"), N)),)), rows)
    counts = rows.column(2).to_pylist()
    assert found.values.to_pylist() == [None if count > 1_000_000 else count for count in counts]
    assert found.failed is not None
    assert found.failed.tolist() == [count > 1_000_000 for count in counts]


def test_constants_that_take_long_or_much_are_left_to_whoever_runs_them() -> None:
    long = resolve("REPEAT", (literal("a"), literal(1_000_000)))
    assert isinstance(computed(long), Call)
    assert isinstance(computed(resolve("LENGTH", (long,))), Call)
    short = resolve("REPEAT", (literal("a"), literal(4_000)))
    assert computed(resolve("LENGTH", (short,))) == Literal(4_000, BIGINT)
    far = resolve("REPEAT", (literal("a"), literal(100_000)))
    assert isinstance(computed(resolve("LEVENSHTEIN", (far, resolve("REVERSE", (far,))))), Call)
    assert failure_of(resolve("LEVENSHTEIN", (far, resolve("REVERSE", (far,))))) is None
