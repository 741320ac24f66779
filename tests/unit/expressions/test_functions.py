from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.errors import LanguageError
from headrace.expressions.coercion import common_type
from headrace.expressions.functions.functions import FUNCTIONS, literal, make_case, make_cast, resolve
from headrace.expressions.tree import Call, Case, Cast, Column, Expression, Literal
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, UNKNOWN

INT = Column(0, "i", BIGINT)
REAL = Column(1, "x", DOUBLE)
MONEY = Column(2, "m", pa.decimal128(10, 2))
TEXT = Column(3, "s", STRING)
FLAG = Column(4, "b", BOOLEAN)
DAY = Column(5, "d", DATE)
MOMENT = Column(6, "t", TIMESTAMP)


def call(name: str, *arguments: Expression) -> Expression:
    return resolve(name, arguments)


def decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (None, UNKNOWN),
        (True, BOOLEAN),
        (7, BIGINT),
        (1.5, DOUBLE),
        ("a", STRING),
        (date(2024, 2, 29), DATE),
        (datetime(2024, 2, 29, tzinfo=UTC), TIMESTAMP),
        (Decimal("0.908"), decimal(3, 3)),
        (Decimal("12.50"), decimal(4, 2)),
        (Decimal("0.00"), decimal(2, 2)),
        (Decimal("1E+3"), decimal(4, 0)),
        (Decimal("-7"), decimal(1, 0)),
    ],
)
def test_literals_have_the_smallest_type(value: object, dtype: pa.DataType) -> None:
    assert literal(value) == Literal(value, dtype)


def test_literal_moments_are_in_utc() -> None:
    there = datetime(2024, 2, 29, 1, tzinfo=timezone(timedelta(hours=2)))
    assert str(literal(there).value) == "2024-02-28 23:00:00+00:00"


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, Decimal(10) ** 76, Decimal("NaN")])
def test_literals_beyond_their_type_are_refused(value: object) -> None:
    with pytest.raises(LanguageError):
        literal(value)


def test_a_literal_of_an_unknown_type_is_our_fault() -> None:
    with pytest.raises(TypeError):
        literal(b"bytes")


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [
        (BIGINT, DOUBLE, DOUBLE),
        (BIGINT, decimal(3, 3), decimal(23, 3)),
        (decimal(10, 2), decimal(5, 4), decimal(12, 4)),
        (decimal(10, 2), DOUBLE, DOUBLE),
        (DATE, TIMESTAMP, TIMESTAMP),
        (STRING, BIGINT, BIGINT),
        (STRING, decimal(10, 2), DOUBLE),
        (STRING, TIMESTAMP, TIMESTAMP),
        (decimal(38, 0), decimal(38, 10), decimal(38, 0)),
        (decimal(38, 6), decimal(38, 10), decimal(38, 6)),
        (UNKNOWN, DATE, DATE),
        (BOOLEAN, UNKNOWN, BOOLEAN),
    ],
)
def test_common_types(left: pa.DataType, right: pa.DataType, dtype: pa.DataType) -> None:
    assert common_type(left, right) == common_type(right, left) == dtype


@pytest.mark.parametrize("pair", [(BIGINT, BOOLEAN), (TIMESTAMP, BIGINT)])
def test_types_without_a_common_type(pair: tuple[pa.DataType, pa.DataType]) -> None:
    with pytest.raises(LanguageError) as caught:
        common_type(*pair)
    assert "CAST" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (call("+", INT, INT), BIGINT),
        (call("/", INT, INT), DOUBLE),
        (call("+", INT, REAL), DOUBLE),
        (call("*", INT, literal(Decimal("0.908"))), decimal(24, 3)),
        (call("+", MONEY, MONEY), decimal(11, 2)),
        (call("*", MONEY, literal(2)), decimal(12, 2)),
        (call("/", MONEY, MONEY), decimal(23, 13)),
        (call("%", MONEY, literal(7)), decimal(3, 2)),
        (call("*", MONEY, REAL), DOUBLE),
        (call("NEGATE", MONEY), MONEY.type),
        (call("FLOOR", MONEY), decimal(9, 0)),
        (call("FLOOR", REAL), BIGINT),
        (call("ROUND", MONEY, literal(1)), decimal(10, 1)),
        (call("ROUND", REAL), DOUBLE),
        (call("SQRT", INT), DOUBLE),
        (call("COALESCE", INT, literal(Decimal("0.5"))), decimal(21, 1)),
        (call("NULLIF", INT, REAL), BIGINT),
        (call("IF", FLAG, INT, REAL), DOUBLE),
        (call("GREATEST", DAY, MOMENT), TIMESTAMP),
        (call("||", TEXT, INT), STRING),
        (call("LENGTH", TEXT), BIGINT),
        (call("YEAR", DAY), BIGINT),
        (call("HOUR", DAY), BIGINT),
        (call("DATE_TRUNC", literal("month"), DAY), TIMESTAMP),
        (call("REGEXP_LIKE", TEXT, literal("a+")), BOOLEAN),
        (call("RLIKE", TEXT, literal(None)), BOOLEAN),
        (call("REGEXP_EXTRACT", TEXT, literal("a(b)")), STRING),
        (call("SPLIT_PART", TEXT, TEXT, INT), STRING),
        (call("DATE_FORMAT", DAY, literal("yyyy")), STRING),
        (call("UNIX_MICROS", MOMENT), BIGINT),
        (call("TIMESTAMP_MICROS", INT), TIMESTAMP),
        (call("+", literal(None), literal(None)), BIGINT),
        (call("=", literal(None), literal(None)), BOOLEAN),
        (make_case(((FLAG, INT),), None), BIGINT),
        (make_case(((FLAG, literal(None)),), None), UNKNOWN),
    ],
)
def test_types_of_results(expression: Expression, dtype: pa.DataType) -> None:
    assert expression.type == dtype


