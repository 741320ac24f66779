"""What cuts off fractions, over DECIMALs of every precision and scale: as Python's decimals have it."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Context, Decimal

import pyarrow as pa
import pytest

from headrace.elements import from_rows
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.functions.functions import make_cast, resolve
from headrace.expressions.tree import Column, Expression
from headrace.schema import BIGINT, MOST_DIGITS, Field, Schema, decimal
from how_many import how_many

EXACT = Context(prec=200)
PRECISIONS = (1, 2, 5, 18, 19, 37, 38, 39, 50, 75, 76)


def cut(value: Decimal | None, rounding: str) -> Decimal | None:
    return None if value is None else value.quantize(Decimal(1), rounding=rounding, context=EXACT)


def whole_number(value: Decimal | None) -> int | None:
    found = cut(value, ROUND_DOWN)
    return None if found is None or not -(2**63) <= found < 2**63 else int(found)


def values_of(precision: int, scale: int) -> list[Decimal | None]:
    """The edges of a type, and what is beside whole numbers."""
    unit = Decimal(1).scaleb(-scale)
    most = EXACT.multiply(Decimal(10**precision - 1), unit)
    found = [None, most, most.copy_negate(), unit, unit.copy_negate(), Decimal(0)]
    if precision > scale:
        found += [Decimal(1), Decimal(-1), EXACT.subtract(Decimal(1), unit), EXACT.subtract(unit, Decimal(1))]
    return found


@pytest.mark.parametrize("precision", PRECISIONS)
def test_fractions_are_cut_off_in_every_type(precision: int) -> None:
    assert PRECISIONS[-1] == MOST_DIGITS
    for scale in range(0, precision + 1, how_many(1 + precision // 8, 1)):
        check(precision, scale)
    check(precision, precision)


def check(precision: int, scale: int) -> None:
    dtype, values = decimal(precision, scale), values_of(precision, scale)
    batch = from_rows(Schema((Field("d", dtype),)), [((value,), 0, 1, 1) for value in values]).payload
    column = Column(0, "d", dtype)

    def found(expression: Expression) -> list[object]:
        outcome = evaluate(expression, batch)
        assert isinstance(outcome.values, pa.Array)
        listed: list[object] = outcome.values.to_pylist()
        return listed

    whole = make_cast(column, BIGINT)
    assert found(whole) == [whole_number(value) for value in values], (precision, scale)
    assert found(resolve("FLOOR", (column,))) == [cut(value, ROUND_FLOOR) for value in values]
    assert found(resolve("CEIL", (column,))) == [cut(value, ROUND_CEILING) for value in values]
