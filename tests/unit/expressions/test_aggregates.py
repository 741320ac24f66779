from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import LanguageError
from headrace.expressions.aggregates.aggregates import AGGREGATES, is_aggregate, resolve_aggregate
from headrace.expressions.functions.functions import literal
from headrace.expressions.tree import AggregateCall, Column
from headrace.schema import BIGINT, DOUBLE, STRING

INT = Column(0, "i", BIGINT)
TEXT = Column(1, "s", STRING)
MONEY = Column(2, "m", pa.decimal128(10, 2))
WIDE = Column(3, "w", pa.decimal128(35, 2))


@pytest.mark.parametrize(
    ("name", "argument", "dtype"),
    [
        ("COUNT", None, BIGINT),
        ("COUNT", TEXT, BIGINT),
        ("SUM", INT, BIGINT),
        ("SUM", MONEY, pa.decimal128(20, 2)),
        ("SUM", WIDE, pa.decimal128(38, 2)),
        ("SUM", Column(4, "x", DOUBLE), DOUBLE),
        ("AVG", INT, DOUBLE),
        ("AVG", MONEY, DOUBLE),
        ("MIN", TEXT, STRING),
        ("MAX", MONEY, MONEY.type),
        ("STDDEV", INT, DOUBLE),
        ("VARIANCE", MONEY, DOUBLE),
    ],
)
def test_types_of_results(name: str, argument: Column | None, dtype: pa.DataType) -> None:
    assert resolve_aggregate(name, argument) == AggregateCall(name, argument, dtype)


def test_synonyms() -> None:
    assert resolve_aggregate("STDDEV_SAMP", INT).function == "STDDEV"
    assert is_aggregate("VAR_SAMP")
    assert all(map(is_aggregate, AGGREGATES))
    assert not is_aggregate("ABS")


def test_a_sum_of_nulls_is_double() -> None:
    assert resolve_aggregate("SUM", literal(None)).type == DOUBLE


@pytest.mark.parametrize(
    ("name", "argument", "message", "hint"),
    [
        ("SUN", INT, "there is no aggregate SUN", "did you mean SUM"),
        ("MODE_OF_ALL", INT, "there is no aggregate MODE_OF_ALL", "the aggregates are"),
        ("SUM", None, "SUM takes an argument", "COUNT"),
        ("AVG", TEXT, "AVG takes numbers, not STRING", "CAST"),
    ],
)
def test_wrong_calls(name: str, argument: Column | None, message: str, hint: str) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        resolve_aggregate(name, argument)
    assert hint in str(caught.value.hint)