def test_arguments_are_cast() -> None:
    assert call("+", INT, REAL) == Call("+", (Cast(INT, DOUBLE), REAL), DOUBLE)
    assert call("=", MONEY, literal(2)) == Call("=", (MONEY, Literal(Decimal(2), MONEY.type)), BOOLEAN)
    assert call("<", MOMENT, literal("2024-02-03")) == Call(
        "<", (MOMENT, Literal(datetime(2024, 2, 3, tzinfo=UTC), TIMESTAMP)), BOOLEAN
    )
    assert call("IN", INT, REAL, literal(None)).arguments == (  # type: ignore[union-attr]
        Cast(INT, DOUBLE),
        REAL,
        Literal(None, DOUBLE),
    )


@pytest.mark.parametrize(
    ("value", "dtype", "message", "hint"),
    [
        ("abc", BIGINT, "'abc' is not a valid BIGINT", "write a number that is a valid BIGINT"),
        ("1970-99-01", TIMESTAMP, "'1970-99-01' is not a valid TIMESTAMP", "write TIMESTAMP '2024-"),
        ("soon", DATE, "'soon' is not a valid DATE", "write DATE '2024-01-31'"),
        ("perhaps", BOOLEAN, "'perhaps' is not a valid BOOLEAN", "write TRUE or FALSE"),
        (1e300, BIGINT, r"1e\+300 is not a valid BIGINT", "write a number that is a valid BIGINT"),
        (300, pa.decimal128(2, 0), r"300 is not a valid DECIMAL\(2, 0\)", "write a number that is"),
    ],
)
def test_a_constant_that_cannot_be_cast_is_refused(
    value: object, dtype: pa.DataType, message: str, hint: str
) -> None:
    with pytest.raises(LanguageError, match=message) as raised:
        make_cast(literal(value), dtype)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(hint)


def test_forms_in_short_become_case() -> None:
    assert call("IF", FLAG, INT, literal(0)) == Case(((FLAG, INT),), literal(0), BIGINT)
    assert call("NULLIF", INT, literal(0)) == Case(
        ((call("=", INT, literal(0)), Literal(None, BIGINT)),), INT, BIGINT
    )


def test_logic_is_binary_from_the_left() -> None:
    assert call("AND", FLAG, FLAG, literal(None)) == call("AND", call("AND", FLAG, FLAG), literal(None))


