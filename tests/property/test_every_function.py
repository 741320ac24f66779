"""Every function of the table with columns, constants, typed and untyped NULLs, over rows and over none.

What a function takes is found out by trying. Each call that is accepted answers as the reference does row by
row, and over no rows with a column of its type; one that is not is refused with an error of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from itertools import islice, product
from typing import Any

import pyarrow as pa
import pytest

from awkward_arguments import MONEY
from headrace.elements import from_rows
from headrace.errors import LanguageError, PlanError
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import (
    FUNCTIONS,
    SYNONYMS,
    argument_count,
    literal,
    make_cast,
    resolve,
)
from headrace.expressions.tree import Column, Expression, Literal
from headrace.reference.contents import equal_form
from headrace.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    MONTHS,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Field,
    Schema,
)
from how_many import how_many
from property.expression_strategies import expected

OPERATORS = (
    *("+", "-", "*", "/", "%", "DIV", "NEGATE", "=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"),
    *("AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "IN", "BETWEEN", "LIKE", "||", "[]"),
    *("TRIM LEADING", "TRIM TRAILING"),
)
NAMES = sorted({*OPERATORS, *(name for name in FUNCTIONS if name not in SYNONYMS)})
NUMBERS, TEXTS = pa.list_(BIGINT), pa.list_(STRING)
COUNTS, PAIR = pa.map_(STRING, BIGINT), pa.struct([("a", BIGINT), ("b", TEXTS)])
SHARE = pa.decimal128(2, 2)
"""A DECIMAL without a digit in front of its point."""
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC)
VALUES: dict[pa.DataType, tuple[Any, ...]] = {
    BIGINT: (2, -1, None),
    STRING: ("a b", "", None),
    DOUBLE: (1.5, 0.0, None),
    MONEY: (Decimal("2.50"), Decimal("0.00"), None),
    SHARE: (Decimal("0.25"), Decimal("-0.99"), None),
    BOOLEAN: (True, False, None),
    DATE: (date(2024, 2, 29), date(1969, 12, 31), None),
    TIMESTAMP: (MOMENT, MOMENT.replace(year=1968), None),
    BINARY: (b"\x00a", b"", None),
    NUMBERS: ([1, None, 2], [], None),
    TEXTS: (["a", "b"], [None], None),
    COUNTS: ([("a", 1)], [], None),
    PAIR: ({"a": 1, "b": ["x"]}, {"a": None, "b": None}, None),
    UNKNOWN: (None, None, None),
}
"""Three values of each type."""
WORDS = ("a", "day", "UTC", "yyyy-MM-dd", "$.a", "256")
"""Texts that some function takes as a constant only."""
FEW = (BIGINT, STRING, DATE, TIMESTAMP, BOOLEAN, UNKNOWN)
"""The types that are tried where there are three arguments."""


def constant(kind: pa.DataType, made: Any) -> Expression:
    """A constant of a type: ARRAYs, STRUCTs and MAPs are calls."""
    if made is None or kind not in (NUMBERS, TEXTS, COUNTS, PAIR):
        return make_cast(literal(made), kind) if made is None else Literal(made, kind)
    if kind == COUNTS:
        return resolve("MAP", tuple(literal(part) for pair in made for part in pair))
    if kind == PAIR:
        parts = (("a", literal(made["a"])), ("b", constant(TEXTS, made["b"])))
        return resolve("NAMED_STRUCT", tuple(part for name, one in parts for part in (literal(name), one)))
    return resolve("ARRAY", tuple(make_cast(literal(part), kind.value_type) for part in made))


@cache
def arguments_at(place: int, kinds: tuple[pa.DataType, ...]) -> tuple[Expression, ...]:
    """What is tried as an argument: for each type a column, a constant, and NULL; and words."""
    found: list[Expression] = []
    for kind in kinds:
        column = Column(place * len(VALUES) + list(VALUES).index(kind), f"c{place}", kind)
        found += [column, constant(kind, VALUES[kind][0]), Literal(None, kind)]
    return tuple(dict.fromkeys([*found, *(literal(word) for word in WORDS)]))


def counts(name: str) -> Iterator[int]:
    """How many arguments are tried: at most three."""
    least, _, most = argument_count(name).removeprefix("at least ").partition(" to ")
    most = most or (least if "least" not in argument_count(name) else str(int(least) + 1))
    yield from range(int(least), min(int(most), 3) + 1)


def calls(name: str) -> Iterator[Expression]:
    """The calls of a function that are accepted; no other error than ours may refuse one."""
    for count in counts(name):
        kinds = tuple(VALUES) if count < 3 else FEW
        tried = product(*(arguments_at(place, kinds) for place in range(count)))
        for arguments in tried if count < 3 else islice(tried, 0, None, how_many(11, 1)):
            try:
                found = resolve(name, arguments)
            except (LanguageError, PlanError):
                continue
            if found.type not in (INTERVAL, MONTHS):
                yield found


SCHEMA = Schema(
    tuple(Field(f"c{place}", kind) for place, kind in enumerate(kind for _ in range(3) for kind in VALUES))
)
ROWS = [
    tuple(VALUES[kind][(row + shift * (row > 0)) % 3] for shift in range(3) for kind in VALUES)
    for row in range(3)
]
BATCH = from_rows(SCHEMA, [(row, 0, 1, 1) for row in ROWS]).payload


def comparable(found: Any) -> object:
    """A value as it is compared; of a DOUBLE 14 digits, since machines differ in the last ones of SINH."""
    return f"{found + 0.0:.14g}" if isinstance(found, float) else equal_form(found)


def wrong(expression: Expression) -> Iterator[object]:
    """What is wrong with a call over three rows, and over none."""
    outcome = evaluate(expression, BATCH)
    found = list(map(comparable, outcome.values.to_pylist())), outcome.reasons().to_pylist()
    results, reasons = expected(expression, ROWS)
    wanted = list(map(comparable, results)), reasons
    if found != wanted or outcome.values.type != expression.type:
        yield expression, found, wanted
    nothing = evaluate(expression, BATCH.slice(0, 0))
    if len(nothing.values) or nothing.values.type != expression.type or nothing.failures:
        yield expression, nothing


@pytest.mark.runs
@pytest.mark.parametrize("name", NAMES)
def test_calls_answer_as_the_reference_and_over_no_rows(name: str) -> None:
    accepted: Sequence[Expression] = list(calls(name))
    every = max(1, len(accepted) // how_many(100, 2000))
    assert accepted
    assert [found for call in accepted[::every] for found in wrong(call)] == []