def test_negation_goes_into_literals_and_null_tests() -> None:
    assert call("NEGATE", literal(5)) == literal(-5)
    assert call("NEGATE", literal(Decimal("0.5"))) == literal(Decimal("-0.5"))
    assert call("NOT", call("IS NULL", INT)) == call("IS NOT NULL", INT)
    assert call("NOT", call("IS NOT NULL", INT)) == call("IS NULL", INT)
    assert call("NEGATE", literal(-(2**63))) == Call("NEGATE", (literal(-(2**63)),), BIGINT)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("SQRRT", (INT,), "there is no function SQRRT"),
        ("ABS", (), "ABS takes 1 argument, not 0"),
        ("SUBSTRING", (TEXT,), "SUBSTRING takes 2 to 3 arguments, not 1"),
        ("COALESCE", (), "COALESCE takes at least 1 argument, not 0"),
        ("ABS", (TEXT,), "ABS takes numbers, not STRING"),
        ("NEGATE", (TEXT,), "unary - takes numbers, not STRING"),
        ("+", (MOMENT, INT), r"there is no TIMESTAMP \+ BIGINT"),
        ("DIV", (MONEY, INT), "DIV takes BIGINTs"),
        ("AND", (INT, FLAG), "AND takes a BOOLEAN, not BIGINT"),
        ("LENGTH", (INT,), "LENGTH takes a STRING, not BIGINT"),
        ("YEAR", (INT,), "YEAR takes a TIMESTAMP or DATE, not BIGINT"),
        ("SUBSTRING", (TEXT, REAL), "SUBSTRING takes whole numbers"),
        ("<", (MOMENT, INT), "no common type"),
        ("ROUND", (REAL, INT), "the digits of ROUND must be"),
        ("ROUND", (REAL, literal(99)), "the digits of ROUND must be"),
        ("LIKE", (TEXT, TEXT), "must be a string constant"),
        ("LIKE", (TEXT, literal("a\\")), "must be followed by"),
        ("LIKE", (TEXT, literal("\\a")), "must be followed by"),
        ("LIKE", (TEXT, literal("a"), literal("ab")), "must be one character"),
        ("DATE_TRUNC", (literal("fortnight"), MOMENT), "must be a unit"),
        ("DATE_TRUNC", (TEXT, MOMENT), "must be a unit"),
        ("REGEXP_LIKE", (TEXT, TEXT), "the pattern of REGEXP_LIKE must be a string constant"),
        ("REGEXP_LIKE", (INT, literal("a")), "REGEXP_LIKE takes a STRING, not BIGINT"),
        ("REGEXP_LIKE", (TEXT, literal("(a")), "is not a regular expression: missing \\)"),
        ("REGEXP_LIKE", (TEXT, literal("a(?=b)")), "is not a regular expression: invalid perl operator"),
        ("REGEXP_LIKE", (TEXT, literal(r"(a)\1")), "is not a regular expression: invalid escape sequence"),
        ("REGEXP_LIKE", (TEXT, literal("[a-z&&[^b]]")), r"has \[a-z&&\[\^b\], which other systems read"),
        ("REGEXP_LIKE", (TEXT, literal("[a[b]")), r"has \[a\[b\], which other systems read otherwise"),
        ("REGEXP_LIKE", (TEXT, literal("[[:digit:]]")), r"has \[\[:digit:\]\], which other systems"),
        ("REGEXP_EXTRACT", (TEXT, literal("a")), "the pattern of REGEXP_EXTRACT has no group 1"),
        ("REGEXP_EXTRACT", (TEXT, literal(r"\((a)[(]"), literal(2)), "has no group 2"),
        ("REGEXP_EXTRACT", (TEXT, literal("(a)"), literal(-1)), "must be a whole number from 0 on"),
        ("REGEXP_EXTRACT", (TEXT, literal("(a)"), INT), "must be a whole number from 0 on"),
        ("SPLIT_PART", (TEXT, literal(","), REAL), "takes a whole number of the part, not DOUBLE"),
        ("SPLIT_PART", (TEXT, INT, INT), "SPLIT_PART takes a STRING, not BIGINT"),
        ("DATE_FORMAT", (MOMENT, TEXT), "the pattern of DATE_FORMAT must be a string constant"),
        ("DATE_FORMAT", (TEXT, literal("yyyy")), "DATE_FORMAT takes a TIMESTAMP or DATE, not STRING"),
        ("DATE_FORMAT", (MOMENT, literal("yyyy-mmm")), "the pattern of DATE_FORMAT has mmm, which is not"),
        ("DATE_FORMAT", (MOMENT, literal("yyyy Q")), "has Q, which is not known"),
        ("DATE_FORMAT", (MOMENT, literal("yyyy[")), r"has \[, which is not known"),
        ("DATE_FORMAT", (MOMENT, literal("yyyy 'T")), "has ', which is not known"),
    ],
)
def test_wrong_calls(name: str, arguments: tuple[Expression, ...], message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        resolve(name, arguments)


def test_hints() -> None:
    with pytest.raises(LanguageError) as caught:
        call("SQRRT", INT)
    assert caught.value.hint == "did you mean SQRT?"
    with pytest.raises(LanguageError) as caught:
        make_cast(INT, TIMESTAMP)
    assert "TIMESTAMP_MICROS" in str(caught.value.hint)
    with pytest.raises(LanguageError) as caught:
        make_cast(MOMENT, BIGINT)
    assert "UNIX_MICROS" in str(caught.value.hint)
    with pytest.raises(LanguageError):
        make_cast(DAY, BIGINT)


def test_a_condition_must_be_boolean() -> None:
    with pytest.raises(LanguageError, match="WHEN takes a BOOLEAN"):
        make_case(((INT, INT),), None)


def test_function_names_are_names() -> None:
    assert {"ABS", "POW", "DATE_TRUNC"} <= set(FUNCTIONS)
    assert not {"AND", "+", "NEGATE", "IS NULL"} & set(FUNCTIONS)
